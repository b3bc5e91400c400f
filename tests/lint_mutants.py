"""Changed copies of valid selection files, each by its seed, and whether lint and the library are of one mind."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock

from colltune.bench.backends.openmpi import OpenMpiBackend
from colltune.catalog import Catalogue, Kind, load
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Choice, SizeBasis
from colltune.core.space import shapes
from colltune.emit.lint.check import Check, Severity
from colltune.emit.lint.leaf import _BY_TOPOLOGY, _TOPO
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE, MpichEmitter
from colltune.emit.mpich.tree import Tree, format_tree, parse_tree
from colltune.emit.openmpi.lint_rules import lint_rules_files
from colltune.emit.openmpi.rules_file import RULES_FILE
from lint_trees import complete_trees

VERSIONS = {"mpich": "5.0.2", "openmpi": "5.0.11"}
MUTANTS = 250  # of each library
# MPICH declares a restriction to powers of two for these algorithms, and lint holds a file to it. 5.0.2 works without.
DECLARED_ALONE = ("MPIR_Bcast_intra_scatter_recursive_doubling_allgather can be reached on",)
# Where neither is wrong. Each runs right in 5.0.2, which promises that nowhere: a tree of two with the ranks in order
# combines them in order, and MPICH declares the algorithm for operations that commute.
UNDECIDED = frozenset({("mpich", 197)})
# Every bound lies within the reach of a job of eight ranks.
RANKS = range(1, 9)
BOUNDS = range(2, 7)
SIZES = (4, 8, 24, 64, 1000, 4096)
COLLECTIVES = {
    "mpich": ("allgather", "allgatherv", "allreduce", "alltoall", "barrier", "bcast", "reduce", "reduce_scatter"),
    "openmpi": ("allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "reduce", "reduce_scatter"),
}


@dataclass(frozen=True)
class Mutant:
    """``files``: of one library, of which one was changed so that it treats ``collective`` otherwise."""

    library: str
    collective: str
    files: dict[str, bytes]
    what: str

    def findings(self) -> list[Check]:
        version = VERSIONS[self.library]
        catalogue = load(self.library, version)
        lint = lint_files if self.library == "mpich" else lint_rules_files
        return lint(self.files, version, catalogue)


def mutant(library: str, seed: int) -> Mutant:
    """The same for the same seed."""
    random = Random(f"{library} {seed}")
    collective = random.choice(COLLECTIVES[library])
    files = valid_files(library, collective, random)
    if library == "mpich":
        what, files[GENERAL_FILE] = _changed_tree(files[GENERAL_FILE], collective, random)
    else:
        what, files[RULES_FILE] = _changed_rules(files[RULES_FILE], random)
    return Mutant(library, collective, files, what)


def valid_files(library: str, collective: str, random: Random) -> dict[str, bytes]:
    """Files as colltune writes them, for rules with bounds at few ranks and bytes; MPICH's whole and indented."""
    catalogue = load(library, VERSIONS[library])
    basis = catalogue.collective(collective).basis
    choices = [c for c in catalogue.choices(collective) if _is_flat(catalogue, collective, c)]
    rules = []
    for most_ranks in [*sorted(random.sample(BOUNDS, random.randint(0, 2))), None]:
        sizes = [] if basis is SizeBasis.NONE else sorted(random.sample(SIZES, random.randint(0, 2)))
        rules += [Rule(None, most_ranks, size, random.choice(choices)) for size in [*sizes, None]]
    rule_set = RuleSet(collective, basis, tuple(rules))
    if library == "mpich":
        emitter = MpichEmitter(catalogue, complete_trees(catalogue))
        with mock.patch("colltune.emit.mpich.selection_file.pruned", _whole):
            made = emitter.emit([emitter.agreeing(rule_set)])
        return {name: format_tree(_with_all(parse_tree(made[name]))) for name in (GENERAL_FILE, CH4_FILE)}
    backend = OpenMpiBackend(VERSIONS[library])
    return {RULES_FILE: backend.emitter.emit([backend.expressible(rule_set, shapes(1, RANKS[-1]))])[RULES_FILE]}


