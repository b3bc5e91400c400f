"""Makes a copy of a selection file without its faults: rules behind guards, and the library's defaults for the rest.

Rules that MPICH can follow are kept. Bounds are sorted, "any" last. The library's default serves: the other calls of a
comparison that has no rule for them, calls without a rule, calls that an algorithm cannot serve, an unknown algorithm,
and a group of rules with an operator that does not exist or does not apply to the collective.
"""

from itertools import groupby
from typing import NamedTuple

from colltune.catalog import Catalogue
from colltune.core.errors import InputError
from colltune.emit.lint import operators
from colltune.emit.lint.json_text import JsonEntry, JsonValue, NotJsonError, read_json
from colltune.emit.lint.leaf import (
    GUARDS,
    TREE_TYPES,
    FileKind,
    LeafName,
    format_value,
    leaf_names,
    unmet_needs,
    wrong_value,
)
from colltune.emit.lint.operators import CallCondition, CallRegion, Operator
from colltune.emit.lint.selection_file import kind_of, lint_files
from colltune.emit.lint.walk import LEAF
from colltune.emit.mpich.defaults import DefaultTrees
from colltune.emit.mpich.tree import Tree, format_tree, settle

_REST = "comm_size=any"  # the one word for "all other calls" that every version reads


def fix_file(data: bytes, version: str, catalogue: Catalogue, defaults: DefaultTrees) -> bytes:
    """The corrected copy of a file; ``defaults`` are the trees of the library that is to read it.

    Lint finds nothing in the copy. Raises InputError for what is not JSON, and where no such copy can be made.
    """
    try:
        root = read_json(data)
    except NotJsonError as error:
        raise InputError(
            f"the file {error.what}, in line {error.line}", "There is nothing to fix: write it again"
        ) from None
    fixed = format_tree(_Repair(kind_of(root, catalogue), catalogue, defaults).file(root))
    left = lint_files({"the fixed file": fixed}, version, catalogue)
    if left:
        raise InputError(f"no safe copy can be made: {left[0].what}", "Write the rules again")
    return fixed


class _Rule(NamedTuple):
    """One of the siblings: the key to write, what it asks, and the rules below."""

    key: str
    operator: Operator
    below: JsonValue


class _Unusable(Exception):  # noqa: N818  it leads to the default, it is no error
    """A group of rules that MPICH cannot follow as it was meant."""


