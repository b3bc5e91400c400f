"""Which choice a collective makes, as a function of ranks per node, ranks and size that is constant between bounds.

Rules and files are made from it, and what they say is compared by it. It knows no MPI: whether a choice is legal is for
others to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from colltune.core.rules import Region, Rule, RuleSet, Span, Steps
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis

# A communicator of one rank has no collective worth a decision.
LEAST_RANKS = 2

BySize = Steps[Choice]
ByRanks = Steps[BySize]
# The sizes between two rank counts that were looked at, of the sizes at these two; ``Span`` is the counts between.
Between = Callable[[int, Span, BySize, BySize], BySize]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two tables of ``collective`` decide differently."""

    collective: str
    basis: SizeBasis
    region: Region
    one: Choice
    other: Choice


@dataclass(frozen=True)
class DecisionTable:
    """``by_ppn``: ranks per node, then ranks of the communicator, then size in bytes of ``basis``.

    Total, and minimal along each of the three: equal decisions are equal tables.
    """

    collective: str
    basis: SizeBasis
    by_ppn: Steps[ByRanks]

    @classmethod
    def always(cls, collective: str, basis: SizeBasis, choice: Choice = DEFAULT) -> DecisionTable:
        return cls(collective, basis, Steps.always(Steps.always(Steps.always(choice))))

    @classmethod
    def of(cls, rule_set: RuleSet) -> DecisionTable:
        """What ``rule_set`` says."""
        blocks: defaultdict[int | None, defaultdict[int | None, list[Rule]]] = defaultdict(lambda: defaultdict(list))
        for rule in rule_set.rules:
            blocks[rule.max_ppn][rule.max_ranks].append(rule)
        by_ppn = Steps.of(
            (ppn, Steps.of((ranks, Steps.of((r.max_size, r.choice) for r in rules)) for ranks, rules in some.items()))
            for ppn, some in blocks.items()
        )
        return cls(rule_set.collective, rule_set.basis, by_ppn)

    @classmethod
    def of_shapes(
        cls,
        collective: str,
        basis: SizeBasis,
        shapes: Mapping[tuple[int, int], BySize],
        elsewhere: Choice = DEFAULT,
        between: Between | None = None,
    ) -> DecisionTable:
        """The decisions of each (nodes, ppn) of ``shapes`` at its ranks per node and its ranks, ``elsewhere`` beyond.

        ``between`` decides for the rank counts between two neighbouring shapes of one ppn: given are the ppn, the
        counts, and the decisions of the smaller and of the larger one.
        """
        outside: BySize = Steps.always(elsewhere)
        by_ppn: defaultdict[int, dict[int, BySize]] = defaultdict(dict)
        for (nodes, ppn), steps in shapes.items():
            by_ppn[ppn][nodes * ppn] = steps
        blocks: list[tuple[int | None, ByRanks]] = []
        for ppn, by_ranks in sorted(by_ppn.items()):
            blocks += [(ppn - 1, Steps.always(outside)), (ppn, _over_ranks(ppn, by_ranks, outside, between))]
        return cls(collective, basis, Steps.of([*blocks, (None, Steps.always(outside))]))

    def at(self, ppn: int, ranks: int, size: int) -> Choice:
        return self.by_ppn.at(ppn).at(ranks).at(size)

    def evaluate(self, scenario: Scenario) -> Choice:
        return self.at(scenario.ppn, scenario.ranks, scenario.basis_bytes(self.basis))

    def walk(self) -> Iterator[tuple[Region, Choice]]:
        """Every region with its choice, in the order of the rules; each call lies in one of them."""
        for ppn, by_ranks in self.by_ppn.spans(1):
            for ranks, by_size in by_ranks.spans(1):
                for size, choice in by_size.spans():
                    yield Region(ppn, ranks, size), choice

    def map(self, choice_of: Callable[[Choice], Choice]) -> DecisionTable:
        return self.by_size(lambda sizes: sizes.map(choice_of))

    def replaced(self, choice_of: Callable[[Region, Choice], Choice]) -> DecisionTable:
        """Another choice for each region of `walk`."""
        rules = (Rule(at.ppn.high, at.ranks.high, at.size.high, choice_of(at, choice)) for at, choice in self.walk())
        return DecisionTable.of(RuleSet(self.collective, self.basis, tuple(rules)))

    def by_size(self, sizes_of: Callable[[BySize], BySize]) -> DecisionTable:
        """The same for every communicator, with other sizes."""
        return replace(self, by_ppn=self.by_ppn.map(lambda ranks: ranks.map(sizes_of)))

    def combine(self, other: DecisionTable, choice_of: Callable[[Choice, Choice], Choice]) -> DecisionTable:
        """``choice_of`` the choices of both, call by call. Raises ValueError for tables that cannot be compared."""
        self._require_comparable(other)
        by_ppn = self.by_ppn.combine(
            other.by_ppn, lambda ranks, others: ranks.combine(others, lambda a, b: a.combine(b, choice_of))
        )
        return replace(self, by_ppn=by_ppn)

    def merge(self, other: DecisionTable) -> DecisionTable:
        """These decisions, and those of ``other`` where the default stands here."""
        return self.combine(other, lambda own, theirs: theirs if own == DEFAULT else own)

    def restrict(self, region: Region) -> DecisionTable:
        """These decisions inside ``region``, and the default elsewhere."""
        nothing: BySize = Steps.always(DEFAULT)

        def inside(by_ranks: ByRanks) -> ByRanks:
            return by_ranks.map(lambda sizes: sizes.restrict(region.size, DEFAULT)).restrict(region.ranks, nothing)

        return replace(self, by_ppn=self.by_ppn.map(inside).restrict(region.ppn, Steps.always(nothing)))

    def differences(self, other: DecisionTable) -> list[Difference]:
        """The regions in which ``other`` decides differently, as large as they can be told; none where they agree.

        Raises ValueError for tables of different collectives, or whose sizes mean different things.
        """
        self._require_comparable(other)

        def of_sizes(sizes: BySize, others: BySize) -> Steps[tuple[Choice, Choice] | None]:
            return sizes.combine(others, lambda a, b: None if a == b else (a, b))

        both = self.by_ppn.combine(other.by_ppn, lambda ranks, others: ranks.combine(others, of_sizes))
        return [
            Difference(self.collective, self.basis, Region(ppn, ranks, size), *choices)
            for ppn, by_ranks in both.spans(1)
            # There are no fewer ranks than ranks per node.
            for ranks, by_size in by_ranks.spans(LEAST_RANKS)
            if ranks.high is None or ranks.high >= ppn.low
            for size, choices in by_size.spans()
            if choices is not None
        ]

    def _require_comparable(self, other: DecisionTable) -> None:
        if (self.collective, self.basis) != (other.collective, other.basis):
            raise ValueError(f"{self.collective} and {other.collective} compare different sizes")

    def rule_set(self) -> RuleSet:
        """The same as rules, from the most to the least restrictive, as few as the nesting allows."""
        rules = [
            Rule(ppn, ranks, size, choice)
            for ppn, by_ranks in self.by_ppn.pairs
            for ranks, by_size in by_ranks.pairs
            for size, choice in by_size.pairs
        ]
        return RuleSet(self.collective, self.basis, tuple(rules))


def agreed(sizes: BySize, others: BySize) -> BySize:
    """The choices that both make, by size; the default where they do not agree."""
    return sizes.combine(others, lambda mine, its: mine if mine == its else DEFAULT)


def _over_ranks(ppn: int, by_ranks: Mapping[int, BySize], outside: BySize, between: Between | None) -> ByRanks:
    blocks: list[tuple[int | None, BySize]] = []
    previous: int | None = None
    for ranks, steps in sorted(by_ranks.items()):
        gap = outside
        if previous is not None and between is not None and ranks > previous + 1:
            gap = between(ppn, Span(previous + 1, ranks - 1), by_ranks[previous], steps)
        # One rank has nothing to decide, so a shape of two ranks begins there.
        if ranks > LEAST_RANKS:
            blocks.append((ranks - 1, gap))
        blocks.append((ranks, steps))
        previous = ranks
    return Steps.of([*blocks, (None, outside)])
