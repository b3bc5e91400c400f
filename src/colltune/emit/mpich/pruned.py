"""A selection tree without what no call can reach, for MPICH makes objects of the whole file in every MPI_Init.

The same leaf answers every call as before. A condition that those above it decide is left out, and so are a condition
whose subtree is that of the next, and whatever follows one that always holds. What holds for all that is left goes on
in the same object: each object takes MPICH 3 us, and it checks what is in one twice as often as what is beside it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from colltune.emit.mpich.tree import ANY, Row, Tree, in_groups, is_leaf, without_last

_UP_TO = re.compile(r"(comm_size|comm_avg_ppn|avg_msg_size|total_msg_size|count)(<=|<)(-?\d+)")
_OPPOSITE = {"yes": "no", "no": "yes", "intra": "inter", "inter": "intra"}
_LEAST = {"comm_size": 1}
_PARENT, _ONE_NODE, _POWER = "comm_hierarchy=parent", "comm_size=node_comm_size", "comm_size=pow2"


@dataclass(frozen=True)
class Known:
    """What is known of the calls that reach a place of a tree.

    ``spans``: the least and the greatest value by what is compared; None is no limit. ``answers``: of conditions that
    compare no numbers.
    """

    spans: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    answers: dict[str, bool] = field(default_factory=dict)

    def holds(self, condition: str) -> bool | None:
        """Whether all of the calls meet ``condition``, or none of them; None where it has to be asked."""
        if condition.endswith("any"):
            return True
        if (bound := _up_to(condition)) is None:
            return self._answer(condition)
        least, most = self._span(bound[0])
        if least > bound[1]:
            return False
        return True if most is not None and most <= bound[1] else None

    def _answer(self, condition: str) -> bool | None:
        least, most = self._span("comm_size")
        if condition == _POWER and most is not None and 1 << (most.bit_length() - 1) < least:
            return False
        largest_ppn = self._span("comm_avg_ppn")[1]
        if condition == _ONE_NODE and largest_ppn is not None and least > largest_ppn:
            return False
        return self.answers.get(condition)

    def given(self, condition: str, *, holds: bool) -> "Known":
        """The calls among these that meet ``condition``, or that do not."""
        if bound := _up_to(condition):
            about, limit = bound
            least, most = self._span(about)
            span = (least, limit if most is None else min(limit, most)) if holds else (max(least, limit + 1), most)
            return replace(self, spans={**self.spans, about: span})
        name, _, value = condition.partition("=")
        answers = {condition: holds}
        if value in _OPPOSITE:
            answers[f"{name}={_OPPOSITE[value]}"] = not holds
        # All operations of MPI commute.
        if answers.get("is_commutative=no"):
            answers |= {"is_op_built_in=no": True, "is_op_built_in=yes": False}
        if answers.get("is_op_built_in=yes"):
            answers |= {"is_commutative=yes": True, "is_commutative=no": False}
        if holds and name == "comm_hierarchy":
            # Names for what is no parent mean the same since 5.0, but not before.
            others = ("flat", "node", "node_roots") if condition == _PARENT else ("parent",)
            answers |= {f"{name}={other}": False for other in others}
        known = replace(self, answers={**self.answers, **answers})
        # A parent has a node with two of its ranks.
        return known.given("comm_avg_ppn<=1", holds=False) if holds and condition == _PARENT else known

    def _span(self, name: str) -> tuple[int, int | None]:
        return self.spans.get(name, (_LEAST.get(name, 0), None))


def _up_to(condition: str) -> tuple[str, int] | None:
    """What is compared and the greatest whole number that meets ``condition``; None for another condition.

    The average ppn is no whole number, so that nothing is concluded from "less than".
    """
    match = _UP_TO.fullmatch(condition)
    if match is None or match.group(1, 2) == ("comm_avg_ppn", "<"):
        return None
    return match.group(1), int(match.group(3)) - (match.group(2) == "<")


def pruned(tree: Tree, known: Known | None = None) -> Tree:
    """``tree``, as of ``settle``, for calls of which ``known`` is known; rows of many conditions become groups."""
    if is_leaf(tree):
        return tree
    known = known or Known()
    reached, whole = _reached(tree, known)
    if not reached or not (whole or _may_be_last(reached[-1][0])):
        return tree  # a place without an answer, which has to stay one
    row: Row = []
    for condition, subtree in _joined(reached, whole):
        row.append((condition, pruned(subtree, known.given(condition, holds=True))))
        known = known.given(condition, holds=False)
    row = _joined(row, whole)
    if len(row) == 1 and whole:
        return row[0][1]
    return dict(in_groups(_joined(without_last(row), whole)))


def _reached(tree: Tree, known: Known) -> tuple[Row, bool]:
    """The conditions that some call reaches and meets, and whether every call meets one; then the last is "any"."""
    row: Row = []
    for condition, subtree in tree.items():
        holds = known.holds(condition)
        if holds:
            before = row[-1][0] if row else ""
            about = before.partition("<")[0]
            return [*row, (f"{about}=any" if about in ANY else "comm_size=any", subtree)], True
        if holds is None:
            row.append((condition, subtree))
            known = known.given(condition, holds=False)
    return row, False


def _may_be_last(condition: str) -> bool:
    """MPICH takes a comparison only where another condition follows."""
    return "<" not in condition and condition not in (_POWER, _ONE_NODE)


def _joined(row: Sequence[tuple[str, Tree]], whole: bool) -> Row:
    """``row`` without conditions that say the same as the next, in the same order, where that is wider."""
    kept: Row = []
    for condition, subtree in reversed(row):
        if kept and kept[-1][1] == subtree and str(kept[-1][1]) == str(subtree):
            (after, _), bound = kept[-1], _up_to(condition)
            beyond = _up_to(after)
            if (whole and len(kept) == 1) or (bound and beyond and bound[0] == beyond[0]):
                continue
        kept.append((condition, subtree))
    return kept[::-1]
