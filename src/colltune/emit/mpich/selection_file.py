"""Rules to MPICH's selection files.

Three files decide together. The ch4 file says whether the device combines network and shared memory, or hands all ranks
to the general file, which names the algorithm of every collective. A flat choice is therefore written in both; a
composition in the ch4 file, and what runs below it in the general one, for the communicators inside. Where these are
not to use shared memory's own algorithms, a POSIX file says so.

MPICH does not check the choices of a file: an algorithm outside its preconditions aborts the program or returns wrong
results. So every choice is written behind its preconditions. The library's own default tree follows for calls that
fail one of them, and for calls that were not tuned: communicators inside MPICH, intercommunicators, single ranks.

With the choice ``nb`` of a blocking collective MPICH makes the non-blocking call and waits for it. So ``nb`` of
allgather runs whatever the rules of iallgather say. A file cannot tell the two calls apart: they come on
the same communicator. Measured under the library's own trees, ``nb`` would be another algorithm with such a file.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from operator import itemgetter
from pathlib import Path

from colltune.catalog import Algorithm, Catalogue, Kind, Need
from colltune.catalog.read import read_toml
from colltune.core.decision_table import ByRanks, DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, NONBLOCKING, Choice, blocking_form
from colltune.emit.mpich.below import GENERAL, Demand, Where, agreeing, demands_of, table_of
from colltune.emit.mpich.defaults import DefaultTrees
from colltune.emit.mpich.pruned import Known, pruned
from colltune.emit.mpich.tree import BY_SEND_SIZE, Tree, format_small, levels_of, rules_tree, settle
from colltune.mpi.installation import Library
from colltune.mpi.libraries import record_of

NB = Choice("nb")


def runs_nb(rule_set: RuleSet) -> bool:
    """Whether some rule hands calls to the non-blocking form."""
    return any(choice == NB for _, choice in DecisionTable.of(rule_set).walk())


def require_apart(rule_sets: Iterable[RuleSet]) -> None:
    """Raises InputError where a collective has a rule for ``nb``, and its non-blocking form has rules."""
    by_name = {rule_set.collective: rule_set for rule_set in rule_sets}
    for name in NONBLOCKING:
        blocking = by_name.get(blocking_form(name))
        if name in by_name and by_name[name].departs and blocking is not None and runs_nb(blocking):
            raise InputError(
                f"a rule of {blocking.collective} makes the non-blocking call, which the rules of {name} would change",
                f"Tune {name} into another directory, or {blocking.collective} and {name} together",
            )


_RECORD = record_of(Library.MPICH)
GENERAL_FILE, CH4_FILE, POSIX_FILE = _RECORD.files.values()

# How a precondition is tested: (operator, whether it holds where the operator does, the operator for the rest).
_GUARDED = (Need.POWER_OF_TWO, Need.ONE_NODE, Need.PARENT_COMM, Need.COMMUTATIVE, Need.BUILTIN_OP, Need.REGULAR_COUNTS)
_tested = itemgetter("operator", "holds", "rest")
_GUARDS = {need: _tested(read_toml("mpich_leaves")["guards"][need]) for need in (*_GUARDED, Need.COUNT_GE_POF2)}


# What a file writes for a choice of a collective, given the library's own subtree of that.
Leaf = Callable[[str, Tree, Choice], Tree]


class MpichEmitter:
    """Emitter for the MPICH version of ``catalogue``, around ``defaults``, the built-in trees of the user's library."""

    name = "mpich"

    def __init__(self, catalogue: Catalogue, defaults: DefaultTrees) -> None:
        self._catalogue = catalogue
        self.defaults = defaults
        self._group = Known(catalogue.release).given("comm_type=intra", holds=True)

    @property
    def version(self) -> tuple[int, int]:
        return self._catalogue.release

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        """The POSIX file is among them only where a rule needs it: the library's own is in force without.

        Raises InputError as ``require_apart`` too.
        """
        require_apart(rule_sets)
        general, ch4, posix = dict(self.defaults.general), dict(self.defaults.ch4), dict(self.defaults.posix or {})
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            name, below = rule_set.collective, self._below(rule_set)
            key = f"collective={name}"
            general[key] = _with_intra(general, key, partial(self._intra, rule_set, below, self._general))
            if name not in NONBLOCKING:
                ch4[key] = _with_intra(ch4, key, partial(self._intra, rule_set, (), self._ch4))
            on_node = table_of(below, Where.SHARED_MEMORY)
            if on_node != Steps.always(Steps.always(DEFAULT)):
                posix[key] = {"comm_type=intra": self._shared_memory(on_node, name)}
        files = {GENERAL_FILE: format_small(general), CH4_FILE: format_small(ch4)}
        return files if posix == (self.defaults.posix or {}) else {**files, POSIX_FILE: format_small(posix)}

    def agreeing(self, rule_set: RuleSet) -> RuleSet:
        """The part of ``rule_set`` that the files can express: rules that meet below a composition must agree."""
        return agreeing(self._catalogue, rule_set)

    def _below(self, rule_set: RuleSet) -> list[Demand]:
        """The choices that the rules demand for calls below compositions. Raises InputError where they do not agree."""
        table = DecisionTable.of(rule_set)
        if self.agreeing(rule_set) != table.rule_set():
            what = f"rules of {rule_set.collective} do not agree on what runs below a composition in the same call"
            raise InputError(what, "Reduce them by `agreeing` first, or use the live selector")
        demands: list[Demand] = []
        for region, choice in table.walk():
            demands += demands_of(self._catalogue, choice, region, rule_set.collective) or []
        if self.defaults.posix is None and any(demand.choice == GENERAL for demand in demands):
            raise InputError("the trees of shared memory of this MPICH are not known", "Leave out choices with .mpir")
        return demands

    def _shared_memory(self, by_ranks: ByRanks, collective: str) -> Tree:
        """The POSIX subtree below comm_type=intra. A branch that leads nowhere hands the call to the general file."""
        own = (self.defaults.posix or {}).get(f"collective={collective}", {}).get("comm_type=intra", {})
        nowhere = {"comm_type=inter": own}
        levels = levels_of(collective)[1:]
        return pruned(rules_tree(by_ranks, levels, lambda choice: own if choice == DEFAULT else nowhere), self._group)

    def environment(self, directory: Path) -> dict[str, str]:
        return {variable: str(directory / file) for variable, file in _RECORD.files.items()}

    def _intra(self, rule_set: RuleSet, below: Sequence[Demand], leaf: Leaf, default: Tree) -> Tree:
        """The subtree of a file below comm_type=intra, where ``default`` is the library's own.

        One rank keeps the default, and so do the communicators that MPICH makes inside a parent, but for the calls of
        ``below``. A communicator with one rank per node is no parent: before 5.0 it is called flat; since then only its
        average ppn tells it from the inner ones, which have none.
        """
        collective = rule_set.collective
        if rule_set.basis is not self._catalogue.collective(collective).basis:
            raise InputError(f"the rules of {collective} compare sizes that MPICH does not", "Distil them again")
        written = cache(partial(leaf, collective, default))
        levels = levels_of(collective)
        by_ppn = DecisionTable.of(rule_set).by_ppn
        tuned, single = rules_tree(by_ppn, levels, written), rules_tree(by_ppn.at(1), levels[1:], written)
        if collective in BY_SEND_SIZE:
            # The size of a call in place must not be compared: its send count and type are not significant.
            tuned = {"is_sendbuf_inplace=yes": default, "is_sendbuf_inplace=no": tuned}
            single = {"is_sendbuf_inplace=yes": default, "is_sendbuf_inplace=no": single}
        flat = "comm_hierarchy=flat" if self.version < (5, 0) else "comm_avg_ppn<=1"
        branches = {"comm_size<=1": default, "comm_hierarchy=parent": tuned, flat: single}
        # What is left for the last of these are the communicators of nodes, and both kinds since 5.0.
        rest = {Where.LEADERS: "node_roots", Where.NODE: "any", Where.INSIDE: "any"}
        for where, hierarchy in rest.items():
            inner = table_of(below, where)
            if inner != Steps.always(Steps.always(DEFAULT)):
                if where is Where.NODE:
                    branches.setdefault("comm_hierarchy=node_roots", default)
                branches[f"comm_hierarchy={hierarchy}"] = rules_tree(inner, levels[1:], written)
        branches.setdefault("comm_hierarchy=any", default)
        return pruned(branches, self._group)

    def _general(self, collective: str, default: Tree, choice: Choice) -> Tree:
        """The subtree for ``choice`` in the general file, behind its guards."""
        algorithm = self._written(collective, choice)
        if algorithm is None or algorithm.kind is Kind.COMPOSITION:
            return default
        parameters = self._catalogue.selection_parameters(collective, choice)
        leaf: Tree = {f"algorithm={algorithm.selection_name}": {f"{k}={v}": {} for k, v in parameters}}
        return _guarded(algorithm, leaf, default)

    def _ch4(self, collective: str, default: Tree, choice: Choice) -> Tree:
        """The same in the file of the device, which hands a flat choice to the general file."""
        algorithm = self._written(collective, choice)
        if algorithm is None:
            return default
        composition = algorithm.kind is Kind.COMPOSITION
        named = algorithm if composition else self._catalogue.collective(collective).network_only
        return _guarded(algorithm, {f"composition={named.selection_name}": {}}, default)

    def _written(self, collective: str, choice: Choice) -> Algorithm | None:
        """The algorithm of ``choice``; None for the library's own. Raises InputError where no file can say it."""
        algorithm = None if choice == DEFAULT else self._catalogue.algorithm(collective, choice)
        if algorithm is not None and not algorithm.in_file:
            raise InputError(f"{collective} {choice} cannot be written to a file", "Use the live selector")
        return algorithm


