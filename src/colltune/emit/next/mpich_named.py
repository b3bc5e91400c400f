"""Rules to the named trees that MPICH reads after its redesigned selection, and back.

The library's own tree of a collective is copied under another name, and a tree of ours takes its place: rules, each
choice behind its preconditions, and a call of the copy for everything else. Ranks per node cannot be asked for, and
compositions are gone.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from colltune.catalog import Catalogue, Kind, Need
from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import BySize, DecisionTable
from colltune.core.errors import InputError, on_os_error
from colltune.core.rules import RuleSet
from colltune.core.steps import Steps
from colltune.emit.next import mpich_named_grammar as grammar
from colltune.emit.without_ppn import by_ranks_of, merge_ppn
from colltune.machine.files import LARGEST_BYTES, parse_json, read_file

NAMED_FILE = "mpich-coll-named.json"
_OWN = "colltune-own"
_GUARDS = {
    Need.POWER_OF_TWO: "pof2",
    Need.PARENT_COMM: "hierarchical",
    Need.COMMUTATIVE: "commutative",
    Need.BUILTIN_OP: "builtin_op",
    Need.REGULAR_COUNTS: "block_regular",
    Need.COUNT_GE_POF2: "count_ge_pof2",
    Need.NOT_IN_PLACE: "!inplace",
}
# What no build of that MPICH has run from a file of ours.
_NOT_TRIED = frozenset({"exscan", "scan"})
_START = re.compile(rb'\{\s*"name=main"')
# A tree as it is in the file: an object, or a call of another one.
NamedTree = dict[str, object] | str


class MpichNamedEmitter:
    """Emitter for MPICH after its redesign; ``own``: the library's own trees by name (``cut_named_trees``)."""

    name = "mpich"

    def __init__(self, catalogue: Catalogue, own: Mapping[str, NamedTree]) -> None:
        self._catalogue = catalogue
        self._own = own

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """The part of ``rule_set`` that the file can express: no ranks per node, and no composition."""
        return merge_ppn(rule_set, shapes, lambda choice, _: choice == DEFAULT or self._writes(rule_set, choice))

    def _writes(self, rule_set: RuleSet, choice: Choice) -> bool:
        algorithm = self._catalogue.algorithm(rule_set.collective, choice)
        known = None if rule_set.collective in _NOT_TRIED else grammar.ALGORITHMS.get(algorithm.selection_name)
        if algorithm.kind is Kind.COMPOSITION or algorithm.composed or known is None:
            return False
        if not algorithm.written_by_file(choice):
            return False
        given = {name for name, _ in self._catalogue.selection_parameters(rule_set.collective, choice)}
        return set(known.parameters) <= given and algorithm.needs <= _GUARDS.keys()

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        trees: dict[str, NamedTree] = {}
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            if rule_set.departs:
                name = f"{rule_set.collective}-intra-auto"
                if name not in self._own:
                    raise InputError(f"this MPICH has no selection tree {name}", "Leave this collective out")
                trees[f"{grammar.NAME}{_copy_of(rule_set)}"] = self._own[name]
                trees[f"{grammar.NAME}{name}"] = self._tree(rule_set)
        text = json.dumps(trees, indent=1).encode("ascii") + b"\n"
        # The library reads the file as a string, which the last page ends only where the file does not fill it.
        return {NAMED_FILE: text + b"\n" if len(text) % 4096 == 0 else text}

    def _tree(self, rule_set: RuleSet) -> dict[str, object]:
        if rule_set.basis is not self._catalogue.collective(rule_set.collective).basis:
            raise InputError(
                f"the rules of {rule_set.collective} compare sizes that MPICH does not", "Distil them again"
            )
        by_ranks = by_ranks_of(rule_set, "MPICH's file of named trees")
        # A single rank, and a call in place whose size arguments have no meaning, keep the library's own decision.
        tree: dict[str, object] = {"comm_size<=1": f"{grammar.CALL}{_copy_of(rule_set)}"}
        if rule_set.collective == "alltoall":
            tree["inplace"] = f"{grammar.CALL}{_copy_of(rule_set)}"
        for ranks, by_size in by_ranks.pairs:
            if ranks is None or ranks > 1:
                tree.setdefault(_key("comm_size", ranks), self._sizes(rule_set, by_size))
        return tree

    def _sizes(self, rule_set: RuleSet, by_size: BySize) -> NamedTree:
        if len(by_size.pairs) == 1:
            return self._leaf(rule_set, by_size.last)
        operator = "avg_msg_size" if rule_set.collective in grammar.WITH_AVERAGE else "total_msg_size"
        branches: dict[str, object] = {}
        for size, choice in by_size.pairs:
            branches.setdefault(_key(operator, size), self._leaf(rule_set, choice))
        return branches

    def _leaf(self, rule_set: RuleSet, choice: Choice) -> NamedTree:
        """``choice`` behind its preconditions, and the library's own decision for calls that fail one."""
        own = f"{grammar.CALL}{_copy_of(rule_set)}"
        if choice == DEFAULT:
            return own
        if not self._writes(rule_set, choice):
            raise InputError(
                f"{rule_set.collective} {choice} cannot be written for this MPICH",
                "Reduce the rules by `expressible` first",
            )
        algorithm = self._catalogue.algorithm(rule_set.collective, choice)
        wanted = grammar.ALGORITHMS[algorithm.selection_name].parameters
        given = dict(self._catalogue.selection_parameters(rule_set.collective, choice))
        tree: NamedTree = {
            grammar.ALGORITHM + algorithm.selection_name: {f"{name}={given[name]}": {} for name in wanted}
        }
        for need, condition in reversed(_GUARDS.items()):
            if need in algorithm.needs:
                tree = {condition: tree, grammar.ANY: own}
        return tree

    def environment(self, directory: Path) -> dict[str, str]:
        return {grammar.VARIABLE: str(directory / NAMED_FILE)}

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        nothing = RuleSet.always(collective, self._catalogue.collective(collective).basis)
        try:
            trees = parse_json(files[NAMED_FILE])
            if f"{grammar.NAME}{collective}-intra-auto" not in trees:
                return nothing
            tree = trees[f"{grammar.NAME}{collective}-intra-auto"]
            known = {
                json.dumps(self._leaf(nothing, choice)): choice
                for choice in reversed(self._catalogue.choices(collective))
                if choice == DEFAULT or self._writes(nothing, choice)
            }
            pairs = [
                (_bound(key), self._read_sizes(known, value))
                for key, value in tree.items()
                if key not in ("comm_size<=1", "inplace")
            ]
            table = DecisionTable(collective, nothing.basis, Steps.always(Steps.of(pairs)))
            return table.rule_set()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"{NAMED_FILE}: the rules of {collective} are not as colltune writes them: {error!r}"
            raise InputError(what, "Write the file again") from None

    @staticmethod
    def _read_sizes(known: Mapping[str, Choice], value: NamedTree) -> BySize:
        if (text := json.dumps(value)) in known:
            return Steps.always(known[text])
        if not isinstance(value, dict):
            raise ValueError(f"{text[:80]} is no tree of ours")
        return Steps.of((_bound(key), known[json.dumps(leaf)]) for key, leaf in value.items())


