"""What our learner measures on a recorded grid until it stops by itself: the work that a campaign has to place.

``scale_1024``: tuning seven collectives on a simulated dragonfly of 1,024 nodes, what it costs that machine and what it
selects. The reference is data/simulated_dragonfly_1024.parquet: every algorithm, 2 to 1,024 nodes, 1 B to 1 MiB. Of
loops over all ranks 8 or 16 steps were simulated and the others reckoned, for the campaign and the reference alike.
Times of repetitions scatter as ``evaluate.noise`` draws them. No SimGrid is needed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np

from colltune.bench.replay import MeasuringCost, ReplaySource
from colltune.core.space import Point
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.store.grid import Floats, Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.metrics import select, slowdowns

TABLE = Path(__file__).parent / "data" / "simulated_dragonfly_1024.parquet"
SEEDS = 5


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
    source, effort = ReplaySource([grid], grid.environment, seed, cost), Effort()
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


def scale_1024() -> dict[str, float]:
    """Medians over seeds; machine seconds are one point after another, for all seven collectives together."""
    grids = load_grids([TABLE])
    runs = [[learn(grid, seed) for grid in grids] for seed in range(SEEDS)]
    figures = {
        "machine_s_1024": median(sum(one.machine_s for one in run) for run in runs),
        "slowdown_1024": median(mean(one.mean for one in run) for run in runs),
        "slowdown_1024_worst_collective": median(max(one.mean for one in run) for run in runs),
        "slowdown_1024_largest_shape": median(mean(one.mean_at(1024) for one in run) for run in runs),
        "exhaustive_s_1024": sum(MeasuringCost().total(grid) for grid in grids),
        "collectives_1024": len(grids),
    }
    return {name: round(float(value), 4) for name, value in figures.items()}
