"""Tuning seven collectives on a simulated dragonfly of 1,024 nodes: what it costs that machine, and what it selects.

The reference is data/simulated_dragonfly_1024.parquet: every algorithm, 2 to 1,024 nodes, 1 B to 1 MiB. Of loops over
all ranks 8 or 16 steps were simulated and the others reckoned, for the campaign and the reference alike. Times of
repetitions scatter as ``evaluate.noise`` draws them. No SimGrid is needed here.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

from colltune.measure.replay import MeasuringCost
from colltune_study.recorded.dataset import load_grids
from learned import learn

TABLE = Path(__file__).parent / "data" / "simulated_dragonfly_1024.parquet"
SEEDS = 5


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
