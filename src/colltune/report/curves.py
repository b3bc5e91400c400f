"""Latency against message size, by default and tuned, for each collective and shape of a job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from colltune.core.choice import Choice
from colltune.core.medians import pair_median
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.report.findings import Findings


@dataclass(frozen=True, slots=True)
class Latency:
    """Median of all repetitions in seconds, and what 10% and 90% of them lie below."""

    median_s: float
    low_s: float
    high_s: float

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Latency:
        """``samples`` of one choice at one scenario, at least one."""
        times_s = [time_s for sample in samples for time_s in sample.times_s]
        cuts = quantiles(times_s, n=10, method="inclusive") if len(times_s) > 1 else times_s
        return cls(pair_median(samples), cuts[0], cuts[-1])


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One scenario. ``default``, ``tuned``: times of the library's own choice and of the one in force; None: not timed.

    ``decision``: what departs from the default here, None where nothing does.
    """

    scenario: Scenario
    default: Latency | None
    tuned: Latency | None
    decision: ProvenDecision | None


@dataclass(frozen=True)
class Panel:
    """The curves of ``collective`` on ``nodes`` x ``ppn`` ranks, in the order of the sizes."""

    collective: str
    nodes: int
    ppn: int
    points: tuple[CurvePoint, ...]

    @property
    def changed(self) -> int:
        """The scenarios in which a rule departs from the default."""
        return sum(1 for point in self.points if point.decision is not None)


def curve_points(findings: Findings) -> dict[Scenario, CurvePoint]:
    """Of every scenario of the tuned collectives that was measured or compared.

    Where default and tuned were timed side by side in the proof, these times count: they are of several launches. Times
    of the campaign are one after another, and of few launches.
    """
    kept = {one.scenario: one for one in findings.summary.having(Verdict.KEPT)}
    proven, measured = _timed(findings.proofs), _timed(findings.samples)
    found = {}
    for scenario in sorted({*measured, *proven}):
        if scenario.collective not in findings.rule_sets:
            continue
        decision = kept.get(scenario)
        times, beside = measured.get(scenario, {}), proven.get(scenario, {})
        default = findings.default_of(scenario, {*times, *beside})
        sides = (default, default if decision is None else decision.choice)
        if all(side in beside for side in sides):
            times = beside
        by_default, tuned = (Latency.of(times[side]) if side in times else None for side in sides)
        found[scenario] = CurvePoint(scenario, by_default, tuned, decision)
    return found


def _timed(samples: Sequence[Sample]) -> dict[Scenario, dict[Choice, list[Sample]]]:
    found: defaultdict[Scenario, dict[Choice, list[Sample]]] = defaultdict(dict)
    for sample in samples:
        if sample.status is Status.OK:
            found[sample.scenario].setdefault(sample.choice, []).append(sample)
    return found


def panels(findings: Findings) -> list[Panel]:
    """One for each collective and shape of which the default was timed: the largest shape of every collective first."""
    found: defaultdict[tuple[str, int, int], list[CurvePoint]] = defaultdict(list)
    for scenario, point in sorted(curve_points(findings).items()):
        if point.default is not None:
            found[scenario.collective, scenario.nodes, scenario.ppn].append(point)
    by_name: defaultdict[str, list[Panel]] = defaultdict(list)
    for (name, nodes, ppn), points in found.items():
        by_name[name].append(Panel(name, nodes, ppn, tuple(points)))
    ranked = [sorted(some, key=lambda panel: -panel.nodes * panel.ppn) for some in by_name.values()]
    return [some[place] for place in range(max(map(len, ranked), default=0)) for some in ranked if place < len(some)]


def largest_call(points: Sequence[CurvePoint]) -> CurvePoint | None:
    """The one with the most bytes, then ranks, of those that were timed by default and tuned; None if none was."""
    timed = [point for point in points if point.default is not None and point.tuned is not None]
    return max(timed, key=lambda point: (point.scenario.size_bytes, point.scenario.ranks), default=None)
