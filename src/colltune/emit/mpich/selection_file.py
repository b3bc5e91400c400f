"""Rules to MPICH's selection files, and back.

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

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from colltune.catalog import NO_DEVICE, Algorithm, Catalogue, Kind, Need, load
from colltune.catalog.read import read_toml
from colltune.core.decision_table import ByRanks, DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import Region, Rule, RuleSet, Steps
from colltune.core.sample import DEFAULT, NONBLOCKING, Choice, blocking_form
from colltune.emit.mpich.below import GENERAL, Demand, Where, agreeing, demands_of, inner_spans, join, split, table_of
from colltune.emit.mpich.defaults import DefaultTrees, cut_default_trees
from colltune.emit.mpich.tree import (
    BY_SEND_SIZE,
    LARGEST_BOUND,
    Level,
    Tree,
    format_tree,
    grouped,
    levels_of,
    parse_tree,
    ranks_tree,
    settle,
)
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


class Subtrees(NamedTuple):
    """The subtrees of the same place in both files."""

    general: Tree
    ch4: Tree


class MpichEmitter:
    """Emitter for the MPICH version of ``catalogue``, around ``defaults``, the built-in trees of the user's library."""

    name = "mpich"

    def __init__(self, catalogue: Catalogue, defaults: DefaultTrees) -> None:
        self._catalogue = catalogue
        self.defaults = defaults
        self._settled: dict[str, Subtrees] = {}

    @classmethod
    def from_library(cls, library: Path, version: str) -> "MpichEmitter":
        """For the MPICH whose libmpi.so is ``library`` and whose version is ``version``."""
        return cls(load("mpich", version), cut_default_trees(library))

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
            key = f"collective={rule_set.collective}"
            below = self._below(rule_set)
            tuned = self._intra(rule_set, below)
            general[key] = _with_intra(general[key], tuned.general)
            if rule_set.collective not in NONBLOCKING:
                ch4[key] = _with_intra(ch4[key], tuned.ch4)
            on_node = table_of(below, Where.SHARED_MEMORY)
            if on_node != Steps.always(Steps.always(DEFAULT)):
                posix[key] = {"comm_type=intra": self._shared_memory(on_node, rule_set.collective)}
        files = {GENERAL_FILE: format_tree(general), CH4_FILE: format_tree(ch4)}
        return files if posix == (self.defaults.posix or {}) else {**files, POSIX_FILE: format_tree(posix)}

    def agreeing(self, rule_set: RuleSet) -> RuleSet:
        """The part of ``rule_set`` that the files can express: rules that meet below a composition must agree."""
        return agreeing(self._catalogue, rule_set)

    def _below(self, rule_set: RuleSet) -> list[Demand]:
        """The choices that the rules demand for calls below compositions. Raises InputError where they do not agree."""
        table = DecisionTable.of(rule_set)
        if self.agreeing(rule_set) != table.rule_set():
            what = f"rules of {rule_set.collective} do not agree on what runs below a composition in the same call"
            raise InputError(what, "Reduce them by `agreeing` first, or use the live selector")
        found: list[Demand] = []
        for region, choice in table.walk():
            found += demands_of(self._catalogue, choice, region, rule_set.collective) or []
        if self.defaults.posix is None and any(one.choice == GENERAL for one in found):
            raise InputError("the trees of shared memory of this MPICH are not known", "Leave out choices with .mpir")
        return found

    def _shared_memory(self, by_ranks: ByRanks, collective: str) -> Tree:
        """The POSIX subtree below comm_type=intra. A branch that leads nowhere hands the call to the general file."""
        own = (self.defaults.posix or {}).get(f"collective={collective}", {}).get("comm_type=intra", {})
        return ranks_tree(by_ranks, collective, lambda choice: own if choice == DEFAULT else {"comm_type=inter": own})

    def environment(self, directory: Path) -> dict[str, str]:
        return {variable: str(directory / file) for variable, file in _RECORD.files.items()}

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        entry = self._catalogue.collective(collective)
        key = f"collective={collective}"
        try:
            of_device = GENERAL_FILE if collective in NONBLOCKING else CH4_FILE
            trees = [parse_tree(files[name]) for name in (GENERAL_FILE, of_device)]
            intra = Subtrees(*(tree[key]["comm_type=intra"] for tree in trees))
            if intra == self._untouched(collective):
                return RuleSet.always(collective, entry.basis)
            parent = Subtrees(*(tree["comm_hierarchy=parent"] for tree in intra))
            if collective in BY_SEND_SIZE:
                parent = Subtrees(*(tree["is_sendbuf_inplace=no"] for tree in parent))
            leaves = self._leaves(collective)
            rules = tuple(_read_rules(parent, leaves, levels_of(collective), ()))
            posix = parse_tree(files[POSIX_FILE]) if POSIX_FILE in files else {}
            return self._with_below(RuleSet(collective, entry.basis, rules), intra.general, posix)
        except (KeyError, ValueError) as error:
            what = f"the rules of {collective} are not as colltune writes them: {error}"
            raise InputError(what, "Write the files again") from None

    def _with_below(self, rule_set: RuleSet, intra: Tree, posix: Tree) -> RuleSet:
        """``rule_set`` with what ``intra``, of the general file, and ``posix`` put below its compositions."""
        name = rule_set.collective
        own = (self.defaults.posix or {}).get(f"collective={name}", {}).get("comm_type=intra", {})
        on_node = posix.get(f"collective={name}", {}).get("comm_type=intra", own)
        key = "comm_hierarchy=any" if self.version >= (5, 0) else "comm_hierarchy=node_roots"
        leaders = intra.get(key, intra["comm_hierarchy=any"])
        default = self._default(name).general
        known = {
            json.dumps(self._leaf(name, choice).general): choice
            for whole in self._catalogue.choices(name)
            if (parts := split(self._catalogue, name, whole)) is not None and (choice := parts[1]) != DEFAULT
        }

        def whole(region: Region, choice: Choice) -> Choice:
            algorithm = None if choice == DEFAULT else self._catalogue.algorithm(name, choice)
            if algorithm is None or not algorithm.leads or split(self._catalogue, name, choice) is None:
                return choice
            nodes, node_ranks, sizes = inner_spans(region)
            size = sizes.low if sizes.high is None else sizes.high
            found = DEFAULT if nodes.is_empty else _read_below(leaders, default, known, nodes.low, size)
            general = not node_ranks.is_empty and _leads_nowhere(on_node, own, node_ranks.low, size)
            general = general and algorithm.shares_nodes and not nodes.is_empty
            return join(choice, found, general_on_node=general)

        # Neighbours that say the same here may differ below, so that rules are not to be merged before they are whole.
        rules = tuple(replace(rule, choice=whole(region, rule.choice)) for region, rule in rule_set.regions())
        return RuleSet(name, rule_set.basis, rules)

    def _untouched(self, collective: str) -> Subtrees:
        """The library's own subtrees of ``collective`` on an intracommunicator, as they are."""
        key = f"collective={collective}"
        # The device has no part in a non-blocking collective: there the two trees of a pair are one and the same.
        of_device = self.defaults.general if collective in NONBLOCKING else self.defaults.ch4
        if key not in self.defaults.general or key not in of_device:
            raise InputError(f"this MPICH has no selection tree of {collective}", "Leave this collective out")
        pair = Subtrees(self.defaults.general[key], of_device[key])
        return Subtrees(*(tree.get("comm_type=intra", tree) for tree in pair))

    def _default(self, collective: str) -> Subtrees:
        """The same, valid below any operator."""
        if collective not in self._settled:
            self._settled[collective] = Subtrees(*map(settle, self._untouched(collective)))
        return self._settled[collective]

    def _intra(self, rule_set: RuleSet, below: Sequence[Demand]) -> Subtrees:
        """The subtrees below comm_type=intra.

        One rank keeps the default, and so do the communicators that MPICH makes inside a parent, but for the calls of
        ``below``. A communicator with one rank per node is no parent: before 5.0 it is called flat; since then only its
        average ppn tells it from the inner ones, which have none.
        """
        collective = rule_set.collective
        if rule_set.basis is not self._catalogue.collective(collective).basis:
            raise InputError(f"the rules of {collective} compare sizes that MPICH does not", "Distil them again")
        default = self._default(collective)
        levels = levels_of(collective)
        by_ppn = DecisionTable.of(rule_set).by_ppn
        tuned = self._write(by_ppn, levels, collective)
        single = self._write(by_ppn.at(1), levels[1:], collective)
        if collective in BY_SEND_SIZE:
            # The size of a call in place must not be compared: its send count and type are not significant.
            tuned = _branch({"is_sendbuf_inplace=yes": default, "is_sendbuf_inplace=no": tuned})
            single = _branch({"is_sendbuf_inplace=yes": default, "is_sendbuf_inplace=no": single})
        flat = "comm_hierarchy=flat" if self.version < (5, 0) else "comm_avg_ppn<=1"
        branches = {"comm_size<=1": default, "comm_hierarchy=parent": tuned, flat: single}
        # What is left for the last of these are the communicators of nodes, and both kinds since 5.0.
        rest = {Where.LEADERS: "node_roots", Where.NODE: "any", Where.INSIDE: "any"}
        for where, hierarchy in rest.items() if below else ():
            tree = ranks_tree(table_of(below, where), collective, lambda choice: self._leaf(collective, choice).general)
            if tree != default.general:
                if where is Where.NODE:
                    branches.setdefault("comm_hierarchy=node_roots", default)
                branches[f"comm_hierarchy={hierarchy}"] = Subtrees(tree, default.ch4)
        branches.setdefault("comm_hierarchy=any", default)
        return _branch(branches)

    def _write(self, decided: Steps[Any] | Choice, levels: Sequence[Level], collective: str) -> Subtrees:
        """The subtrees of ``decided``, which is nested as deeply as there are ``levels``; at their end, its choice."""
        if isinstance(decided, Choice):
            return self._leaf(collective, decided)
        if not levels:
            return self._leaf(collective, decided.last)
        level, *deeper = levels
        steps: dict[int | None, Subtrees] = {}
        for bound, value in decided.pairs:
            # Of two bounds beyond the largest the first decides, as it does among rules.
            cut = None if bound is None else min(bound, LARGEST_BOUND)
            steps.setdefault(cut, self._write(value, deeper, collective))
        return grouped(level.operator, level.rest, list(steps.items()), _branch)

    def _leaf(self, collective: str, choice: Choice) -> Subtrees:
        """The subtrees for ``choice`` in both files, behind its guards."""
        default = self._default(collective)
        if choice == DEFAULT:
            return default
        algorithm = self._catalogue.algorithm(collective, choice)
        if not algorithm.in_file:
            raise InputError(f"{collective} {choice} cannot be written to a file", "Use the live selector")
        if algorithm.kind is Kind.COMPOSITION:
            leaf = Subtrees(default.general, {f"composition={algorithm.selection_name}": {}})
        else:
            written: Tree = {f"{k}={v}": {} for k, v in self._catalogue.selection_parameters(collective, choice)}
            network_only = self._catalogue.collective(collective).network_only
            flat = {f"algorithm={algorithm.selection_name}": written}
            leaf = Subtrees(
                flat, flat if network_only is NO_DEVICE else {f"composition={network_only.selection_name}": {}}
            )
        for need in _guards(algorithm):
            operator, holds, rest = _GUARDS[need]
            leaf = _branch({operator: leaf, rest: default} if holds else {operator: default, rest: leaf})
        if algorithm.kind is Kind.COMPOSITION:
            leaf = Subtrees(default.general, leaf.ch4)
        return leaf

    def _leaves(self, collective: str) -> dict[str, Choice]:
        """What is written for each choice; of a composition, whatever runs below it, the same."""
        found = self._catalogue.choices(collective) if self._catalogue.collective(collective).in_file else (DEFAULT,)
        return {_text(self._leaf(collective, choice)): choice for choice in reversed(found)}


