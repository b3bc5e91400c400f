"""Tuning replayed: a strategy measures by look-up, and pays what the measurement would have taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colltune.core.sample import Sample, Status
from colltune.core.space import Point
from colltune.evaluate.contract import MakeStrategy, Strategy
from colltune.evaluate.grid import Grid
from colltune.evaluate.metrics import Metrics, score, select

GOOD_ENOUGH = 1.03  # the average slowdown at which FACT and ACCLAiM call a tuner converged


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds that measuring one pair takes: set-up and repetitions, those of the warm-up included."""

    set_up_s: float = 1e-3
    repetitions: float = 22.0

    def of(self, time_s: float) -> float:
        return self.set_up_s + self.repetitions * time_s


@dataclass(frozen=True, slots=True)
class Step:
    """After some measurements. ``cost``: share of what measuring everything takes; ``share``: of the pairs."""

    cost: float
    share: float
    metrics: Metrics


@dataclass(frozen=True)
class Run:
    """One simulated tuning. ``stop``: the step at which the strategy would have stopped by itself."""

    grid: str
    strategy: str
    seed: int
    steps: tuple[Step, ...]
    stop: Step | None

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
        last = None
        for step in self.steps:
            if step.cost > cost:
                break
            last = step.metrics
        return last


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a state is scored, and when a run is cut short to save time.

    A state is scored when the cost has grown by the share ``growth`` since the last one; all of the first ``dense``
    states are. A run ends before the space is used up once the slowdown has stayed good enough until ``kept`` times the
    cost at which it first was; what is kept so long is taken as kept for good.
    """

    growth: float = 0.06
    dense: int = 6
    kept: float = 3.0


def simulate(
    grid: Grid, name: str, make: MakeStrategy, seed: int, cost: Cost | None = None, pace: Pace | None = None
) -> Run:
    """Tunes ``grid`` with a new strategy until everything is measured or, see Pace, nothing changes any more."""
    cost, pace = cost or Cost(), pace or Pace()
    strategy = make(grid.space, seed)
    total = float(np.nansum(np.where(np.isfinite(grid.time_s), cost.set_up_s + cost.repetitions * grid.time_s, np.nan)))
    steps: list[Step] = []
    stop: Step | None = None
    spent, pairs, scored = 0.0, 0, -1.0
    while asked := strategy.ask(1):
        samples = look_up(grid, asked[0], cost, group=pairs)
        spent += sum(sample.cost_s for sample in samples)
        pairs += len(samples)
        strategy.tell(samples)
        stops = stop is None and strategy.should_stop() is not None
        if stops or len(steps) < pace.dense or spent >= scored * (1.0 + pace.growth):
            scored = spent
            steps.append(Step(spent / total, pairs / grid.pairs, _score(strategy, grid)))
            stop = steps[-1] if stops else stop
        if stop is not None and _settled(steps, pace.kept):
            break
    if not steps or steps[-1].cost * total < spent:
        steps.append(Step(spent / total, pairs / grid.pairs, _score(strategy, grid)))
    return Run(grid.name, name, seed, tuple(steps), stop)


def look_up(grid: Grid, point: Point, cost: Cost, group: int) -> list[Sample]:
    """What measuring ``point`` yields: the recorded times."""
    samples = []
    for choice in point.choices:
        time_s = grid.time(point.scenario, choice)
        samples.append(Sample(point.scenario, choice, Status.OK, (time_s,), cost_s=cost.of(time_s), group=group))
    return samples


def _score(strategy: Strategy, grid: Grid) -> Metrics:
    selected, predicted = select(strategy.model(), grid)
    return score(selected, grid, predicted)


def _settled(steps: Sequence[Step], kept: float) -> bool:
    if steps[-1].metrics.slowdown > GOOD_ENOUGH:
        return False
    since = steps[-1].cost
    for step in reversed(steps):
        if step.metrics.slowdown > GOOD_ENOUGH:
            break
        since = step.cost
    return steps[-1].cost >= max(kept * since, since + 0.02)
