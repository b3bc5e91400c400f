"""The walk through a selection tree that finds its faults."""

from colltune.catalog import Catalogue
from colltune.emit.lint.check import Check, Severity, shown
from colltune.emit.lint.json_text import JsonEntry, JsonValue
from colltune.emit.lint.leaf import find_leaf_faults
from colltune.emit.lint.names import FileKind
from colltune.emit.lint.operators import (
    COLLECTIVES,
    INTRA_ONLY,
    LARGEST_NUMBER,
    Operator,
    Unknown,
    basis,
    differs_between_ranks,
    misread,
    parse_operator,
    undefined_for,
)
from colltune.emit.lint.region import CallCondition, CallRegion, describe

_INIT = "MPICH ends in MPI_Init"
LEAF = ("algorithm=", "composition=")
# MPICH's own tree of alltoall has "comm_size<8" in a place where 8 passes. A file that repeats it is no worse.
_OWN_LESS_THAN = ("comm_size<8", frozenset({"alltoall", "ialltoall"}))


class Walk:
    """Collects the findings of one file."""

    def __init__(self, file: str, kind: FileKind, version: str, catalogue: Catalogue) -> None:
        self._file = file
        self._kind = kind
        self._title = f"MPICH {version}"
        self._catalogue = catalogue
        major, minor = catalogue.version.split(".")
        self._version = int(major), int(minor)
        self._findings: list[Check] = []

    def root(self, root: JsonValue) -> list[Check]:
        """The findings of the whole file."""
        everything = CallRegion(COLLECTIVES)
        if self._kind is FileKind.POSIX:
            everything = everything.within(
                CallCondition("comm_type", frozenset({"intra"}))
            )  # it is asked inside a node only
        if root.entries is None:
            self._error(root.line, (), "the file is no object", _INIT, "write the rules as an object: {...}")
        elif root.entries or self._kind is FileKind.GENERAL:
            self._object(root, everything, True, ())
        return self._findings

    def _object(self, node: JsonValue, region: CallRegion, early: bool, path: tuple[str, ...]) -> None:
        """``region``: the calls that come here. ``early``: only operators of the communicator stand above."""
        if node.entries is None:
            self._error(node.line, path, "there is a value where an object is due", _INIT, "write {...} with rules")
            return
        if not node.entries:
            if path:
                self._error(node.line, path, "the rule is empty", _INIT, "name an algorithm in it, or take it out")
            else:
                self._uncovered(node, region, region, path)
            return
        self._repeated(node, path)
        if any(entry.name.startswith(LEAF) for entry in node.entries):
            self._leaf(node, region, path)
            return
        self._siblings(node, region, early, path)

    def _siblings(self, node: JsonValue, region: CallRegion, early: bool, path: tuple[str, ...]) -> None:
        assert node.entries is not None
        rest, alone = region, CallRegion(COLLECTIVES)
        before: list[tuple[JsonEntry, Operator]] = []
        for entry in node.entries:
            here = (*path, shown(entry.name))
            operator = parse_operator(entry.name, self._version, early)
            if isinstance(operator, Unknown):
                what = f'{self._title} does not know "{shown(entry.key)}"'
                self._error(entry.line, here, what, operator.why, operator.fix)
                continue
            beside = any(by.condition.about == "collective" for _, by in before)
            self._order_of_kinds(entry, operator, rest, beside, here)
            self._operator(entry, operator, rest, early, here)
            last = entry is node.entries[-1]
            if operator.is_any and not last:
                why = f'{_INIT} with "unexpected non-NULL failure path": nothing may follow a rule for all calls'
                self._error(entry.line, here, "rules follow the one that takes all calls", why, "put it last")
            elif operator.compares and last:
                why = f'{_INIT} with "unexpected NULL failure path": a comparison needs a rule for the other calls'
                self._error(
                    entry.line, here, "no rule follows this comparison", why, 'add "comm_size=any": {...} after it'
                )
            elif alone.within(operator.condition).is_empty and not beside | (operator.condition.about == "collective"):
                self._unreachable(entry, operator, before, here)
            reached = rest.within(operator.condition)
            if operator.condition.about == "collective" and reached.collectives <= INTRA_ONLY:
                reached = reached.within(CallCondition("comm_type", frozenset({"intra"})))
            self._object(entry.value, reached, early and operator.of_communicator, here)
            rest, alone = rest.without(operator.condition), alone.without(operator.condition)
            before.append((entry, operator))
        # An operator that cannot be read is reported once; the calls that it leaves uncovered are not another finding.
        if len(before) == len(node.entries) and not (before[-1][1].compares or rest.is_empty):
            self._uncovered(node, rest, region, path)

    def _operator(
        self, entry: JsonEntry, operator: Operator, rest: CallRegion, early: bool, path: tuple[str, ...]
    ) -> None:
        """The findings about one operator by itself; ``rest`` are the calls that reach it."""
        if wrong := misread(operator):
            fix = f"write a whole number from 0 to {LARGEST_NUMBER}"
            self._error(entry.line, path, f'the bound in "{shown(entry.key)}" is not what it says', wrong, fix)
        if len(rest.collectives) < len(COLLECTIVES) and not rest.is_empty:
            if undefined := undefined_for(operator, rest.collectives):
                why = f"MPICH ends the program at the first {undefined[0]}: it has no {operator.about} there"
                fix = self._instead(operator, undefined[0])
                self._error(entry.line, path, f'"{shown(entry.key)}" is not made for {", ".join(undefined)}', why, fix)
            elif disagree := differs_between_ranks(operator, rest):
                fix = "take the comparison out"
                if rest.collectives & {"alltoall", "ialltoall"}:
                    fix = 'ask "is_sendbuf_inplace=yes" first, with an algorithm for calls in place'
                self._error(entry.line, path, f'ranks can disagree about "{shown(entry.key)}"', disagree, fix)
        own_key, own_collectives = _OWN_LESS_THAN
        own = entry.name == own_key and rest.collectives <= own_collectives
        if entry.name.startswith("comm_size<") and not entry.name.startswith("comm_size<=") and not early and not own:
            why = "below an operator that is asked at each call, MPICH lets the bound itself through"
            fix = f'write "comm_size<={self._less(operator)}"'
            self._warn(entry.line, path, f'"{shown(entry.key)}" means <= here', why, fix)

    def _order_of_kinds(
        self, entry: JsonEntry, operator: Operator, rest: CallRegion, beside: bool, path: tuple[str, ...]
    ) -> None:
        """``beside``: a collective precedes this operator in the same object."""
        if operator.condition.about == "collective":
            return
        if beside:
            why = "MPICH takes each rule after a collective for one more collective"
            self._error(entry.line, path, f'"{shown(entry.key)}" stands beside collectives', why, "move it below one")
        elif len(rest.collectives) > 1 and not operator.of_communicator:
            why = f"{_INIT}: above a collective only operators of the communicator may stand"
            self._error(entry.line, path, f'"{shown(entry.key)}" stands above every collective', why, "move it below")

    @staticmethod
    def _less(operator: Operator) -> int:
        return int(operator.condition.values) - 1 if isinstance(operator.condition.values, int) else 0

    @staticmethod
    def _instead(operator: Operator, collective: str) -> str:
        if operator.about == "avg_msg_size" and not undefined_for(
            Operator(CallCondition("total_msg_size", 0)), frozenset({collective})
        ):
            return f'use "total_msg_size", which is {basis("total_msg_size", collective)}'
        return "take the comparison out"

    def _unreachable(
        self, entry: JsonEntry, operator: Operator, before: list[tuple[JsonEntry, Operator]], path: tuple[str, ...]
    ) -> None:
        same = [known for known, by in before if by.condition.about == operator.condition.about]
        if not before or (not same and isinstance(operator.condition.values, int) and operator.condition.values < 1):
            self._warn(entry.line, path, "the rule is never reached", "its bound is below every call", "take it out")
            return
        blocker = (same or [known for known, _ in before])[-1]
        why = (
            f'"{shown(blocker.key)}" in line {blocker.line} has taken all its calls: the first rule that holds decides'
        )
        fix = f'put it before "{shown(blocker.key)}"' if operator.number is not None and same else "take it out"
        self._warn(entry.line, path, "the rule is never reached", why, fix)

    def _uncovered(self, node: JsonValue, rest: CallRegion, region: CallRegion, path: tuple[str, ...]) -> None:
        """Reports calls without a rule. The device's files may lack rules: then MPICH looks into the general file."""
        if self._kind is not FileKind.GENERAL:
            return
        if len(rest.collectives) > 1 or rest.collectives != region.collectives:
            names = ", ".join(sorted(rest.collectives)) if len(rest.collectives) < len(COLLECTIVES) else "all"
            why = "MPICH ends the program, often in MPI_Init, when it needs one of them; nonblocking and internal too"
            fix = "take the rules of the others from the library: --fix does"
            self._error(node.line, path, f"collectives have no rules: {names}", why, fix)
            return
        calls = describe(rest, region)
        why = f"MPICH ends the program at such a call of {', '.join(rest.collectives)}: it has no algorithm for it"
        fix = 'add "comm_size=any": {...} as the last rule'
        self._error(node.line, path, f"calls with {calls} have no rule", why, fix)

    def _repeated(self, node: JsonValue, path: tuple[str, ...]) -> None:
        seen: dict[str, int] = {}
        for entry in node.entries or ():
            if entry.key in seen:
                why = f"the rules in line {seen[entry.key]} are overwritten by these, and these keep their place"
                here = (*path, shown(entry.name))
                self._error(entry.line, here, "the key occurs twice in one object", why, "take one of them out")
            seen.setdefault(entry.key, entry.line)

    def _leaf(self, node: JsonValue, region: CallRegion, path: tuple[str, ...]) -> None:
        assert node.entries is not None
        if len(node.entries) > 1:
            odd = next((e for e in node.entries if not e.name.startswith(LEAF)), node.entries[-1])
            why = f'{_INIT} with "unrecognized key": beside an algorithm there may be nothing'
            what = f'"{shown(odd.key)}" stands beside an algorithm'
            self._error(odd.line, (*path, shown(odd.name)), what, why, "leave only one of the keys")
            return
        entry = node.entries[0]
        here = (*path, shown(entry.name))
        if entry.value.entries is None:
            self._error(entry.line, here, "there is a value where an object is due", _INIT, "write {}")
            return
        if len(region.collectives) > 1:
            why = f"{_INIT}: it looks for the rules of each collective"
            self._error(entry.line, here, "an algorithm stands above every collective", why, "name its collective")
            return
        for fault in find_leaf_faults(entry, region, self._kind, self._catalogue, self._title):
            place = (*here, fault.parameter) if fault.parameter else here
            self._findings.append(
                Check(fault.severity, self._file, fault.line, place, fault.what, fault.why, fault.fix)
            )

    def _error(self, line: int, path: tuple[str, ...], what: str, why: str, fix: str) -> None:
        self._findings.append(Check(Severity.ERROR, self._file, line, path, what, why, fix))

    def _warn(self, line: int, path: tuple[str, ...], what: str, why: str, fix: str) -> None:
        self._findings.append(Check(Severity.WARNING, self._file, line, path, what, why, fix))