def _guarded(algorithm: Algorithm, leaf: Tree, default: Tree) -> Tree:
    """``leaf`` of ``algorithm`` for the calls that meet its preconditions, ``default`` for others."""
    apart = algorithm.needs - _GUARDS.keys() - {Need.NOT_IN_PLACE}  # calls in place are kept apart in _intra
    if apart:
        raise InputError(f"{algorithm.selection_name} needs {sorted(apart)}, which cannot be guarded", "Leave it out")
    for need in _GUARDS:
        if need in algorithm.needs:
            operator, holds, rest = _GUARDS[need]
            leaf = {operator: leaf, rest: default} if holds else {operator: default, rest: leaf}
    return leaf


def _with_intra(trees: Tree, key: str, tuned: Callable[[Tree], Tree]) -> Tree:
    """The tree of ``trees`` at ``key``, ``tuned`` within a group; scan and exscan, made for nothing else, do not ask.

    ``tuned`` makes it of the library's own, valid below any operator.
    """
    if key not in trees:
        raise InputError(f"this MPICH has no selection tree of {key.partition('=')[2]}", "Leave this collective out")
    tree = trees[key]
    own = settle(tree.get("comm_type=intra", tree))
    return {**(tree if "comm_type=intra" in tree else {}), "comm_type=intra": tuned(own)}
