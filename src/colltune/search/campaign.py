"""A tuning campaign: what is measured next, until enough is known or the budget is spent, and its models by collective.

The only module that knows both the learners and the source of samples.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from statistics import median

import numpy as np

from colltune.bench.parallel import Lanes, conduct
from colltune.core.medians import broken_choices
from colltune.core.proven import StopReason
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Model, Point, Prediction, Space
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.learn.contract import Learner
from colltune.learn.expected_gain import ExpectedGain
from colltune.measure.contract import Effort, Source
from colltune.schedule.contract import Task
from colltune.schedule.durations import Durations
from colltune.search.contenders import as_in_first_launch
from colltune.search.point_queue import PointQueue

# Trials, warm-up, the calls back to back and the synchronisation, over the time box of a choice.
_OVERHEAD = 2.5
# Of the budget, what one point takes in the worst case while there are cheaper ones: learners begin at the edge of the
# space, where on a slow network a handful of points would take all there is.
_LARGEST_SHARE = 0.15
# Of an equal share of the time, what every collective has before the expected gain decides.
_FAIR_PART = 0.35
# Points that a learner is asked for beyond those needed: the most useful one may be expensive.
_LOOK_AHEAD = 3
# Where all of these are, so many times more.
_FARTHER = 16


@dataclass(frozen=True)
class Progress:
    """Where a campaign stands. ``speedup``: default over best at the latest scenario, None where unknown."""

    collective: str
    scenario: Scenario | None
    pairs_done: int
    pairs_total: int
    elapsed_s: float
    budget_s: float
    best: Choice | None = None
    speedup: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended. ``reasons`` says, per collective, why its measuring stopped."""

    samples: tuple[Sample, ...]
    reasons: Mapping[str, StopReason | str]
    elapsed_s: float
    interrupted: bool

    @cached_property
    def for_choosing(self) -> tuple[Sample, ...]:
        """The samples with the times by which choices are made."""
        return tuple(as_in_first_launch(sample.for_choosing() for sample in self.samples))