def _read_below(tree: Tree, default: Tree, known: Mapping[str, Choice], ranks: int, size: int) -> Choice:
    """What _ranks_tree wrote for one inner call. Raises ValueError."""
    found = _descend(tree, ranks, size, lambda some: some == default or json.dumps(some) in known)
    return DEFAULT if found == default else known[json.dumps(found)]


def _leads_nowhere(tree: Tree, own: Tree, ranks: int, size: int) -> bool:
    nowhere: Tree = {"comm_type=inter": own}
    return _descend(tree, ranks, size, lambda some: some in (own, nowhere)) == nowhere


def _descend(tree: Tree, ranks: int, size: int, is_end: Callable[[Tree], bool]) -> Tree:
    while not is_end(tree):
        for key, subtree in tree.items():
            operator, _, bound = key.partition("<=")
            if not bound or (ranks if operator == "comm_size" else size) <= int(bound):
                tree = subtree
                break
        else:
            raise ValueError(f"nothing stands for {ranks} ranks and {size} bytes")
    return tree


def _guards(algorithm: Algorithm) -> list[Need]:
    """The preconditions to ask for in front of ``algorithm``, in a fixed order."""
    apart = algorithm.needs - _GUARDS.keys() - {Need.NOT_IN_PLACE}  # calls in place are kept apart in _intra
    if apart:
        raise InputError(f"{algorithm.selection_name} needs {sorted(apart)}, which cannot be guarded", "Leave it out")
    return [need for need in _GUARDS if need in algorithm.needs]


