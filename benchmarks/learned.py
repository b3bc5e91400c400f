"""What our learner measures on a recorded grid until it stops by itself: the work that a campaign has to place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colltune.core.space import Point
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.measure.replay import MeasuringCost, ReplaySource
from colltune.store.grid import Floats, Grid
from colltune_study.research.metrics import select, slowdowns


@dataclass(frozen=True)
class Learned:
    """``batches``: points with the seconds that they took, in groups that were asked for together.

    ``slowdown`` (N,): of what was selected at the end at each scenario of the grid, over the best there.
    """

    grid: Grid
    batches: tuple[tuple[tuple[Point, float], ...], ...]
    slowdown: Floats

    @property
    def machine_s(self) -> float:
        """What it all takes, one point after another."""
        return sum(took_s for batch in self.batches for _, took_s in batch)

    @property
    def mean(self) -> float:
        return float(self.slowdown.mean())

    def mean_at(self, nodes: int) -> float:
        """Average slowdown over the scenarios on ``nodes`` nodes."""
        rows = [row for row, scenario in enumerate(self.grid.scenarios) if scenario.nodes == nodes]
        return float(np.mean(self.slowdown[rows]))


def learn(grid: Grid, seed: int, together: int = 1, cost: MeasuringCost | None = None) -> Learned:
    """``together``: so many points are asked for at a time, without knowing the others' results.

    How they are placed then makes no difference to what is learned.
    """
    cost = cost or MeasuringCost()
    learner = DecisionLearner(grid.space, seed)
    source, effort = ReplaySource(grid, grid.environment, seed, cost), Effort()
    batches: list[tuple[tuple[Point, float], ...]] = []
    while learner.should_stop() is None and (points := learner.ask(together)):
        for point in points:
            learner.tell_pending(point)
        batch = []
        for point, samples in source.measure(points, effort):
            batch.append((point, sum(sample.cost_s for sample in samples)))
            learner.tell(samples)
            learner.should_stop()  # it counts its calm decisions one by one
        batches.append(tuple(batch))
    selected, _ = select(learner.model(), grid)
    return Learned(grid, tuple(batches), slowdowns(selected, grid))
