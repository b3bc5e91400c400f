"""The results of a campaign, computed from its measurements: the numbers of the report, without markup."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median, quantiles
from typing import NamedTuple

from colltune.core.interval import Interval
from colltune.core.judged_together import JudgedRegion, judged_regions
from colltune.core.medians import pair_median
from colltune.core.proven import Decision, Summary, Verdict, mean_of_kept
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status, grouped
from colltune.core.switchback import Standing
from colltune.judge.spread import median_interval

# Where times of the same call differ by more, launches were not of one machine.
_STEADY = 2.0


@dataclass(frozen=True, slots=True)
class ChoiceTiming:
    """One choice at one scenario, over all of its repetitions. Times in seconds; None where there are none.

    ``low_s``, ``high_s``: 95% interval of the median, None where the repetitions are too few for one.
    """

    choice: Choice
    status: Status
    median_s: float | None
    low_s: float | None
    high_s: float | None
    repetitions: int


@dataclass(frozen=True, slots=True)
class ScenarioTimes:
    """One scenario: the choice in force, and all that was timed, fastest first, failures last.

    ``default``: the choice that the library's own was timed as.
    """

    scenario: Scenario
    chosen: Choice
    default: Choice
    timings: tuple[ChoiceTiming, ...]


class SampleSpread(NamedTuple):
    """The scatter of one sample: interquartile range over median.

    ``drift``: its median over the median of all samples of the same scenario and choice; None where it is the only one.
    """

    relative_iqr: float
    drift: float | None


@dataclass(frozen=True)
class Findings:
    """All data of a report.

    ``proofs``: samples that the proof took, beside those of the campaign. ``jobs``: (nodes, ranks per node) of the jobs
    that it was tuned in, if they are several. ``default_equivalent``: the choice that runs what the default runs, None
    where none is known. ``shares``: of an application's time, what the calls of each scenario take; empty without a
    profile. ``applications``: what its runs said of the rules. ``only_live``: collectives that no file decides.
    """

    environment: Environment
    rule_sets: Mapping[str, RuleSet]
    summary: Summary
    samples: Sequence[Sample]
    proofs: Sequence[Sample] = ()
    jobs: Sequence[tuple[int, int]] = ()
    default_equivalent: Callable[[Scenario], Choice | None] = lambda _scenario: None
    shares: Mapping[Scenario, float] = field(default_factory=dict)
    applications: Sequence[Standing] = ()
    only_live: Sequence[str] = ()

    @property
    def decisions(self) -> list[Decision]:
        """The decisions of the proof, in the order of the scenarios."""
        return sorted(self.summary.decisions, key=lambda decision: decision.scenario)

    def regions(self, verdict: Verdict) -> list[JudgedRegion]:
        """The decisions with ``verdict``, by region."""
        return judged_regions(self.summary.having(verdict))

    @cached_property
    def drift(self) -> float:
        """How far the median of the same call moved from launch to launch, one over the other: 10% moved further."""
        drifts = (spread.drift for spread in spreads(self) if spread.drift is not None)
        moved = sorted(max(drift, 1.0 / max(drift, 1e-9)) for drift in drifts)
        return moved[len(moved) * 9 // 10] if moved else 1.0

    @property
    def is_steady(self) -> bool:
        """Whether launches were so much of one machine that a confidence, which is of one machine, can be stated."""
        return self.drift <= _STEADY

    @property
    def started_s(self) -> float:
        """When measuring began, on the clock of the samples: seconds since the epoch on a real machine.

        Samples of before the campaign are those of earlier ones that were used again.
        """
        starts = [sample.started_s for sample in (*self.samples, *self.proofs)]
        since_s = self.summary.since_s
        if since_s is None or max(starts, default=0.0) < since_s:  # a simulated machine has a clock of its own
            return min(starts, default=0.0)
        return max(min(starts), since_s)

    def default_of(self, scenario: Scenario, timed: Collection[Choice]) -> Choice:
        """The choice among ``timed`` that stands for the default; the default itself where none is known to."""
        choice = None if DEFAULT in timed else self.default_equivalent(scenario)
        return choice if choice is not None and choice in timed else DEFAULT

    def cells(self, collective: str) -> list[ScenarioTimes]:
        """The scenarios of ``collective`` that were measured or that a decision in force is about, in ascending order.

        The times are those of the campaign; of the proof where the campaign did not come to the scenario.
        """
        rules = self.rule_sets[collective]
        timed = {**_timings(self.proofs), **_timings(self.samples)}
        decided = {decision.scenario for decision in self.summary.having(Verdict.KEPT)}
        rows = []
        for scenario in sorted({*timed, *decided}):
            if scenario.collective == collective:
                timings = timed.get(scenario, ())
                default = self.default_of(scenario, {timing.choice for timing in timings})
                rows.append(ScenarioTimes(scenario, rules.evaluate(scenario), default, timings))
        return rows


def collective_gains(decisions: Iterable[Decision]) -> dict[str, Interval]:
    """Of every collective with a proven decision, the speed-up; the most first."""
    by_name = grouped(decisions, lambda decision: decision.scenario.collective)
    means = {name: mean for name, some in by_name.items() if (mean := mean_of_kept(some)) is not None}
    return dict(sorted(means.items(), key=lambda named: -named[1].estimate))


def _timings(samples: Iterable[Sample]) -> dict[Scenario, tuple[ChoiceTiming, ...]]:
    """Of every scenario with a time."""
    by_scenario = grouped(samples, lambda sample: sample.scenario)
    each = {scenario: timings_of(some) for scenario, some in by_scenario.items()}
    return {scenario: timings for scenario, timings in each.items() if timings[0].status is Status.OK}


def timings_of(samples: Sequence[Sample]) -> tuple[ChoiceTiming, ...]:
    """Of the samples of one scenario: what was timed, fastest first, then what never was."""
    timed = grouped((sample for sample in samples if sample.status is Status.OK), lambda sample: sample.choice)
    failed = {sample.choice: sample.status for sample in samples if sample.choice not in timed}
    timings = (_timing(choice, some) for choice, some in timed.items())
    lost = (ChoiceTiming(choice, status, None, None, None, 0) for choice, status in failed.items())
    return (*sorted(timings, key=lambda timing: timing.median_s or 0.0), *lost)


def _timing(choice: Choice, samples: Sequence[Sample]) -> ChoiceTiming:
    times_s = [time_s for sample in samples for time_s in sample.times_s]
    low_s, high_s = median_interval(times_s) or (None, None)
    return ChoiceTiming(choice, Status.OK, pair_median(samples), low_s, high_s, len(times_s))


def spreads(findings: Findings) -> list[SampleSpread]:
    """The noise of every sample with four repetitions or more, and how far its median moved if measured again."""
    samples = [s for s in (*findings.samples, *findings.proofs) if len(s.times_s) >= 4]
    by_pair = grouped(samples, lambda sample: (sample.scenario, sample.choice))
    rows = []
    start_s = findings.started_s
    for sample in (s for s in samples if s.started_s >= start_s):
        low, _, high = quantiles(sample.times_s, n=4)
        same = by_pair[sample.scenario, sample.choice]
        drift = sample.time_s / median(other.time_s for other in same) if len(same) > 1 else None
        rows.append(SampleSpread((high - low) / sample.time_s, drift))
    return rows
