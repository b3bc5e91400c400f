"""Tuning replayed: the campaign that tunes drives a strategy over a recorded table."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colltune.bench.replay import MeasuringCost, ReplaySource
from colltune.core.sample import Choice, Sample, Scenario
from colltune.core.space import Model, Point
from colltune.measure.contract import Effort
from colltune.search.campaign import Campaign
from colltune.store.grid import Floats, Grid
from colltune_study.research.contract import MakeStrategy, Strategy
from colltune_study.research.metrics import SIGNIFICANT, Metrics, score, select


class Driven:
    """The Learner of a strategy. It is asked for one point after another, each once the last one is told, as published.

    ``ended`` says when nothing more needs to be measured; the strategy's own stop, after which others go on, does not
    end it. What is to be gained is not asked of a strategy: with one collective nothing is compared.
    """

    def __init__(self, strategy: Strategy, ended: Callable[[], bool]) -> None:
        self._strategy, self._ended = strategy, ended
        self._next: list[Point] = []

    def should_stop(self) -> str | None:
        if self._ended():
            return "all that is to be known of this run is known"
        self._next = self._strategy.ask(1)
        return None if self._next else "the strategy asks for nothing more"

    def ask(self, count: int) -> list[Point]:
        return self._next[:count]

    def tell(self, samples: Sequence[Sample]) -> None:
        if samples:
            self._strategy.tell(samples)

    def tell_pending(self, point: Point) -> None:
        """One point at a time is measured: what is under way is told before the next question."""

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        return np.ones(len(points))

    def model(self) -> Model:
        return self._strategy.model()


Pair = tuple[Scenario, Choice]

GOOD_ENOUGH = 1.03  # the average slowdown at which FACT and ACCLAiM call a tuner converged


@dataclass(frozen=True, eq=False)
class Scoring:
    """What is asked of a selection beside the best: see ``metrics.score``. ``weights`` (N,) of the grid's scenarios."""

    weights: Floats | None = None
    significant: float = SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Step:
    """After some measurements. ``cost``: share of what measuring everything takes; ``share``: of the pairs."""

    cost: float
    share: float
    metrics: Metrics


@dataclass(frozen=True)
class Run:
    """One simulated tuning. ``stop``: the step at which the strategy would have stopped by itself. ``total_s``: seconds
    that measuring everything takes, of which costs are shares; 0 where that is not known. ``told``: what was measured,
    in order, where it was asked for.
    """

    grid: str
    strategy: str
    seed: int
    steps: tuple[Step, ...]
    stop: Step | None
    total_s: float = 0.0
    told: tuple[Sample, ...] = ()

    def reach(self, limit: float = GOOD_ENOUGH) -> float:
        """The cost from which on the average slowdown stays at or below ``limit``; infinite where it never does."""
        cost = float("inf")
        for step in reversed(self.steps):
            if step.metrics.slowdown > limit:
                break
            cost = step.cost
        return cost

    def at(self, cost: float) -> Metrics | None:
        """The metrics with ``cost`` spent; None where the first step was dearer."""
        return self._last(cost, lambda step: step.cost)

    def at_share(self, share: float) -> Metrics | None:
        """The metrics with a share of the pairs measured; None where the first step measured more."""
        return self._last(share, lambda step: step.share)

    def _last(self, limit: float, where: Callable[[Step], float]) -> Metrics | None:
        last = None
        for step in self.steps:
            if where(step) > limit:
                break
            last = step.metrics
        return last


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a state is scored, and when a run is cut short to save time.

    A state is scored when the cost has grown by the share ``growth`` since the last one; all of the first ``dense``
    states are. The states about the last change from bad to good are then scored, by telling a new strategy the same,
    until the cost of that change is known to within the share ``exact``. A run ends before the space is used up once
    the slowdown has stayed good enough until ``kept`` times the cost at which it first was (what is kept so long is
    taken as kept for good) and, with ``to_stop``, the strategy has stopped by itself. ``good``: the slowdown that is
    good enough. With ``marks``, states are scored at these shares of the pairs only, and the run ends with the last.
    """

    growth: float = 0.06
    dense: int = 6
    exact: float = float("inf")
    kept: float = 3.0
    to_stop: bool = True
    good: float = GOOD_ENOUGH
    marks: tuple[float, ...] = ()


class CutShortError(Exception):
    """A simulated tuning was told to end before it was done: it says nothing."""


def simulate(
    grid: Grid,
    name: str,
    make: MakeStrategy,
    seed: int,
    cost: MeasuringCost | None = None,
    pace: Pace | None = None,
    scoring: Scoring | None = None,
    go_on: Callable[[], bool] = lambda: True,
    keep: bool = False,
) -> Run:
    """Tunes ``grid`` with a new strategy until everything is measured or, see Pace, nothing changes any more.

    ``keep``: the run has the samples too. Raises CutShortError as soon as ``go_on`` says no.
    """
    cost, pace = cost or MeasuringCost(), pace or Pace()
    tape = _Tape(grid, make, seed, cost.total(grid), scoring or Scoring())
    strategy = make(grid.space, seed)
    watch = _Watch(tape, strategy, pace)
    source = ReplaySource([grid], grid.environment, seed, cost)

    def record(samples: Sequence[Sample]) -> None:
        if not go_on():
            raise CutShortError(f"{name} on {grid.name}")
        tape.add(list(samples))

    campaign = Campaign(
        source=source,
        spaces={grid.collective: grid.space},
        learners={grid.collective: Driven(strategy, lambda: watch.over)},
        record=record,
        budget_s=math.inf,
        effort=Effort(fewest=cost.repetitions, most=cost.repetitions),
        progress=lambda _progress: watch.look(),
        clock=lambda: source.now_s,
    )
    if campaign.run().interrupted:
        raise KeyboardInterrupt
    if not tape.steps or max(tape.steps) < len(tape.told):
        tape.score(len(tape.told), strategy)
    tape.refine(pace)
    stop = tape.steps[watch.stop] if watch.stop else None
    told = tuple(sample for samples in tape.told for sample in samples) if keep else ()
    return Run(grid.name, name, seed, tuple(tape.in_order), stop, tape.total_s, told)


class _Watch:
    """Scores states as they come up; says when the run is ``over``. ``stop``: answers told at the strategy's stop."""

    def __init__(self, tape: "_Tape", strategy: Strategy, pace: Pace) -> None:
        self._tape, self._strategy, self._pace = tape, strategy, pace
        self._scored_s, self._marks = -1.0, list(pace.marks)
        self.stop = 0
        self.over = False

    def look(self) -> None:
        """One more answer was told."""
        if self._pace.marks:
            self._look_at_marks()
            return
        tape, pace = self._tape, self._pace
        now, spent_s = len(tape.told), tape.spent_s[-1]
        if not self.stop and self._strategy.should_stop() is not None:
            self.stop = now
        if self.stop == now or len(tape.steps) < pace.dense or spent_s >= self._scored_s * (1.0 + pace.growth):
            self._scored_s = spent_s
            tape.score(now, self._strategy)
        self.over = (self.stop > 0 or not pace.to_stop) and _settled(tape.in_order, pace)

    def _look_at_marks(self) -> None:
        tape = self._tape
        if tape.share >= self._marks[0] * (1.0 - 1e-9):
            tape.score(len(tape.told), self._strategy)
            self._marks = [mark for mark in self._marks if mark > tape.share]
        self.over = not self._marks


