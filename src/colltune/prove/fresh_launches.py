"""Runs the acceptance test: measures default and candidate side by side again, in fresh launches.

A group is one paired comparison: default and candidate measured side by side once, which gives one ratio of medians.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from colltune.core.choice import DEFAULT, Choice
from colltune.core.proven import ProvenDecision, Verdict, fewest_groups
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source
from colltune.prove.gate import THRESHOLD, judge, untried

# Statuses that concern one scenario only, and not the choice elsewhere.
_HERE_ALONE = frozenset({Status.INAPPLICABLE, Status.UNMEASURED})
# After so many answers about one choice alone, in place of a comparison, a scenario is given up.
_MOST_ALONE = 3
# So many candidates are compared at once first: they show how wrong the expected costs of the others are.
_NEWCOMERS = 16
# A plan is renewed after this share of its time.
_STALE_SHARE = 0.05
# More candidates are compared once than can be proven in time, because some are refused after that.
_OVERBOOKED = 1.3


@dataclass
class Confirmation:
    """Runs the acceptance test on ``candidates``.

    ``open_source`` starts a fresh launch and is called ``launches`` times at most; the groups are spread over them, so
    that an algorithm whose time differs from launch to launch is seen to. ``baseline`` gives what a candidate is
    compared with: the default, or the choice that is the same and set in the candidates' way. ``deadline_s`` is on
    ``clock``: candidates still open by then are not tried, and stay with the default as what is refused does.
    ``launch_s``: what a launch takes, corrected by those that are seen. ``cost_s``: what a group is expected to take
    before it is known.
    """

    open_source: Callable[[], Source]
    record: Callable[[Sequence[Sample]], None]
    baseline: Callable[[Scenario], Choice] = lambda _scenario: DEFAULT
    launches: int = 5
    most_groups: int = 12
    threshold: float = THRESHOLD
    effort: Effort = field(default_factory=lambda: Effort(relative_width=0.02, box_s=0.01, fewest=20, most=200))
    progress: Callable[[Sequence[ProvenDecision]], None] = lambda _results: None
    clock: Callable[[], float] = time.monotonic
    launch_s: float = 0.0
    cost_s: Callable[[Scenario], float] = lambda _scenario: 0.0
    _ratios: defaultdict[Scenario, list[float]] = field(default_factory=lambda: defaultdict(list), init=False)
    _failed: dict[Scenario, str] = field(default_factory=dict, init=False)
    _untrusted: dict[tuple[str, Choice], str] = field(default_factory=dict, init=False)
    _alone: dict[Scenario, int] = field(default_factory=dict, init=False)
    _cost_s: dict[Scenario, float] = field(default_factory=dict, init=False)
    _expected_s: dict[Scenario, float] = field(default_factory=dict, init=False)
    _closed: set[Scenario] = field(default_factory=set, init=False)  # no further group can change anything
    _measuring_s: float = field(default=0.0, init=False)
    _launches_seen: int = field(default=0, init=False)
    _began_s: float = field(default=0.0, init=False)  # when the launch at hand was asked for, or last answered

    def run(self, candidates: Mapping[Scenario, Choice], deadline_s: float) -> list[ProvenDecision]:
        """Judges ``candidates``, which come in the order of their promise: the first are proven first."""
        self._ratios |= {scenario: [] for scenario in candidates}
        fewest = fewest_groups()
        quotas = [-(-fewest * (i + 1) // self.launches) for i in range(self.launches - 1)] + [self.most_groups]
        for number, quota in enumerate(quotas):
            # The launches that are still to come take their time, too.
            measured_by_s = deadline_s - self.launch_s * (self.launches - 1 - number)
            if not self._round(candidates, quota, measured_by_s - self.launch_s):
                continue
            self._began_s = self.clock()
            source = self.open_source()
            try:
                self._measure(source, candidates, quota, measured_by_s)
            finally:
                source.close()
        return self.results(candidates)

    def _saw_launch(self, took_s: float) -> None:
        """Updates the time of a launch: the mean of the expected and the observed ones."""
        self._launches_seen += 1
        self.launch_s += (max(took_s, 0.0) - self.launch_s) / (1 + self._launches_seen)

    def _measure(self, source: Source, candidates: Mapping[Scenario, Choice], quota: int, by_s: float) -> None:
        """What one launch measures: rounds over all candidates that can be proven in time, until all have their quota.

        Rounds keep two groups of one candidate well apart in time.
        """
        first, answered = True, True
        while answered:
            answered = False
            for point, samples in source.measure(self._offers(candidates, quota, by_s), self.effort):
                answered = True
                took_s = self.clock() - self._began_s
                self._began_s += took_s
                if first:
                    # The launch itself, as far as the first group does not account for it.
                    self._saw_launch(took_s - sum(sample.cost_s for sample in samples))
                else:
                    self._measuring_s += took_s
                first = False
                self._take(point, samples)
            self.progress(self.results(candidates))

    def _offers(self, candidates: Mapping[Scenario, Choice], quota: int, by_s: float) -> Iterator[Point]:
        """One round, planned anew as time goes: where groups take longer, the last candidates are left out."""
        offered: set[Scenario] = set()
        while points := [one for one in self._round(candidates, quota, by_s) if one.scenario not in offered]:
            planned_s, informed = self.clock(), bool(self._cost_s)
            for point in points:
                offered.add(point.scenario)
                yield point
                stale = self.clock() - planned_s > _STALE_SHARE * (by_s - planned_s)
                if stale or (self._cost_s and not informed):
                    break

    def rest_s(self, candidates: Mapping[Scenario, Choice]) -> float:
        """What the comparisons would take that the open candidates still need, launches not counted."""
        typical_s, off = self._typical_s, self._off
        return self._lumps * sum(
            max(1, fewest_groups() - len(self._ratios[scenario]))
            * self._cost_s.get(scenario, off * self._expect_s(scenario, typical_s))
            for scenario, choice in candidates.items()
            if self._is_open(scenario, choice)
        )

    def results(self, candidates: Mapping[Scenario, Choice]) -> list[ProvenDecision]:
        """What is known of ``candidates`` by now, also after a run that was cut off."""
        return [self._result(scenario, choice) for scenario, choice in candidates.items()]

    def _round(self, candidates: Mapping[Scenario, Choice], quota: int, deadline_s: float) -> list[Point]:
        """One further group of all candidates that need one and whose proof can be had in time, best candidates first.

        The first look goes to more than can be proven, since many are refused after it. Points of one shape stand
        together: the agent can queue these.
        """
        left_s = (deadline_s - self.clock()) / self._lumps
        if left_s <= 0.0:
            return []
        typical_s = self._typical_s
        off = self._off
        points: list[Point] = []
        newcomers = 0
        # Who fell short once needs more groups, and is likely to fall short again.
        ordered = sorted(candidates, key=lambda s: sum(ratio <= self.threshold for ratio in self._ratios[s]))
        for scenario in ordered:
            choice = candidates[scenario]
            if not self._is_open(scenario, choice):
                continue
            newcomers += not self._ratios[scenario]
            if newcomers > _NEWCOMERS:
                break
            missing = max(1, fewest_groups() - len(self._ratios[scenario]))
            groups = missing if self._ratios[scenario] else missing / _OVERBOOKED
            needed_s = groups * self._cost_s.get(scenario, off * self._expect_s(scenario, typical_s))
            if needed_s > left_s and (points or self._cost_s):
                continue
            # Also who has had the groups of this launch will need time in those to come.
            left_s -= needed_s
            if len(self._ratios[scenario]) < quota:
                points.append(Point(scenario, (self.baseline(scenario), choice)))
        return sorted(points, key=lambda p: (-p.scenario.ranks, -p.scenario.nodes, p.scenario.collective))

    @property
    def _lumps(self) -> float:
        """What measuring took over the usual cost of its groups: launches open connections, and stall."""
        usual_s = sum(self._cost_s.get(scenario, 0.0) * len(ratios) for scenario, ratios in self._ratios.items())
        return max(1.0, self._measuring_s / usual_s) if usual_s > 0.0 else 1.0

    @property
    def _off(self) -> float:
        """What groups took over what they were expected to take."""
        typical_s = self._typical_s
        expected_s = sum(self._expect_s(scenario, typical_s) for scenario in self._cost_s)
        return sum(self._cost_s.values()) / expected_s if self._cost_s else 1.0

    @property
    def _typical_s(self) -> float:
        return median(self._cost_s.values()) if self._cost_s else 0.0

    def _expect_s(self, scenario: Scenario, typical_s: float) -> float:
        """What a group is expected to take, ``typical_s`` where nobody knows."""
        if scenario not in self._expected_s:
            self._expected_s[scenario] = self.cost_s(scenario)
        return self._expected_s[scenario] or typical_s or 1e-9

    def _take(self, point: Point, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        self.record(samples)
        compared = self.baseline(point.scenario)
        for sample in samples:
            why = f"{sample.choice} was {sample.status} when measured again"
            why += f" ({sample.detail})" if sample.status is Status.UNMEASURED else ""
            if sample.status in _HERE_ALONE or (sample.status is not Status.OK and sample.choice == compared):
                self._failed[point.scenario] = why
            elif sample.status is not Status.OK:
                self._untrusted[point.scenario.collective, sample.choice] = why
        times = {sample.choice: sample.time_s for sample in samples if sample.status is Status.OK}
        if len(point.choices) == 2 and len(times) == 2:
            self._cost_s[point.scenario] = sum(sample.cost_s for sample in samples)
            self._ratios[point.scenario].append(times[point.choices[0]] / times[point.choices[1]])
        elif len(point.choices) == 1:
            # The job ended while the two were measured side by side, so the source measured each alone.
            self._alone[point.scenario] = self._alone.get(point.scenario, 0) + 1
            if self._alone[point.scenario] >= _MOST_ALONE:
                self._failed[point.scenario] = "the job ended when it was measured beside the default"

    def _failure(self, scenario: Scenario, choice: Choice) -> str | None:
        """Why ``choice`` cannot be kept, whatever its times."""
        return self._untrusted.get((scenario.collective, choice), self._failed.get(scenario))

    def _is_open(self, scenario: Scenario, choice: Choice) -> bool:
        if scenario in self._closed or self._failure(scenario, choice) is not None:
            return False
        ratios = self._ratios[scenario]
        if ratios and judge(scenario, choice, ratios, self.most_groups, self.threshold).verdict is not Verdict.OPEN:
            self._closed.add(scenario)
        return scenario not in self._closed

    def _result(self, scenario: Scenario, choice: Choice) -> ProvenDecision:
        ratios = tuple(self._ratios.get(scenario, ()))
        failure = self._failure(scenario, choice)
        if failure is not None:
            return ProvenDecision(scenario, choice, Verdict.REFUSED, ratios, failure)
        result = judge(scenario, choice, ratios, self.most_groups, self.threshold)
        if result.verdict is Verdict.OPEN:
            return untried(scenario, choice, ratios, self.most_groups)
        return result
