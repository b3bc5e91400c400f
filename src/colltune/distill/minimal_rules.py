"""From a selection to a complete, minimal set of rules (ACCLAiM, section VII.A and table I).

What a rule set says, and what it leaves to the library's default:

- A *shape* is (nodes, ppn); its rules hold for its ppn and its number of ranks, nodes * ppn. Only the shapes of the
  space, and those measured beside it, get rules. Between two of their ppn values, above the greatest, below and above
  their rank counts the default stands.
- For rank counts strictly between two neighbouring shapes of one ppn, a size gets a choice only where both
  neighbours make the same one and it is legal at these counts; elsewhere the default stands.
- In a shape, sizes go from half the least size to twice the greatest one that was measured in the campaign; beyond
  the default stands. (Where half the least size is no more than 8 bytes the rules start at 0.)
- Between two neighbouring sizes A < C with different choices, the size B half way decides where one ends and the other
  begins. A choice is never extended to where it is not legal.
- Rules of proven choices (``distill_proven``) reach less far: from the least to the greatest proven size of a shape;
  between two sizes with different choices the default stands. Rank counts between two shapes are as above.
- Where the library cannot decide by size, a shape has the one choice with the least sum of log times over its sizes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from colltune.core.decision_table import BySize, DecisionTable, agreed
from colltune.core.rules import RuleSet, Span, Steps
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis, element_bytes
from colltune.core.space import Model, Space
from colltune.distill.selection import Measured, Selection

# Rank counts next to a measured one that are checked between two far neighbours; preconditions (powers of two, even
# counts, multiples of the ppn) show within a few counts.
_CHECKED_RANKS = 16


def distill(model: Model, space: Space, measured: Measured, basis: SizeBasis) -> RuleSet:
    """The rules that follow from ``model`` and ``measured`` (median seconds per pair), sizes in ``basis``.

    The rule set is total and minimal: no two neighbouring rules or blocks say the same. At each scenario of the space
    and at each measured one within its sizes, ``evaluate`` gives ``Selection.best``.
    """
    selection = Selection(model, space, measured)
    sizes = _sizes_by_shape(space, measured)
    selection.prepare([Scenario(space.collective, *shape, size) for shape, some in sizes.items() for size in some])
    return _rule_set(selection, sizes, basis, _Reach.EXTENDED)


def distill_proven(proven: Mapping[Scenario, Choice], space: Space, basis: SizeBasis) -> RuleSet:
    """The rules that make each choice of ``proven`` in its scenario, and reach no further than was proven.

    ``proven`` holds the scenarios that were looked at, those where the default stays included.
    """
    if all(choice == DEFAULT for choice in proven.values()):
        return RuleSet.always(space.collective, basis, DEFAULT)
    sizes: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for scenario in proven:
        sizes[scenario.nodes, scenario.ppn].add(scenario.size_bytes)
    ordered = {shape: sorted(some) for shape, some in sizes.items()}
    return _rule_set(_Proven(space, proven), ordered, basis, _Reach.PROVEN)


class _Reach(Enum):
    """How far rules go beyond the sizes that were decided."""

    EXTENDED = "half and twice the sizes"
    PROVEN = "nowhere"


@dataclass(frozen=True)
class _Proven:
    """Which choice to make, as Selection says it, where choices are proven."""

    space: Space
    proven: Mapping[Scenario, Choice]

    def best(self, scenario: Scenario) -> Choice:
        return self.proven.get(scenario, DEFAULT)

    def best_over(self, scenarios: Sequence[Scenario]) -> Choice:
        """Where size cannot decide, a choice is proven only if it is at every size."""
        choices = {self.best(scenario) for scenario in scenarios}
        return choices.pop() if len(choices) == 1 else DEFAULT


def _rule_set(
    selection: "Selection | _Proven", sizes: Mapping[tuple[int, int], Sequence[int]], basis: SizeBasis, reach: _Reach
) -> RuleSet:
    space = selection.space
    decided = {
        (nodes, ppn): _Shape(selection, basis, nodes, ppn, reach).steps(some) for (nodes, ppn), some in sizes.items()
    }

    def between(ppn: int, counts: Span, below: BySize, above: BySize) -> BySize:
        """The choices on which both neighbours agree, as far as they are legal between them."""
        return _Gap(space, basis, ppn, counts).legal(agreed(below, above))

    return DecisionTable.of_shapes(space.collective, basis, decided, between=between).rule_set()


def _sizes_by_shape(space: Space, measured: Measured) -> dict[tuple[int, int], list[int]]:
    """The sizes to decide at per shape: the grid's and the measured ones, up to the greatest that was measured."""
    largest = max((scenario.size_bytes for scenario, _ in measured), default=0)
    sizes_of: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for scenario in (*space.scenarios, *(scenario for scenario, _ in measured)):
        if measured and scenario.size_bytes <= largest:
            sizes_of[scenario.nodes, scenario.ppn].add(scenario.size_bytes)
    return {shape: sorted(sizes) for shape, sizes in sizes_of.items()}