class _Tape:
    """What a strategy was told, so that any state can be scored when its score turns out to be of use."""

    def __init__(self, grid: Grid, make: MakeStrategy, seed: int, total_s: float, scoring: Scoring) -> None:
        self._grid, self._make, self._seed, self._scoring = grid, make, seed, scoring
        self.total_s = total_s
        self.told: list[list[Sample]] = []
        self.spent_s: list[float] = []
        self._pairs: list[int] = []
        self._seen: set[Pair] = set()
        self.steps: dict[int, Step] = {}  # by the number of answers that were told

    def add(self, samples: list[Sample]) -> None:
        self.told.append(samples)
        self.spent_s.append((self.spent_s[-1] if self.spent_s else 0.0) + sum(sample.cost_s for sample in samples))
        self._seen |= {(sample.scenario, sample.choice) for sample in samples}
        self._pairs.append(len(self._seen))

    @property
    def share(self) -> float:
        """Of the pairs, that were looked at."""
        return self._pairs[-1] / len(self._grid.recorded)

    @property
    def in_order(self) -> list[Step]:
        return [self.steps[count] for count in sorted(self.steps)]

    def score(self, count: int, strategy: Strategy | None = None) -> Step:
        """The state after ``count`` answers; of a strategy that was told them, or of a new one."""
        if strategy is None:
            strategy = self._make(self._grid.space, self._seed)
            for samples in self.told[:count]:
                strategy.tell(samples)
        selected, predicted = select(strategy.model(), self._grid)
        metrics = score(selected, self._grid, predicted, self._scoring.weights, self._scoring.significant)
        share = self._pairs[count - 1] / len(self._grid.recorded)
        self.steps[count] = Step(self.spent_s[count - 1] / self.total_s, share, metrics)
        return self.steps[count]

    def refine(self, pace: Pace) -> None:
        """Scores states between the last bad and the first lastingly good one, halving what lies between."""
        if not np.isfinite(pace.exact):
            return
        counts = sorted(self.steps)
        bad = max((n for n in counts if self.steps[n].metrics.slowdown > pace.good), default=0)
        good = next((n for n in counts if n > bad), 0)
        while good - bad > 1 and self.spent_s[good - 1] > (1.0 + pace.exact) * (self.spent_s[bad - 1] if bad else 0.0):
            middle = (good + bad) // 2
            if self.score(middle).metrics.slowdown > pace.good:
                bad = middle
            else:
                good = middle


def _settled(steps: Sequence[Step], pace: Pace) -> bool:
    if steps[-1].metrics.slowdown > pace.good:
        return False
    since = steps[-1].cost
    for step in reversed(steps):
        if step.metrics.slowdown > pace.good:
            break
        since = step.cost
    return steps[-1].cost >= max(pace.kept * since, since + 0.02)
