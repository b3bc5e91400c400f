"""A selection tree without what no call can reach, for MPICH makes objects of the whole file in every MPI_Init.

The same leaf answers every call as before. A condition that those above it decide is left out, and so are a condition
whose subtree is that of the next, and whatever follows one that always holds. What holds for all that is left goes on
in the same object: each object takes MPICH 3 us, and it checks what is in one twice as often as what is beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from colltune.emit.lint.operators import YES, CallCondition, CallRegion, Operator
from colltune.emit.mpich.tree import ANY, Row, Tree, in_groups, is_leaf, operator_of, without_last

_PARENT, _ONE_NODE = "comm_hierarchy=parent", "comm_size=node_comm_size"
_ONE_EACH = CallCondition("comm_avg_ppn", 2)
_ALL = CallRegion(frozenset({"any"}))


@dataclass(frozen=True)
class Known:
    """What is known of the ``calls`` that reach a place of a tree. ``version``: major and minor number of MPICH."""

    version: tuple[int, int]
    calls: CallRegion = _ALL

    def holds(self, key: str) -> bool | None:
        """Whether all of the calls meet the condition ``key``, or none of them; None where it has to be asked."""
        condition = _asks(key, self.version).condition
        if self.calls.without(condition).is_empty:
            return True
        on_several = 2 * self.calls.range("comm_size")[0] > self.calls.range(_ONE_EACH.about)[1]
        return False if self.calls.within(condition).is_empty or (key == _ONE_NODE and on_several) else None

    def given(self, key: str, *, holds: bool) -> "Known":
        """The calls among these that meet the condition ``key``, or that do not."""
        condition = _asks(key, self.version).condition
        calls = self.calls.within(condition) if holds else self.calls.without(condition)
        # A parent has a node with two of its ranks.
        return replace(self, calls=calls.without(_ONE_EACH) if holds and key == _PARENT else calls)


def pruned(tree: Tree, known: Known) -> Tree:
    """``tree``, as of ``settle``, for calls of which ``known`` is known; rows of many conditions become groups."""
    if is_leaf(tree):
        return tree
    reached, whole = _reached(tree, known)
    if not reached or (not whole and _asks(reached[-1][0], known.version).compares):
        return tree  # a place without an answer, which has to stay one
    row: Row = []
    for condition, subtree in _joined(reached, whole, known.version):
        row.append((condition, pruned(subtree, known.given(condition, holds=True))))
        known = known.given(condition, holds=False)
    row = _joined(row, whole, known.version)
    if len(row) == 1 and whole:
        return row[0][1]
    return dict(in_groups(_joined(without_last(row), whole, known.version)))


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


def _joined(row: Sequence[tuple[str, Tree]], whole: bool, version: tuple[int, int]) -> Row:
    """``row`` without conditions that say the same as the next, in the same order, where that is wider."""
    kept: Row = []
    for key, subtree in reversed(row):
        if kept and kept[-1][1] == subtree and str(kept[-1][1]) == str(subtree):
            condition, after = _asks(key, version).condition, _asks(kept[-1][0], version).condition
            compared = isinstance(condition.values, int) and condition.about == after.about
            if (whole and len(kept) == 1) or compared:
                continue
        kept.append((key, subtree))
    return kept[::-1]


def _asks(key: str, version: tuple[int, int]) -> Operator:
    """What the condition ``key`` asks; of one that is not known, whether it holds."""
    operator = operator_of(key, version)
    return operator if isinstance(operator, Operator) else Operator(CallCondition(key, YES))