def _copy_of(rule_set: RuleSet) -> str:
    """The name under which the library's own tree goes on."""
    return f"{rule_set.collective}-{_OWN}"


def _key(operator: str, bound: int | None) -> str:
    return grammar.ANY if bound is None else f"{operator}<={min(bound, grammar.LARGEST_BOUND)}"


def _bound(key: str) -> int | None:
    return None if key == grammar.ANY else int(key.partition("<=")[2])


def holds_named_trees(library: Path) -> bool:
    """Whether ``library`` (libmpi.so) selects by named trees. False also for a file that cannot be read."""
    try:
        return _START.search(read_file(library, LARGEST_BYTES, link=True)) is not None
    except OSError:
        return False


def cut_named_trees(library: Path) -> dict[str, NamedTree]:
    """The library's own trees by name, out of ``library`` (libmpi.so): JSON among its constant strings.

    Raises InputError where they are not there: an MPICH before the redesign.
    """
    with on_os_error(f"cannot read {library}", "Name the libmpi.so of your MPICH"):
        data = read_file(library, LARGEST_BYTES, link=True)
    for match in _START.finditer(data):
        try:
            trees = parse_json(data[match.start() : data.index(b"\0", match.start())])
        except ValueError:
            continue
        return {key.removeprefix(grammar.NAME): tree for key, tree in trees.items()}
    raise InputError(f"{library} holds no named selection trees", "This MPICH reads the older files: tune it")
