"""Many simulated tunings side by side: medians over seeds, intervals, ratios of cost, tables as CSV.

Notations: a run that never gets good enough is taken to cost everything, 1.0: the user would measure the whole space.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from colltune.core.sample import grouped
from colltune_study.research.metrics import Metrics
from colltune_study.research.simulate import GOOD_ENOUGH, Run

_BOOTSTRAPS = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median over seeds with its 95% interval from resampling the seeds."""

    median: float
    low: float
    high: float
    seeds: int


def estimate(values: Sequence[float]) -> Estimate:
    """Raises ValueError without values."""
    if not values:
        raise ValueError("no runs to take a median of")
    array = np.array(values, dtype=float)
    drawn = np.random.default_rng(0).integers(0, len(array), (_BOOTSTRAPS, len(array)))
    low, high = np.quantile(np.median(array[drawn], axis=1), [0.025, 0.975])
    return Estimate(float(np.median(array)), float(low), float(high), len(array))


def by_strategy(runs: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
    """Per (grid, strategy), in the order in which they first come."""
    return grouped(runs, lambda run: (run.grid, run.strategy))


def reach_by_grid(runs: Iterable[Run], limit: float = GOOD_ENOUGH) -> dict[tuple[str, str], Estimate]:
    """Per (grid, strategy): the share of the whole cost to reach and keep an average slowdown of ``limit``."""
    groups = sorted(by_strategy(runs).items())
    return {key: estimate([min(1.0, run.reach(limit)) for run in own]) for key, own in groups}


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table of ``rows`` under ``head``."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def write_steps(path: Path, runs: Iterable[Run]) -> None:
    """One row per scored step, with ``stop`` 1 at the step at which the strategy would have stopped."""
    names = [field.name for field in fields(Metrics)]
    rows = []
    for run in runs:
        for step in run.steps:
            costs = [f"{share:.6g}" for share in (step.cost, step.cost * run.total_s, step.share)]
            values = [f"{getattr(step.metrics, name):.6g}" for name in names]
            rows.append([run.grid, run.strategy, run.seed, *costs, int(step is run.stop), *values])
    write_csv(path, ["grid", "strategy", "seed", "cost", "cost_s", "share", "stop", *names], rows)


def write_table(path: Path, reach: Mapping[tuple[str, str], Estimate]) -> None:
    """One row per (grid, strategy): median cost share to reach the limit, its interval and the number of seeds."""
    rows = [
        [grid, strategy, *(f"{x:.5g}" for x in (value.median, value.low, value.high)), value.seeds]
        for (grid, strategy), value in reach.items()
    ]
    write_csv(path, ["grid", "strategy", "cost", "low", "high", "seeds"], rows)
