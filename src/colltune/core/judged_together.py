"""Regions of the decision table as people read them: decisions that were judged together, as one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from colltune.core.interval import Interval
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.sample import Choice, Scenario, grouped
from colltune.core.space import connected, neighbours
from colltune.core.units import format_size_range

# Neighbours in a row that are further apart are told in two: nothing was decided about what lies between them.
_FURTHEST = 2


@dataclass(frozen=True)
class JudgedRegion:
    """Decisions of one choice and one verdict that stand or fall together, in the order of their scenarios.

    In an audit these are the scenarios of one claim. Decisions that were judged one by one are put together where they
    are neighbours: then the speed-up is their geometric mean, and the bounds are the worst and the best of theirs.
    """

    decisions: tuple[Decision, ...]

    @property
    def collective(self) -> str:
        return self.decisions[0].scenario.collective

    @property
    def choice(self) -> Choice:
        return self.decisions[0].choice

    @property
    def verdict(self) -> Verdict:
        return self.decisions[0].verdict

    @property
    def why(self) -> Why:
        """That of most of its decisions."""
        return Counter(decision.why for decision in self.decisions).most_common(1)[0][0]

    @property
    def explanation(self) -> str:
        """What most of its decisions say, with the speed-up, the bound and the launches that hold."""
        return Counter(decision.explanation for decision in self.decisions).most_common(1)[0][0]

    @property
    def launches(self) -> int:
        """In which it was compared; 0 where that is not known."""
        return max(decision.launches for decision in self.decisions)

    @property
    def has_evidence(self) -> bool:
        return any(decision.has_evidence for decision in self.decisions)

    @property
    def speedup(self) -> Interval:
        estimates = [decision.speedup.estimate for decision in self.decisions if decision.has_evidence]
        lows, highs = zip(*((decision.speedup.low, decision.speedup.high) for decision in self.decisions), strict=True)
        return Interval(geometric_mean(estimates or [1.0]), min(lows), max(highs))

    @property
    def by_heap(self) -> str:
        """``"8.10x where the heap gives memory back, 1.24x where it keeps it"``; empty where no page faults are met."""
        heaps = [decision.heaps for decision in self.decisions if decision.heaps is not None]
        if not heaps:
            return ""
        gives_back, keeps = (geometric_mean(values) for values in zip(*heaps, strict=True))
        return f"{gives_back:.2f}x where the heap gives memory back, {keeps:.2f}x where it keeps it"

    @property
    def scenarios(self) -> list[Scenario]:
        return [decision.scenario for decision in self.decisions]

    @property
    def compared(self) -> int:
        """How many of its scenarios were compared themselves."""
        return sum(1 for decision in self.decisions if decision.ratios)

    @property
    def comparisons(self) -> int:
        return sum(len(decision.ratios) for decision in self.decisions)

    @property
    def shape(self) -> str:
        """``"2 to 8 x 2"``: nodes x ranks per node."""
        nodes, ppn = ({getattr(s, name) for s in self.scenarios} for name in ("nodes", "ppn"))
        return f"{_span(nodes)} x {_span(ppn)}"

    @property
    def sizes(self) -> str:
        """``"1 B to 32 KiB"``; empty for a barrier."""
        if self.collective == "barrier":
            return ""
        sizes = [scenario.size_bytes for scenario in self.scenarios]
        return format_size_range(min(sizes), max(sizes))

    @property
    def place(self) -> str:
        """``"bcast 2 to 8 x 2, 256 B to 8 KiB"``. A region need not fill the span: its scenarios are what counts."""
        return f"{self.collective} {self.shape}" + (f", {self.sizes}" if self.sizes else "")


def judged_regions(decisions: Iterable[Decision]) -> list[JudgedRegion]:
    """``decisions`` by region, in ascending order of the first scenario of each."""
    mine = sorted(decisions, key=lambda decision: decision.scenario)
    together = grouped(mine, lambda d: (d.scenario.collective, d.choice, d.verdict, d.region))
    beside = neighbours([decision.scenario for decision in mine])
    regions = []
    for key, some in together.items():
        parts = [some] if key[-1] is not None else _connected(some, beside)
        regions += [JudgedRegion(tuple(part)) for part in parts]
    return sorted(regions, key=lambda region: (region.decisions[0].scenario, str(region.choice)))


def _connected(decisions: Sequence[Decision], beside: dict[Scenario, list[Scenario]]) -> list[list[Decision]]:
    """The largest sets of neighbours, each in ascending order."""
    by_scenario = {decision.scenario: decision for decision in decisions}
    parts = connected(by_scenario, lambda here: [other for other in beside[here] if _is_near(here, other)])
    return [[by_scenario[scenario] for scenario in part] for part in parts]


def _is_near(scenario: Scenario, other: Scenario) -> bool:
    pairs = ((scenario.nodes, other.nodes), (scenario.ppn, other.ppn), (scenario.size_bytes, other.size_bytes))
    return all(max(pair) <= _FURTHEST * min(pair) for pair in pairs)


def _span(values: Iterable[int]) -> str:
    low, high = min(some := set(values)), max(some)
    return str(low) if low == high else f"{low} to {high}"