def _with_intra(tree: Tree, tuned: Tree) -> Tree:
    """``tree`` of a collective with ``tuned`` within a group; scan and exscan, made for nothing else, do not ask."""
    return {**(tree if "comm_type=intra" in tree else {}), "comm_type=intra": tuned}


def _branch(branches: Mapping[str, Subtrees]) -> Subtrees:
    """One object in each file with these keys."""
    return Subtrees(
        {key: pair.general for key, pair in branches.items()}, {key: pair.ch4 for key, pair in branches.items()}
    )


def _text(pair: Subtrees) -> str:
    return json.dumps(pair)


def _read_rules(
    pair: Subtrees,
    leaves: Mapping[str, Choice],
    levels: Sequence[Level],
    bounds: tuple[int | None, ...],
    most: int | None = None,
) -> Iterator[Rule]:
    """The rules that _write wrote as ``pair``; ``bounds`` are those of the levels above. Raises ValueError.

    ``most``: the bound of the part of the first level that ``pair`` is.
    """
    choice = leaves.get(_text(pair))
    if choice is not None:
        max_ppn, max_ranks, max_size = (*bounds, None, None, None)[:3]
        yield Rule(max_ppn, max_ranks, max_size, choice)
        return
    if not levels:
        raise ValueError(f"no choice is written as {_text(pair)[:200]}")
    level, *deeper = levels
    if not next(iter(pair.general), "").startswith(f"{level.operator}<="):
        yield from _read_rules(pair, leaves, deeper, (*bounds, None))
        return
    if list(pair.general) != list(pair.ch4):
        raise ValueError(f"the two files differ in {list(pair.general)} and {list(pair.ch4)}")
    for key, general in pair.general.items():
        bound = most if key == level.rest else int(key.removeprefix(f"{level.operator}<="))
        below = Subtrees(general, pair.ch4[key])
        if _text(below) not in leaves and next(iter(general), "").startswith(f"{level.operator}<="):
            yield from _read_rules(below, leaves, levels, bounds, bound)  # the a group of this level
        else:
            yield from _read_rules(below, leaves, deeper, (*bounds, bound))
