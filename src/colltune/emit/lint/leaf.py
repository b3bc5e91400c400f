"""What can be wrong with a leaf: its name, its parameters, and the calls that reach it."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from colltune.catalog import Catalogue, Need, load
from colltune.catalog.read import known_versions, read_toml
from colltune.emit.lint.check import Severity, shown
from colltune.emit.lint.json_text import JsonEntry
from colltune.emit.lint.names import FileKind, LeafName, leaf_names
from colltune.emit.lint.region import CallRegion

TREE_TYPES = ("kary", "knomial_1", "knomial_2", "topology_aware", "topology_aware_k", "topology_wave")
_AT_ONCE = "MPICH ends in MPI_Init"
# Where MPICH's own trees violate a precondition: a file that does the same there is no worse than no file.
# A reduction of no data returns before it chooses. Pairwise is wrong in place, whoever chooses it.
_AS_MPICH_ITSELF = (
    ("MPIR_Allreduce_intra_smp", Need.PARENT_COMM, "avg_msg_size", (0, 0)),
    ("MPIR_Reduce_scatter_intra_pairwise", Need.REGULAR_COUNTS, "total_msg_size", (524288, 1 << 62)),
)


class Fault(NamedTuple):
    severity: Severity
    line: int
    what: str
    why: str
    fix: str
    parameter: str = ""  # the key below the leaf that the fault is about


class Guard(NamedTuple):
    """The test of a precondition: an operator, whether it holds where the operator does, and the opposite operator."""

    operator: str
    holds: bool
    rest: str
    call: str  # a call that does not meet it, in words
    why: str


GUARDS = {need: Guard(**row) for need, row in read_toml("mpich_leaves")["guards"].items()}


def find_leaf_faults(
    entry: JsonEntry, region: CallRegion, kind: FileKind, catalogue: Catalogue, title: str
) -> Iterator[Fault]:
    """The faults of a leaf that calls of ``region``, of one collective, reach."""
    prefix, _, name = entry.name.partition("=")
    known = leaf_names(catalogue).get(name)
    if known is None or (prefix == "composition") != (known.kind is FileKind.CH4):
        yield _unknown(entry, prefix, name, catalogue, title)
        return
    collective = next(iter(region.collectives), known.collective)
    if known.kind is not kind:
        fix = f"move it to the {known.kind} file, or take it out"
        yield Fault(Severity.ERROR, entry.line, f"{name} belongs in MPICH's {known.kind} file", _AT_ONCE, fix)
        return
    if known.collective != collective and not region.is_empty:
        why = "MPICH ends the program at the first call, or runs something else"
        what = f"{name} is of {known.collective}, and the rule is of {collective}"
        yield Fault(Severity.ERROR, entry.line, what, why, f"name an algorithm of {collective}")
        return
    yield from _parameter_faults(entry, known, catalogue, title)
    if region.is_empty:
        return
    if known.warning:
        yield Fault(
            Severity.WARNING, entry.line, f"{name} is not safe to choose by file", known.warning, "choose another"
        )
    for need in unmet_needs(name, known, region):
        yield _unmet(entry, name, need, region)


def unmet_needs(name: str, known: LeafName, region: CallRegion) -> list[str]:
    """The preconditions of ``name`` that some call of ``region`` does not meet."""
    unmet = []
    for need in known.needs:
        if known.kind is FileKind.POSIX and need in ("intra", "inter"):
            continue  # shared memory is used inside a node only
        if not region.meets(need) and not _as_mpich_itself(name, need, region):
            unmet.append(need)
    order = list(GUARDS)
    return sorted(unmet, key=lambda need: order.index(need) if need in order else len(order))


def _as_mpich_itself(name: str, need: str, region: CallRegion) -> bool:
    for own, own_need, about, (least, most) in _AS_MPICH_ITSELF:
        low, high = region.range(about)
        if (own, own_need) == (name, need) and least <= low and high <= most:
            return True
    return False


def _unmet(entry: JsonEntry, name: str, need: str, region: CallRegion) -> Fault:
    guard = GUARDS.get(need)
    if guard is None:
        why = f"it needs {need.replace('-', ' ')}, which a file cannot ask"
        return Fault(
            Severity.WARNING, entry.line, f"{name} can be reached outside its preconditions", why, "choose another"
        )
    call = guard.call.format(odd=region.odd_ranks())
    kept = guard.operator if guard.holds else guard.rest
    other = guard.rest if guard.holds else guard.operator
    wrong = "MPICH does not use it" if need == "one-thread" else "the program ends, or the result is wrong"
    severity = Severity.WARNING if need == "one-thread" else Severity.ERROR
    fix = f'put it under "{kept}", and a safe one under "{other}"{"" if guard.holds else ", which comes first"}'
    return Fault(severity, entry.line, f"{name} can be reached {call}", f"{guard.why}; else {wrong}", fix)


def _unknown(entry: JsonEntry, prefix: str, name: str, catalogue: Catalogue, title: str) -> Fault:
    what = f"{title} has no {prefix} {shown(name)}"
    why = f'{_AT_ONCE} with "unrecognized key"'
    versions = known_versions("mpich")
    elsewhere = [version for version in versions if name in leaf_names(_catalogue_of(version))]
    if catalogue.version not in elsewhere and elsewhere:
        newer = versions.index(elsewhere[0]) > versions.index(catalogue.version)
        only = f"since {elsewhere[0]}" if newer else f"until {elsewhere[-1]}"
        return Fault(Severity.ERROR, entry.line, what, f"{why}; it is there {only}", "choose another algorithm")
    near = get_close_matches(name[:120], list(leaf_names(catalogue)), 1, 0.8)
    fix = f"write {near[0]}, if that is meant" if near else "choose an algorithm of this version"
    return Fault(Severity.ERROR, entry.line, what, why, fix)


def _catalogue_of(version: str) -> Catalogue:
    return load("mpich", version)


def _parameter_faults(entry: JsonEntry, known: LeafName, catalogue: Catalogue, title: str) -> Iterator[Fault]:
    if known.unread:
        why = f"a file cannot set its {known.unread}, so that it takes whatever value the memory holds"
        name = entry.name.partition("=")[2]
        yield Fault(Severity.ERROR, entry.line, f"{name} runs with a random parameter", why, "choose another algorithm")
        return
    given: dict[str, tuple[str, int]] = {}
    for child in entry.value.entries or ():
        parameter, equals, value = child.name.partition("=")
        expected = {name for name, _ in known.parameters} | set(known.optional)
        if not equals or parameter not in expected:
            what = f'{title} does not read the parameter "{shown(child.key)}" here'
            yield Fault(Severity.WARNING, child.line, what, "it has no effect", "take it out", shown(child.name))
            continue
        given[parameter] = (value, child.line)
        if wrong := wrong_value(entry.name, parameter, value, catalogue):
            what = f'the value in "{shown(child.key)}" is not understood'
            yield Fault(Severity.ERROR, child.line, what, *wrong, shown(child.name))
    for parameter, default in known.parameters:
        if parameter not in given:
            written = format_value(parameter, default, catalogue)
            why = "MPICH does not set what a file leaves out, so that it takes whatever value the memory holds"
            yield Fault(
                Severity.ERROR, entry.line, f"{parameter} is not given", why, f'add "{parameter}={written}": {{}}'
            )


def format_value(parameter: str, value: object, catalogue: Catalogue) -> str:
    """``value`` as this version's file writes it."""
    numbers = catalogue.tree_type_numbers
    return str(numbers[str(value)]) if parameter == "tree_type" and numbers else str(value)


def wrong_value(leaf: str, parameter: str, value: str, catalogue: Catalogue) -> tuple[str, str] | None:
    """(why, fix) for a parameter's value that MPICH misreads or cannot use; None for a value that is right."""
    if parameter == "ccl":
        return None
    if parameter == "tree_type" and not catalogue.tree_type_numbers:
        if value in TREE_TYPES:
            return None
        right = TREE_TYPES[int(value)] if re.fullmatch("[0-5]", value) else "kary"
        return ("since 4.3 the kind of tree is a word", f'write "tree_type={right}"')
    if parameter == "tree_type" and not re.fullmatch("[0-5]", value):
        right_number = TREE_TYPES.index(value) if value in TREE_TYPES else 0
        why = "before 4.3 the kind of tree is a number; a word is read as 0, which is kary"
        return (why, f'write "tree_type={right_number}"')
    if not re.fullmatch(r"-?\d{1,9}", value, re.ASCII):
        return ("MPICH reads a whole number, and 0 from anything else", f'write a number after "{parameter}="')
    least = 1 if "tree" in leaf else 2
    if (parameter == "k" or parameter.endswith("_k")) and int(value) < least:
        return (f"the algorithm divides by it or never ends: {least} is the least", f'write "{parameter}={least}"')
    return None