class _Repair:
    def __init__(self, kind: FileKind, catalogue: Catalogue, defaults: DefaultTrees) -> None:
        self._kind = kind
        self._catalogue = catalogue
        self._version = catalogue.release
        self._defaults = defaults.general if kind is FileKind.GENERAL else defaults.ch4
        self._fallbacks: dict[str, Tree] = {}

    def file(self, root: JsonValue) -> Tree:
        fixed: Tree = {}
        order = [key.replace(" ", "").removeprefix("collective=") for key in self._defaults]
        for collective in dict.fromkeys((*order, *sorted(operators.COLLECTIVES))):
            rules = _of_collective(root, collective)
            if rules is not None and self._fallback(collective):
                region = CallRegion(frozenset({collective}))
                if collective in operators.INTRA_ONLY or self._kind is FileKind.POSIX:
                    region = region.within(CallCondition("comm_type", frozenset({"intra"})))
                fixed[f"collective={collective}"] = self._rules(rules, collective, region)
            elif self._kind is FileKind.GENERAL and self._fallback(collective):
                fixed[f"collective={collective}"] = self._defaults[f"collective={collective}"]
        return fixed

    def _fallback(self, collective: str) -> Tree:
        """A subtree for any call of ``collective``, valid below any operator; empty where the library has none."""
        if collective not in self._fallbacks:
            self._fallbacks[collective] = self._make_fallback(collective)
        return self._fallbacks[collective]

    def _make_fallback(self, collective: str) -> Tree:
        if self._kind is FileKind.POSIX:
            name = f"MPIDI_POSIX_mpi_{collective}_release_gather"
            # Never true inside a node, so that MPICH turns to the general file.
            return {"comm_type=inter": {f"algorithm={name}": {}}} if name in leaf_names(self._catalogue) else {}
        own = self._defaults.get(f"collective={collective}")
        return settle(own) if own else {}

    def _rules(self, node: JsonValue, collective: str, region: CallRegion) -> Tree:
        try:
            if not node.entries:
                raise _Unusable
            entries = {entry.key: entry for entry in node.entries}  # of two equal keys MPICH keeps the last
            leaf = next((entry for entry in entries.values() if entry.name.startswith(LEAF)), None)
            if leaf is not None:
                return self._leaf(leaf, collective, region)
            rules = [self._rule(entry) for entry in entries.values()]
            return self._siblings(_in_order(rules), collective, region)
        except _Unusable:
            return self._fallback(collective)

    def _rule(self, entry: JsonEntry) -> _Rule:
        # "<" is taken for what it says, and written so that it means that in any place.
        operator = operators.parse_operator(entry.name, self._version, early=True)
        if isinstance(operator, operators.Unknown):
            if entry.name == "any" or entry.name.endswith("=any"):
                return _Rule(_REST, Operator(CallCondition()), entry.value)
            raise _Unusable
        if operators.misread(operator) and not (operator.number or "").isdecimal():
            raise _Unusable
        return _Rule(_written(entry, operator), operator, entry.value)

    def _siblings(self, rules: list[_Rule], collective: str, region: CallRegion) -> Tree:
        fixed: Tree = {}
        rest, alone = region, CallRegion(operators.COLLECTIVES)
        last = None
        for rule in rules:
            condition = rule.operator.condition
            if operators.undefined_for(rule.operator, region.collectives):
                raise _Unusable
            if operators.differs_between_ranks(rule.operator, rest):
                if collective not in ("alltoall", "ialltoall"):
                    raise _Unusable
                not_in_place = region.within(CallCondition("is_sendbuf_inplace", frozenset({"no"})))
                return {
                    "is_sendbuf_inplace=yes": self._fallback(collective),
                    "is_sendbuf_inplace=no": self._siblings(rules, collective, not_in_place),
                }
            if not alone.within(condition).is_empty:
                fixed[rule.key] = self._rules(rule.below, collective, rest.within(condition))
                last = rule.operator
            rest, alone = rest.without(condition), alone.without(condition)
        if last is None:
            raise _Unusable
        if last.compares or (self._kind is FileKind.GENERAL and not rest.is_empty):
            fixed[_REST] = self._fallback(collective)
        return fixed

    def _leaf(self, entry: JsonEntry, collective: str, region: CallRegion) -> Tree:
        name = entry.name.partition("=")[2]
        known = leaf_names(self._catalogue).get(name)
        if known is None or known.kind is not self._kind or known.collective != collective:
            raise _Unusable
        if known.unread or known.warning:
            raise _Unusable
        prefix = "composition" if self._kind is FileKind.CH4 else "algorithm"
        fixed: Tree = {f"{prefix}={name}": self._parameters(entry, known)}
        needs = [] if region.is_empty else unmet_needs(name, known, region)
        for need in reversed(needs):
            guard = GUARDS.get(need)
            if guard is None:
                raise _Unusable
            default = self._fallback(collective)
            if guard.holds:
                fixed = {guard.operator: fixed, guard.rest: default}
            else:
                fixed = {guard.operator: default, guard.rest: fixed}
        return fixed

    def _parameters(self, entry: JsonEntry, known: LeafName) -> Tree:
        given = {}
        for child in entry.value.entries or ():
            name, _, value = child.name.partition("=")
            given[name] = value
        fixed: Tree = {}
        for name, default in known.parameters:
            value = given.get(name, "")
            if name == "tree_type" and self._catalogue.tree_type_numbers and value in TREE_TYPES:
                value = str(TREE_TYPES.index(value))
            elif name == "tree_type" and not self._catalogue.tree_type_numbers and value in ("0", "1", "2"):
                value = TREE_TYPES[int(value)]
            if not value or wrong_value(entry.name, name, value, self._catalogue):
                value = format_value(name, default, self._catalogue)
            fixed[f"{name}={value}"] = {}
        for name in known.optional:
            if name in given and not wrong_value(entry.name, name, given[name], self._catalogue):
                fixed[f"{name}={given[name]}"] = {}
        return fixed


def _of_collective(node: JsonValue, collective: str) -> JsonValue | None:
    """The rules of one collective, with the operators from above all collectives moved below it."""
    own, around = None, []
    for entry in node.entries or ():
        if entry.name == f"collective={collective}":
            own = entry.value
        elif not entry.name.startswith(("collective=", *LEAF)):
            below = _of_collective(entry.value, collective)
            if below is not None:
                around.append(JsonEntry(entry.key, entry.line, below))
    if not around:
        return own
    if own is not None:
        around.append(JsonEntry(_REST, own.line, own))
    return JsonValue(node.line, tuple(around))


def _in_order(rules: list[_Rule]) -> list[_Rule]:
    """Bounds that follow each other from the smallest up, and the first rule for all calls last."""
    ordered: list[_Rule] = []
    some = [rule for rule in rules if not rule.operator.is_any]
    for _, group in groupby(some, key=lambda rule: (rule.operator.condition.about, rule.operator.number is not None)):
        run = list(group)
        ordered += sorted(run, key=_bound) if run[0].operator.number is not None else run
    return ordered + [rule for rule in rules if rule.operator.is_any][:1]


def _bound(rule: _Rule) -> int:
    return rule.operator.condition.values if isinstance(rule.operator.condition.values, int) else 0


def _written(entry: JsonEntry, operator: Operator) -> str:
    values = operator.condition.values
    if not isinstance(values, int):
        return entry.name
    if operator.about == "comm_avg_ppn":
        return f"comm_avg_ppn<{(values + 1) // 2}" if values % 2 else f"comm_avg_ppn<={values // 2}"
    return f"{operator.about}<={min(values, operators.LARGEST_NUMBER)}"