@dataclass
class Campaign:
    """Drives ``learners`` (one per collective, over ``spaces``) with samples of ``source``.

    ``record`` is called with new samples before anything else is asked for. ``known`` are samples of an earlier, cut
    off run of the same campaign: nothing of them is measured again. ``budget_s`` bounds the measuring, not counting
    the launch. Where it is expected to do, the whole grid is measured, collective by collective; where it is not, what
    promises most for its time goes first, whichever the collective. Without a bound (an infinite budget) the learners
    alone say what is measured, each in its own order, until they have nothing more to ask. With ``lanes``, which are of
    that source, points are measured on disjoint parts of the job at once. With ``expected_gain`` what pays most for one
    application goes first, and nothing that costs more than it is expected to save there. Of a collective in
    ``least_gain`` nothing is measured any more that is expected to gain less per second. ``stop`` cuts the measuring
    off.
    """

    source: Source
    spaces: Mapping[str, Space]
    learners: Mapping[str, Learner]
    record: Callable[[Sequence[Sample]], None]
    budget_s: float
    effort: Effort = field(default_factory=Effort)
    known: Sequence[Sample] = ()
    progress: Callable[[Progress], None] = lambda _progress: None
    clock: Callable[[], float] = time.monotonic
    lanes: Lanes | None = None
    expected_gain: ExpectedGain | None = None
    least_gain: Mapping[str, float] = field(default_factory=dict)
    stop: StopRequest = field(default_factory=StopRequest)

    def run(self) -> Outcome:
        self.known = [sample for sample in self.known if sample.status is not Status.DISTURBED]
        self._started_s = self.clock()
        self._costs_s = 0.0
        self._answered_s = self._started_s  # when the last point was
        self._besides_s: list[float] = []  # of every point; none where points are measured at once
        self._fits = False  # the whole grid, in the time that is left
        self._spent_s: defaultdict[str, float] = defaultdict(float)  # by collective, in an earlier run too
        for sample in self.known:
            self._spent_s[sample.scenario.collective] += sample.cost_s
        self._waiting: set[tuple[Scenario, Choice]] = set()  # asked for, and not answered yet
        self._samples: list[Sample] = list(self.known)
        self._pairs_total = sum(1 for space in self.spaces.values() for _ in space.pairs())
        self._done = {(sample.scenario, sample.choice) for sample in self.known}
        self._broken = broken_choices(self.known)
        self._durations = Durations(self.effort.box_s * _OVERHEAD)
        self._durations.tell(self.known)
        self._queues = {
            name: PointQueue(self.spaces[name], learner, self._durations) for name, learner in self.learners.items()
        }
        for name, queue in self._queues.items():
            queue.know([sample.for_choosing() for sample in self.known if sample.scenario.collective == name])
            queue.exclude(choice for collective, choice in self._broken if collective == name)
        interrupted = False
        try:
            with self.stop.cuts():
                while self._measure():
                    pass
        except INTERRUPTIONS:
            interrupted = True
        last = StopReason.BUDGET_SPENT if math.isfinite(self.budget_s) else StopReason.NOT_ASKED
        last = StopReason.STOPPED if interrupted else last
        reasons = {name: queue.reason or last for name, queue in self._queues.items()}
        return Outcome(tuple(self._samples), reasons, self.clock() - self._started_s, interrupted)

    def _measure(self) -> bool:
        """Measures until nothing more is offered; False if nothing was."""
        before = len(self._samples)
        if self.lanes is not None:
            conduct(self.lanes, self.effort, self._tasks, self._begin, self._take, self.clock)
        else:
            for point, samples in self.source.measure(self._in_turn(), self.effort):
                self._take(point, samples)
        return len(self._samples) > before

    def _in_turn(self) -> Iterator[Point]:
        while tasks := self._tasks(1):
            point = self._begin(tasks[0].point)
            if point.choices:
                yield point

    def _begin(self, point: Point) -> Point:
        """``point`` without what is broken by now; it is not offered again."""
        collective = point.scenario.collective
        self._queues[collective].begin(point)
        left = tuple(c for c in point.choices if (collective, c) not in self._broken)
        self._waiting |= {(point.scenario, choice) for choice in left}
        return replace(point, choices=left)

    def _awaits(self, collective: str) -> bool:
        """Whether something was begun that has no answer: the source may still be at it, or have given it up."""
        return any(s.collective == collective and (collective, c) not in self._broken for s, c in self._waiting)

    @property
    def _beside_s(self) -> float:
        """What a point takes beside its calls: its request, ranks that meet, and the choice of the next one.

        Where calls are short it is most of the time, so it belongs to the price of a point. The median of all points:
        some waited for calm, maybe the first.
        """
        return max(median(self._besides_s), 0.0) if len(self._besides_s) > 2 else 0.0

    def _tasks(self, count: int) -> list[Task]:
        """The ``count`` points that come next, and what they are expected to take."""
        if math.isinf(self.budget_s) and self.expected_gain is None:
            going_on = [queue for queue in self._queues.values() if queue.reason is None]
            asked = self._by_worth(going_on, count, math.inf)
            return [Task(point, queue.expect_s(point)) for queue, point in asked]
        left_s = self._started_s + self.budget_s - self.clock()
        active = [queue for queue in self._queues.values() if queue.reason is None]
        rest_s = {queue.collective: queue.rest_s() for queue in active}
        for queue in active:
            done = rest_s[queue.collective] == 0.0 and not queue.in_order(1)
            if done and not self._awaits(queue.collective):
                queue.reason = StopReason.WHOLE
            elif not self._is_worth_its_time(queue):
                queue.reason = StopReason.NOT_WORTH
        active = [queue for queue in active if queue.reason is None]
        if left_s <= 0.0 or not active:
            return []
        if self.expected_gain is not None:
            return self._by_saving(self.expected_gain, active)[:count]
        total_s = sum(rest_s.values())
        # Before it is known what large messages cost, all of them may be too much.
        fits = total_s <= left_s and not self.least_gain
        self._fits = fits and (self._fits or sum(queue.rest_s(worst_case=True) for queue in active) <= left_s)
        if self._fits:
            # Cheaper to measure than to be clever about.
            points = [(queue, point) for queue in active for point in queue.in_order(count)][:count]
        else:
            points = self._by_worth(active, count, min(left_s, _LARGEST_SHARE * self.budget_s))
            points = points or self._by_worth(active, count, left_s)
        return [Task(point, queue.expect_s(point)) for queue, point in points]

    def _is_worth_its_time(self, queue: PointQueue) -> bool:
        least = self.least_gain.get(queue.collective, 0.0)
        if least <= 0.0:
            return True
        asked = queue.from_learner(1 + _LOOK_AHEAD)
        return queue.reason is not None or not asked or max(queue.worth(asked).tolist()) >= least

    def _below_share(self, active: Sequence[PointQueue]) -> list[PointQueue]:
        """Those that had the least of the time, where that is less than a part of what each would have in equal shares.

        What a learner expects to gain rests on what it has seen: of a collective that it knows little of it may expect
        nothing.
        """
        spent = [self._spent_s[queue.collective] for queue in active]
        limit_s = _FAIR_PART * self._costs_s / len(self._queues)
        return [active[spent.index(min(spent))]] if min(spent) < limit_s else []

    def _by_saving(self, expected: ExpectedGain, active: Sequence[PointQueue]) -> list[Task]:
        tasks = [Task(point, queue.expect_s(point)) for queue in active for point in queue.everything()]
        paying, reason = expected.worth_measuring([(task.point, task.duration_s) for task in tasks], self._samples)
        if not paying:
            for queue in active:
                queue.reason = reason
        return [tasks[place] for place in paying]

    def _by_worth(self, active: Sequence[PointQueue], count: int, most_s: float) -> list[tuple[PointQueue, Point]]:
        """The most gain for the time, of what should take ``most_s`` at most; the rest is left to the models.

        What the learners ask for, each in its own order. Where all that one asks for is too expensive, of what else is
        open in its collective. A collective that had far less than its part of the time comes first.
        """
        offers: list[tuple[float, PointQueue, Point]] = []
        if len(active) > 1:
            active = self._below_share(active) or active
        for queue in active:
            asked = queue.from_learner(count if math.isinf(most_s) else count + _LOOK_AHEAD)
            points = self._affordable(queue, asked, most_s)
            if asked and not points:
                points = self._affordable(queue, queue.from_learner(_FARTHER * (count + _LOOK_AHEAD)), most_s)
            if points:
                worth = queue.worth(points).tolist() if len(active) > 1 else [0.0] * len(points)
                # Nothing is worth more than what its learner asks for before it.
                offers += [(value, queue, point) for value, point in zip(accumulate(worth, min), points, strict=True)]
            elif math.isfinite(most_s) and queue.reason is None:
                points = queue.some_within(most_s)
                offers += [(value, queue, point) for value, point in zip(queue.worth(points), points, strict=True)]
        offers.sort(key=lambda item: -item[0])
        return [(queue, point) for _, queue, point in offers[:count]]

    def _affordable(self, queue: PointQueue, points: Sequence[Point], most_s: float) -> list[Point]:
        if math.isinf(most_s) or not self._durations.known:
            return list(points)
        return [point for point in points if queue.worst_case_s(point) <= most_s]

    def _in_full(self, sample: Sample, repetitions: int) -> Sample:
        """With the cost of a measurement that is not cut short to ``repetitions``: what is expected of other points."""
        if not repetitions or not sample.times_s:
            return sample
        full_s, short_s = (
            effort.expected_cost_s(sample.time_s) for effort in (self.effort, self.effort.limited(repetitions))
        )
        return replace(sample, cost_s=sample.cost_s + full_s - short_s)

    def _take(self, point: Point, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        self.record(samples)
        self._samples += samples
        collective = point.scenario.collective
        self._done |= {(s.scenario, s.choice) for s in samples}
        self._waiting -= {(s.scenario, s.choice) for s in samples}
        since_s, self._answered_s = self._answered_s, self.clock()
        if self.lanes is None:
            self._besides_s.append(self._answered_s - since_s - sum(sample.cost_s for sample in samples))
        beside_s = self._beside_s / len(samples)
        priced = [replace(sample, cost_s=sample.cost_s + beside_s) for sample in samples]
        cost_s = sum(sample.cost_s for sample in priced)
        self._costs_s += cost_s
        self._spent_s[collective] += cost_s
        self._durations.tell([self._in_full(sample, point.repetitions) for sample in priced])
        # What others disturbed is asked for no more in this run, and nothing is known of it.
        told = [sample.for_choosing() for sample in priced if sample.status is not Status.DISTURBED]
        self._queues[collective].know(told)
        if broken := broken_choices(samples) - self._broken:
            self._broken |= broken
            self._queues[collective].exclude(choice for _, choice in broken)
        times = {sample.choice: sample.time_s for sample in samples if sample.status is Status.OK}
        best = min(times, key=lambda choice: times[choice]) if times else None
        self.progress(
            Progress(
                collective,
                point.scenario,
                pairs_done=len(self._done),
                pairs_total=self._pairs_total,
                elapsed_s=self.clock() - self._started_s,
                budget_s=self.budget_s,
                best=best,
                speedup=times[DEFAULT] / times[best] if best is not None and DEFAULT in times else None,
            )
        )


class MeasuredModel:
    """Answers with the measured medians (seconds); what was not measured is infinitely slow, and so never chosen."""

    def __init__(self, medians: Mapping[tuple[Scenario, Choice], float]) -> None:
        self._medians = medians

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """``std`` is 0 where there is a measurement, infinite elsewhere."""
        times = np.array([self._medians.get(pair, np.inf) for pair in pairs], dtype=np.float64)
        return Prediction(np.log(times), np.where(np.isfinite(times), 0.0, np.inf))


def models_of(
    learners: Mapping[str, Learner],
    outcome: Outcome,
    medians: Mapping[tuple[Scenario, Choice], float],
    *,
    grid_alone: bool,
) -> dict[str, Model]:
    """What is decided by, per collective: what was measured, and where that is not all, the learner's model.

    ``grid_alone``: rules do not reach beyond the grid, so that a whole grid needs no model. Nor is there time for one
    where the job is being ended.
    """
    models: dict[str, Model] = {}
    for name, learner in learners.items():
        enough = grid_alone and (outcome.interrupted or outcome.reasons.get(name) == StopReason.WHOLE)
        known = any(scenario.collective == name for scenario, _ in medians)
        models[name] = learner.model() if known and not enough else MeasuredModel(medians)
    return models
