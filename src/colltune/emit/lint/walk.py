"""The walk through a selection tree that finds its faults."""

from colltune.catalog import Catalogue
from colltune.emit.lint import operators
from colltune.emit.lint.check import Check, FindingsOfFile, shown
from colltune.emit.lint.json_text import JsonEntry, JsonValue
from colltune.emit.lint.leaf import FileKind, leaf_findings
from colltune.emit.lint.operators import CallCondition, CallRegion, Operator, describe

LEAF = ("algorithm=", "composition=")
# MPICH's own tree of alltoall has "comm_size<8" in a place where 8 passes. A file that repeats it is no worse.
_OWN_LESS_THAN = ("comm_size<8", frozenset({"alltoall", "ialltoall"}))


class Walk(FindingsOfFile):
    """Collects the findings of one file."""

    def __init__(self, file: str, kind: FileKind, version: str, catalogue: Catalogue) -> None:
        super().__init__("mpich", file)
        self._kind = kind
        self._title = f"MPICH {version}"
        self._catalogue = catalogue
        self._version = catalogue.release
        self._findings: list[Check] = []

    def root(self, root: JsonValue) -> list[Check]:
        """The findings of the whole file."""
        everything = CallRegion(operators.COLLECTIVES)
        if self._kind is FileKind.POSIX:
            everything = everything.within(
                CallCondition("comm_type", frozenset({"intra"}))
            )  # it is asked inside a node only
        if root.entries is None:
            self._find("no-object", root.line)
        elif root.entries or self._kind is FileKind.GENERAL:
            self._object(root, everything, True, ())
        return self._findings

    def _object(self, node: JsonValue, region: CallRegion, early: bool, path: tuple[str, ...]) -> None:
        """``region``: the calls that come here. ``early``: only operators of the communicator stand above."""
        if node.entries is None:
            self._find("value", node.line, path)
            return
        if not node.entries:
            if path:
                self._find("empty-rule", node.line, path)
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
        rest, alone = region, CallRegion(operators.COLLECTIVES)
        before: list[tuple[JsonEntry, Operator]] = []
        for entry in node.entries:
            here = (*path, shown(entry.name))
            operator = operators.parse_operator(entry.name, self._version, early)
            if isinstance(operator, operators.Unknown):
                texts = {"title": self._title, "key": shown(entry.key), "why": operator.why, "fix": operator.fix}
                self._find("unknown-operator", entry.line, here, **texts)
                continue
            beside = any(by.condition.about == "collective" for _, by in before)
            self._order_of_kinds(entry, operator, rest, beside, here)
            self._operator(entry, operator, rest, early, here)
            last = entry is node.entries[-1]
            if not operator.condition.about and not last:
                self._find("not-last", entry.line, here)
            elif operator.compares and last:
                self._find("last-compares", entry.line, here)
            elif alone.within(operator.condition).is_empty and not beside | (operator.condition.about == "collective"):
                self._unreachable(entry, operator, before, here)
            reached = rest.within(operator.condition)
            if operator.condition.about == "collective" and reached.collectives <= operators.INTRA_ONLY:
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
        if wrong := operators.misread(operator):
            self._find("misread", entry.line, path, key=shown(entry.key), wrong=wrong, largest=operators.LARGEST_NUMBER)
        if len(rest.collectives) < len(operators.COLLECTIVES) and not rest.is_empty:
            if undefined := operators.undefined_for(operator, rest.collectives):
                texts = {"names": ", ".join(undefined), "first": undefined[0], "about": operator.about}
                fix = self._instead(operator, undefined[0])
                self._find("not-made-for", entry.line, path, key=shown(entry.key), fix=fix, **texts)
            elif why := operators.differs_between_ranks(operator, rest):
                in_place = rest.collectives & {"alltoall", "ialltoall"}
                name = "ranks-disagree-in-place" if in_place else "ranks-disagree"
                self._find(name, entry.line, path, key=shown(entry.key), why=why)
        own_key, own_collectives = _OWN_LESS_THAN
        own = entry.name == own_key and rest.collectives <= own_collectives
        if entry.name.startswith("comm_size<") and not entry.name.startswith("comm_size<=") and not early and not own:
            less = int(operator.condition.values) - 1 if isinstance(operator.condition.values, int) else 0
            self._find("lets-bound-through", entry.line, path, key=shown(entry.key), less=less)

    def _order_of_kinds(
        self, entry: JsonEntry, operator: Operator, rest: CallRegion, beside: bool, path: tuple[str, ...]
    ) -> None:
        """``beside``: a collective precedes this operator in the same object."""
        if operator.condition.about == "collective":
            return
        if beside:
            self._find("beside-collectives", entry.line, path, key=shown(entry.key))
        elif len(rest.collectives) > 1 and not operator.of_communicator:
            self._find("above-collectives", entry.line, path, key=shown(entry.key))

    @staticmethod
    def _instead(operator: Operator, collective: str) -> str:
        if operator.about == "avg_msg_size" and not operators.undefined_for(
            Operator(CallCondition("total_msg_size", 0)), frozenset({collective})
        ):
            return f'use "total_msg_size", which is {operators.basis("total_msg_size", collective)}'
        return "take the comparison out"

    def _unreachable(
        self, entry: JsonEntry, operator: Operator, before: list[tuple[JsonEntry, Operator]], path: tuple[str, ...]
    ) -> None:
        same = [known for known, by in before if by.condition.about == operator.condition.about]
        if not before or (not same and isinstance(operator.condition.values, int) and operator.condition.values < 1):
            self._find("below-every-call", entry.line, path)
            return
        blocker = (same or [known for known, _ in before])[-1]
        name = "comes-too-late" if operator.number is not None and same else "never-reached"
        self._find(name, entry.line, path, key=shown(blocker.key), line=blocker.line)

    def _uncovered(self, node: JsonValue, rest: CallRegion, region: CallRegion, path: tuple[str, ...]) -> None:
        """Reports calls without a rule. The device's files may lack rules: then MPICH looks into the general file."""
        if self._kind is not FileKind.GENERAL:
            return
        if len(rest.collectives) > 1 or rest.collectives != region.collectives:
            names = ", ".join(sorted(rest.collectives)) if len(rest.collectives) < len(operators.COLLECTIVES) else "all"
            self._find("collectives-without-rules", node.line, path, names=names)
            return
        calls, names = describe(rest, region), ", ".join(rest.collectives)
        self._find("calls-without-rule", node.line, path, calls=calls, names=names)

    def _repeated(self, node: JsonValue, path: tuple[str, ...]) -> None:
        seen: dict[str, int] = {}
        for entry in node.entries or ():
            if entry.key in seen:
                self._find("key-twice", entry.line, (*path, shown(entry.name)), line=seen[entry.key])
            seen.setdefault(entry.key, entry.line)

    def _leaf(self, node: JsonValue, region: CallRegion, path: tuple[str, ...]) -> None:
        assert node.entries is not None
        if len(node.entries) > 1:
            odd = next((e for e in node.entries if not e.name.startswith(LEAF)), node.entries[-1])
            self._find("beside-algorithm", odd.line, (*path, shown(odd.name)), key=shown(odd.key))
            return
        entry = node.entries[0]
        here = (*path, shown(entry.name))
        if entry.value.entries is None:
            self._find("value-of-leaf", entry.line, here)
            return
        if len(region.collectives) > 1:
            self._find("algorithm-above", entry.line, here)
            return
        self._findings += leaf_findings(self, entry, here, region, self._kind, self._catalogue, self._title)

    def _find(self, finding: str, line: int, path: tuple[str, ...] = (), /, **values: object) -> None:
        self._findings.append(self.finding(finding, line, path, **values))
