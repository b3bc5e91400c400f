"""What many simulated tunings say together: curves with intervals, means over tables, states at the stop.

Notations: n runs, X places on an axis. Every interval is the 95% interval of the median over seeds, by the percentile
bootstrap: the seeds are drawn again with replacement, and the median taken, many times.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from colltune.store.grid import Floats
from colltune_study.research.compare import Estimate, by_strategy, estimate, write_csv
from colltune_study.research.metrics import Metrics
from colltune_study.research.simulate import Run

METRICS = ("slowdown", "mistakes", "accuracy", "worst", "r2", "regret")
_BOOTSTRAPS = 300


class Axis(StrEnum):
    """What a curve runs over: the share of the time, or of the pairs, of measuring everything."""

    TIME = "time"
    PAIRS = "pairs"

    def of(self, run: Run, place: float) -> Metrics | None:
        return run.at(place) if self is Axis.TIME else run.at_share(place)


@dataclass(frozen=True)
class Curve:
    """Of one strategy on one table. ``places``, ``median``, ``low``, ``high``: (X,); NaN before the first state."""

    grid: str
    strategy: str
    metric: str
    axis: Axis
    seeds: int
    places: Floats
    median: Floats
    low: Floats
    high: Floats


def places_on(axis: Axis, runs: Iterable[Run], count: int = 60) -> Floats:
    """(X,): from where the first state of any run lies to all, in equal steps of the logarithm."""
    first = min((run.steps[0].cost if axis is Axis.TIME else run.steps[0].share for run in runs), default=1e-3)
    return np.asarray(np.geomspace(min(max(first, 1e-5), 0.5), 1.0, count))


def curve(runs: Sequence[Run], metric: str, axis: Axis, places: Floats) -> Curve:
    """Of runs of one strategy on one table. Raises ValueError without runs."""
    if not runs:
        raise ValueError("a curve needs a run")
    states = [[axis.of(run, place) for place in places] for run in runs]
    values = np.array([[np.nan if m is None else getattr(m, metric) for m in row] for row in states], dtype=float)
    median, low, high = _intervals(values)
    return Curve(runs[0].grid, runs[0].strategy, metric, axis, len(runs), places, median, low, high)


def _intervals(values: Floats) -> tuple[Floats, Floats, Floats]:
    """(n, X) -> medians and bounds (X,) over the runs that have a value there; NaN where none has."""
    out = np.full((3, values.shape[1]), np.nan)
    there = np.isfinite(values)
    # Places at which the same runs have a value share their draws.
    for pattern in np.unique(there, axis=1).T:
        if not pattern.any():
            continue
        columns = np.flatnonzero((there == pattern[:, None]).all(axis=0))
        known = values[np.ix_(pattern, columns)]
        drawn = np.random.default_rng(0).integers(0, len(known), (_BOOTSTRAPS, len(known)))
        out[0, columns] = np.median(known, axis=0)
        out[1:, columns] = np.quantile(np.median(known[drawn], axis=1), [0.025, 0.975], axis=0)
    return out[0], out[1], out[2]


def complete_seeds(runs: Sequence[Run]) -> list[int]:
    """The seeds with which every strategy tuned every table."""
    every = {(run.grid, run.strategy) for run in runs}
    wanted = {(grid, strategy) for grid, _ in every for _, strategy in every}
    done: dict[int, set[tuple[str, str]]] = {}
    for run in runs:
        done.setdefault(run.seed, set()).add((run.grid, run.strategy))
    return sorted(seed for seed, pairs in done.items() if pairs == wanted)


def mean_over_tables(runs: Sequence[Run], strategy: str, value: Callable[[Run], float | None]) -> Estimate | None:
    """The median over complete seeds of the mean over all tables on which ``value`` is known; None without any."""
    means = []
    for seed in complete_seeds(runs):
        values = [value(run) for run in runs if run.seed == seed and run.strategy == strategy]
        known = [one for one in values if one is not None and np.isfinite(one)]
        if known:
            means.append(float(np.mean(known)))
    return estimate(means) if means else None


def at_place(axis: Axis, place: float, metric: str) -> Callable[[Run], float | None]:
    """A metric of a run at a place of an axis; None before the run's first state."""

    def value(run: Run) -> float | None:
        metrics = axis.of(run, place)
        return None if metrics is None else float(getattr(metrics, metric))

    return value


def at_stop(metric: str) -> Callable[[Run], float]:
    """A metric, ``cost`` or ``share`` of a run at the strategy's own stop; where it has none, at its end."""

    def value(run: Run) -> float:
        step = run.stop or run.steps[-1]
        return float(getattr(step if metric in ("cost", "share") else step.metrics, metric))

    return value


def write_curves(path: Path, runs: Sequence[Run], metrics: Sequence[str] = METRICS) -> None:
    """One row per (table, strategy, metric, axis, place)."""
    rows = [
        row
        for axis, places in ((axis, places_on(axis, runs)) for axis in Axis)
        for own in by_strategy(runs).values()
        for metric in metrics
        for row in _rows(curve(own, metric, axis, places), own[0].total_s)
    ]
    head = ["grid", "strategy", "metric", "axis", "place", "seconds", "median", "low", "high", "seeds"]
    write_csv(path, head, rows)


def _rows(line: Curve, total_s: float) -> Iterator[list[object]]:
    for place, median, low, high in zip(line.places, line.median, line.low, line.high, strict=True):
        if np.isfinite(median):
            seconds = f"{place * total_s:.5g}" if line.axis is Axis.TIME else ""
            figures = [f"{value:.6g}" for value in (median, low, high)]
            yield [line.grid, line.strategy, line.metric, line.axis, f"{place:.5g}", seconds, *figures, line.seeds]


def write_stops(path: Path, runs: Sequence[Run]) -> None:
    """One row per (table, strategy): medians at the strategy's own stop, and how many of its runs stopped by it."""
    columns, rows = ("cost", "share", *METRICS), []
    for (grid, strategy), own in by_strategy(runs).items():
        medians = [f"{np.median([at_stop(column)(run) for run in own]):.5g}" for column in columns]
        rows.append([grid, strategy, len(own), sum(run.stop is not None for run in own), *medians])
    write_csv(path, ["grid", "strategy", "seeds", "stopped", *columns], rows)