def _whole(tree: Tree, *_: object) -> Tree:
    """``tree`` with what no call reaches, so that there is much to change; but for conditions that are alone."""
    below = {key: _whole(subtree) for key, subtree in tree.items()}
    key = next(iter(below), "")
    return below[key] if len(below) == 1 and key.endswith("=any") else below


def _with_all(tree: Tree) -> Tree:
    """``tree`` with the costs of switches too, which trees by the topology read, and colltune does not write."""
    for key, below in tree.items():
        if key in (f"algorithm={name}" for name in _BY_TOPOLOGY):
            below.update({f"{parameter}=0": {} for parameter in _TOPO})
        else:
            _with_all(below)
    return tree


def _is_flat(catalogue: Catalogue, collective: str, choice: Choice) -> bool:
    return choice.algorithm != "default" and (
        catalogue.library == "openmpi" or catalogue.algorithm(collective, choice).kind is Kind.FLAT
    )


# Conditions that fit a tree of MPICH and those that fit none; N stands for a number.
_CONDITIONS = (
    *("comm_size<=N", "comm_size<N", "avg_msg_size<=N", "total_msg_size<=N", "total_msg_size<N", "count<=N"),
    *("comm_size=pow2", "count<pow2", "comm_size=node_comm_size", "is_commutative=yes", "is_op_built_in=no"),
    *("is_sendbuf_inplace=yes", "is_sendbuf_inplace=no", "is_block_regular=yes", "comm_hierarchy=parent"),
    *("comm_size=any", "any", "comm_sizes<=N", "comm_size>N", "comm_size<= N", "avg_msg_size=N", "", "k=N"),
)
_NUMBERS = ("0", "1", "2", "3", "4", "5", "6", "64", "4096", "-1", "007", "x", "4x", "1e3", "4294967297")


def _changed_tree(data: bytes, collective: str, random: Random) -> tuple[str, bytes]:
    """One change in what decides for the ranks of one group."""
    if random.random() < 0.04:
        place = random.randint(0, len(data) - 2)
        return "cut off", data[:place]
    root = json.loads(data)
    intra = root[f"collective={collective}"]["comm_type=intra"]
    # Ranks on few nodes, and one on each: the two that a job on one machine can be, or pretend to be.
    holders: list[Tree] = [intra[random.choice(("comm_hierarchy=parent", "comm_avg_ppn<=1"))]]
    for holder in holders:
        holders += [below for below in holder.values() if below]
    holder = random.choice(holders)
    key = random.choice(list(holder))
    what = random.choice(_CHANGES)(holder, key, collective, random)
    return what, format_tree(root)


def _replace(holder: Tree, old: str, new: str) -> str:
    entries = list(holder.items())
    holder.clear()
    for name, below in entries:
        holder[new if name == old else name] = below
    return f"{old} becomes {new}"


def _drop(holder: Tree, key: str, collective: str, random: Random) -> str:
    del holder[key]
    return f"{key} is left out"


def _condition(holder: Tree, key: str, collective: str, random: Random) -> str:
    return _replace(holder, key, random.choice(_CONDITIONS).replace("N", random.choice(_NUMBERS)))


def _number(holder: Tree, key: str, collective: str, random: Random) -> str:
    head, sign, number = key.rpartition("=")
    if not number.lstrip("-").isdecimal():
        return _algorithm(holder, key, collective, random)
    return _replace(holder, key, head + sign + random.choice(_NUMBERS))