class _Shape:
    """Decides over the sizes of one (nodes, ppn)."""

    def __init__(self, selection: "Selection | _Proven", basis: SizeBasis, nodes: int, ppn: int, reach: _Reach) -> None:
        collective = selection.space.collective
        self._selection = selection
        self._basis = basis
        self._reach = reach
        self._nodes, self._ppn, self._collective = nodes, ppn, collective
        self._element = element_bytes(collective)
        self._factor = self._at(1).basis_bytes(basis)

    def steps(self, sizes: Sequence[int]) -> BySize:
        if self._basis is SizeBasis.NONE:
            return Steps.always(self._selection.best_over([self._at(size) for size in sizes]))
        steps = self._smallest(sizes[0])
        for size, following in pairwise(sizes):
            steps.append((size * self._factor, self._best(size)))
            steps.extend(self._between(size, following))
        greatest = sizes[-1]
        steps.append((greatest * self._factor, self._best(greatest)))
        if self._reach is _Reach.EXTENDED:
            steps.append((2 * greatest * self._factor, self._legal_up_to(greatest, greatest, 2 * greatest)))
        return Steps.of([*steps, (None, DEFAULT)])

    def _smallest(self, least: int) -> list[tuple[int | None, Choice]]:
        """The steps for the sizes below ``least``, the smallest size that is decided."""
        half = -(-least // 2 // self._element) * self._element
        if least == 0:
            return []
        if half <= 8:
            return [(self._below(least), self._legal_up_to(least, min(self._element, least), least))]
        if self._reach is _Reach.PROVEN:
            return [(self._below(least), DEFAULT)]
        return [(self._below(half), DEFAULT), (self._below(least), self._legal_up_to(least, half, least))]

    def _at(self, size: int) -> Scenario:
        return Scenario(self._collective, self._nodes, self._ppn, size)

    def _best(self, size: int) -> Choice:
        return self._selection.best(self._at(size))

    def _below(self, size: int) -> int:
        """The bound, in the basis, of the sizes less than ``size``."""
        return size * self._factor - 1

    def _is_legal(self, choice: Choice, *sizes: int) -> bool:
        return choice == DEFAULT or all(choice in self._selection.space.choices(self._at(size)) for size in sizes)

    def _legal_up_to(self, decided: int, low: int, high: int) -> Choice:
        """The choice made at ``decided`` where it is legal from ``low`` to ``high``, else the default."""
        choice = self._best(decided)
        return choice if self._is_legal(choice, low, high) else DEFAULT

    def _between(self, a: int, c: int) -> Iterator[tuple[int | None, Choice]]:
        """Table I: the step for the sizes strictly between A and C, decided at B half way."""
        inside = [size for size in (a + self._element, c - self._element) if a < size < c]
        if not inside:
            return
        b = (a + c) // 2 // self._element * self._element
        at_a, at_c = self._best(a), self._best(c)
        if self._reach is _Reach.PROVEN:
            # A choice that does not fit every call between (counts that do not divide evenly, say) stands behind its
            # guard there. A step of its own for these calls would make the file longer, and every call slower.
            yield self._below(c), at_a if at_a == at_c else DEFAULT
            return
        preferred = at_a if at_a == at_c or not a < b < c else self._best(b)
        for choice in (preferred, at_a, at_c, DEFAULT):
            if self._is_legal(choice, *inside, b):
                yield self._below(c), choice
                return


class _Gap:
    """The rank counts strictly between two neighbouring ones of a ppn."""

    def __init__(self, space: Space, basis: SizeBasis, ppn: int, counts: Span) -> None:
        assert counts.high is not None
        near = {counts.low + i for i in range(_CHECKED_RANKS)} | {counts.high - i for i in range(_CHECKED_RANKS)}
        # A count that is no multiple of the ppn leaves a node filled in part; it is checked as if one rank a node.
        self._shapes = {(r // ppn, ppn) if r % ppn == 0 else (r, 1) for r in near if counts.holds(r)}
        self._space = space
        self._basis = basis
        self._grid_sizes = sorted({scenario.size_bytes for scenario in space.scenarios})

    def legal(self, steps: BySize) -> BySize:
        """``steps`` with the default in place of what is not legal at one of the counts."""
        return Steps.of(
            (size.high, choice if choice == DEFAULT or self._is_legal(choice, size.low, size.high) else DEFAULT)
            for size, choice in steps.spans()
        )

    def _is_legal(self, choice: Choice, first: int, last: int | None) -> bool:
        """Whether ``choice`` is legal at both ends of the sizes from ``first`` to ``last``, in the basis."""
        collective = self._space.collective
        element = element_bytes(collective)
        for nodes, ppn in self._shapes:
            factor = Scenario(collective, nodes, ppn, 1).basis_bytes(self._basis)
            sizes = self._grid_sizes if last is None else [max(first, element) // factor, last // factor]
            for size in sizes:
                scenario = Scenario(collective, nodes, ppn, size // element * element)
                if choice not in self._space.choices(scenario):
                    return False
        return True