def _algorithm(holder: Tree, key: str, collective: str, random: Random) -> str:
    """Another algorithm, mostly of the same collective, with the parameters that it needs or without."""
    catalogue = load("mpich", VERSIONS["mpich"])
    of = collective if random.random() < 0.8 else random.choice(COLLECTIVES["mpich"])
    flat = [one for one in catalogue.collective(of).algorithms if one.kind is Kind.FLAT]
    chosen = random.choice(flat)
    name = f"algorithm={chosen.selection_name}"
    if random.random() < 0.1:
        name = name[:-1]
    made = _replace(holder, key, name)
    parameters = [one for one in chosen.parameters if one.in_file]
    if random.random() < 0.8:
        holder[name] = {f"{one.name}={one.default}": {} for one in parameters}
    return made


def _move(holder: Tree, key: str, collective: str, random: Random) -> str:
    entries = list(holder.items())
    random.shuffle(entries)
    holder.clear()
    holder.update(entries)
    return f"the order beside {key} changes"


def _put_in(holder: Tree, key: str, collective: str, random: Random) -> str:
    """A condition over what stands there, which stands on its other side too."""
    entries = dict(holder)
    holder.clear()
    condition = random.choice(_CONDITIONS).replace("N", random.choice(_NUMBERS))
    holder[condition] = entries
    holder["comm_size=any"] = json.loads(json.dumps(entries))
    return f"{condition} is put over {key}"


_CHANGES = (_drop, _condition, _number, _algorithm, _algorithm, _move, _put_in)

_TOKENS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "10", "15", "77", "-6", "010", "22", "23", "bcast", "#", "")


def _changed_rules(data: bytes, random: Random) -> tuple[str, bytes]:
    """A word, a line or the end of a file of rules."""
    lines = [line.split(" #")[0].split() for line in data.decode().splitlines()]
    numbers = [(row, column) for row, words in enumerate(lines) for column in range(len(words)) if words[0] != "#"]
    row, column = random.choice(numbers)
    match random.randint(0, 9):
        case 0:
            what = f"line {row + 1} is left out"
            del lines[row]
        case 1:
            what = f"line {row + 1} comes twice"
            lines.insert(row, lines[row])
        case 2:
            other = random.choice(numbers)[0]
            what = f"lines {row + 1} and {other + 1} change places"
            lines[row], lines[other] = lines[other], lines[row]
        case 3:
            what = f"the file ends in line {row + 1}"
            del lines[row + 1 :]
            del lines[row][column:]
        case _:
            word = random.choice(_TOKENS)
            what = f"line {row + 1}: {lines[row][column]} becomes {word!r}"
            lines[row] = [*lines[row][:column], word, *lines[row][column + 1 :]]
    return what, "".join(f"{' '.join(words)}\n" for words in lines).encode()


# Where lint does not say that a job fails: the library decides by itself, does not look, looks at memory that nobody
# has written, or reads another number than is written, which the finding names.
_HARMLESS = ("by itself", "no effect", "whatever value the memory holds", "MPICH reads ", "are read as 32-bit integers")


def may_run(findings: list[Check]) -> bool:
    """Whether lint says of each error that the job may run nevertheless, and what the library does instead."""
    errors = [f"{one.what} {one.why}" for one in findings if one.severity is Severity.ERROR]
    return all(any(words in text for words in _HARMLESS) for text in errors)


def mind(library: str, seed: int, findings: list[Check], outcome: str) -> str:
    """Who is wrong of lint and the library; "one" where they agree, or "undecided".

    ``outcome``: "right", or what failed there.
    """
    errors = [check.what for check in findings if check.severity is Severity.ERROR]
    if not errors:
        return "one" if outcome == "right" else f"lint passes {library} {seed}, which fails"
    if outcome != "right" or may_run(findings) or all(what.startswith(DECLARED_ALONE) for what in errors):
        return "one"
    return "undecided" if (library, seed) in UNDECIDED else f"lint refuses {library} {seed}, which runs"


def record(one: Mutant) -> dict[str, Any]:
    """What lint says of it, for the file of records."""
    findings = one.findings()
    return {
        "what": one.what,
        "collective": one.collective,
        "errors": [check.what for check in findings if check.severity is Severity.ERROR],
        "warnings": [check.what for check in findings if check.severity is Severity.WARNING],
    }
