"""How much less our learner has to measure than the published ones: simulated tuning on recorded tables.

    python benchmarks/bench_learning.py [TABLE...] [--seeds 20] [--minutes 25] [--jobs N] [--reuse STEPS]

Tables: CSV, CSV.GZ or Parquet with the columns that ``colltune study evaluate`` takes; those of benchmarks/data if none
is given. Seed by seed over all tables, so that after every seed it leaves what it has in bench/learning.json (a flat
object of named figures), learning_reach.csv, learning_stop.csv and learning_steps.csv; prints the figures at the end.
Ours takes first looks of few repetitions, the published methods 20 at every pair. ``cost_ratio_OTHER`` compares them
so, ``cost_ratio_OTHER_equal`` with 20 for both, and ``cost_ratio_OTHER_equal_few`` with 3 for the others (where
--strategies names OTHER@3). random-log samples as random does; its forests learn the logarithm of the time. acclaim is
as its paper says (``cost_ratio_acclaim_paper_equal``), acclaim-code as its public program does; for these and FACT
``_low`` and ``_high`` are the 95% interval of the median over the tables. ``acclaim_over_fact``: the paper has 0.43;
``_few_choices``: of tables with at most four, as its own have; ``_pairs``: by the share of the pairs, where few calls
that take most of the time do not decide.
No table is left out, however many choices it has.
A tuning depends on its table, strategy and seed alone, so what an earlier learning_steps.csv has (--reuse) is taken
from there and not simulated again: leave out of it what changed since.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from colltune.core.errors import InputError
from colltune.machine.files import LARGEST_BYTES, read_text
from colltune_study.research.compare import Estimate, by_strategy, estimate, reach_by_grid, write_steps, write_table
from colltune_study.research.evaluation import Plan, evaluate, load
from colltune_study.research.metrics import Metrics
from colltune_study.research.simulate import GOOD_ENOUGH, Run, Step
from colltune_study.research.strategies import ACCLAIM_CODE, NAMES, OURS, RANDOM_LOG, contestants
from colltune_study.research.tunings_summary import Axis, curve, write_stops
from harness import options_of

Figures = dict[str, float | int]
DATA = Path(__file__).parent / "data"
_SLOWDOWN_AT_STOP = GOOD_ENOUGH
_MISTAKES_AT_STOP = 0.05
# Shares of what measuring everything costs, at which no other strategy may be ahead beyond the interval.
BUDGETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# Ours with as many repetitions at every pair as the published methods take, and these with as few as ours begins with.
OURS_EQUAL = f"{OURS}@20"
FEW = "@3"
FEW_CHOICES = 4  # so many at most have the tables that are the most like the papers'
OTHERS = (*(name for name in NAMES if name != OURS), ACCLAIM_CODE, RANDOM_LOG)
_PARTS = {"": "median", "_low": "low", "_high": "high"}


def cost_ratio(reach: Mapping[tuple[str, str], Estimate], ours: str, other: str) -> Estimate:
    """The median over grids of our cost over the other's, with its interval. Raises ValueError without such a grid."""
    ratios = [
        reach[grid, ours].median / reach[grid, other].median
        for grid, strategy in reach
        if strategy == ours and (grid, other) in reach
    ]
    return estimate(ratios)


def shares_by_grid(runs: Iterable[Run]) -> dict[tuple[str, str], Estimate]:
    """As ``reach_by_grid``, of the share of the pairs in place of that of the time."""
    shares: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        reach = run.reach()
        share = next((step.share for step in run.steps if step.cost == reach), 1.0)
        shares.setdefault((run.grid, run.strategy), []).append(share)
    return {key: estimate(own) for key, own in shares.items()}


def with_interval(name: str, value: Estimate) -> Figures:
    return {f"{name}{end}": round(getattr(value, part), 4) for end, part in _PARTS.items()}


def stop_share(runs: Iterable[Run], ours: str) -> float:
    """The share of grids at which the strategy's own stop is good: slowdown <= 1.03, mistakes <= 5%, medians of seeds.

    A run without a stop measured everything and is scored at its end.
    """
    stops: dict[str, list[Metrics]] = {}
    for run in runs:
        if run.strategy == ours:
            stops.setdefault(run.grid, []).append((run.stop or run.steps[-1]).metrics)
    good = [
        np.median([m.slowdown for m in metrics]) <= _SLOWDOWN_AT_STOP
        and np.median([m.mistakes for m in metrics]) <= _MISTAKES_AT_STOP
        for metrics in stops.values()
    ]
    return estimate([float(np.mean(good))]).median


def nonp2_ratio(runs: Iterable[Run], ours: str) -> float:
    """Slowdown at the stop on non-power-of-two sizes over that on powers of two; NaN where no grid has both."""
    ratios = [
        metrics.nonp2_slowdown / metrics.p2_slowdown
        for run in runs
        if run.strategy == ours
        for metrics in [(run.stop or run.steps[-1]).metrics]
        if np.isfinite(metrics.nonp2_slowdown) and np.isfinite(metrics.p2_slowdown)
    ]
    return float(np.median(ratios)) if ratios else float("nan")


def figures(runs: Sequence[Run], choices: Mapping[str, int]) -> Figures:
    """``choices``: how many each table has."""
    reach = reach_by_grid(runs)
    there = {strategy for _, strategy in reach}
    others = [name for name in OTHERS if name in there]
    found: Figures = {}
    if OURS in there:
        found |= {f"cost_ratio_{key(other)}": round(cost_ratio(reach, OURS, other).median, 4) for other in others}
        found["stop_share"] = round(stop_share(runs, OURS), 4)
        found["nonp2_ratio"] = round(nonp2_ratio(runs, OURS), 4)
        found |= {f"behind_{key(other)}": round(behind(runs, OURS, other), 4) for other in others}
        for other in (name for name in OTHERS if name + FEW in there):
            found[f"cost_ratio_{key(other)}_equal_few"] = round(cost_ratio(reach, OURS, other + FEW).median, 4)
    if OURS_EQUAL in there:
        for other in others:
            equal = with_interval(f"cost_ratio_{key(other)}_equal", cost_ratio(reach, OURS_EQUAL, other))
            found |= equal
            if other == "acclaim":
                found |= {name.replace("acclaim", "acclaim_paper"): value for name, value in equal.items()}
        found["stop_share_equal"] = round(stop_share(runs, OURS_EQUAL), 4)
    for other in (name for name in ("acclaim", ACCLAIM_CODE) if name in there and "fact" in there):
        found |= with_interval(f"{key(other)}_over_fact", cost_ratio(reach, other, "fact"))
        pairs = shares_by_grid(runs)
        found |= with_interval(f"{key(other)}_over_fact_pairs", cost_ratio(pairs, other, "fact"))
        own = {(grid, name): value for (grid, name), value in reach.items() if choices.get(grid, 0) <= FEW_CHOICES}
        if own:
            found |= with_interval(f"{key(other)}_over_fact_few_choices", cost_ratio(own, other, "fact"))
    found["tables"] = len({grid for grid, _ in reach})
    found["seeds"] = min(estimate.seeds for estimate in reach.values())
    return found


def key(strategy: str) -> str:
    """As it is written in the name of a figure."""
    return strategy.replace("-", "_")


def behind(runs: Sequence[Run], ours: str, other: str) -> float:
    """The share of (table, budget) at which ours selects worse beyond both intervals of the median over the seeds.

    By less than half a per cent of slowdown is not worse.
    """
    of, found = by_strategy(runs), []
    for grid in sorted({run.grid for run in runs}):
        if (grid, ours) in of and (grid, other) in of:
            own, their = (curve(of[grid, name], "slowdown", Axis.TIME, np.array(BUDGETS)) for name in (ours, other))
            found += [
                float(not low <= high + 0.005) for low, high in zip(own.low, their.high, strict=True) if high > 0.0
            ]
    return float(np.mean(found)) if found else float("nan")


def write(folder: Path, runs: Sequence[Run], choices: Mapping[str, int]) -> Figures:
    folder.mkdir(parents=True, exist_ok=True)
    write_steps(folder / "learning_steps.csv", runs)
    write_table(folder / "learning_reach.csv", reach_by_grid(runs))
    write_stops(folder / "learning_stop.csv", runs)
    found = figures(runs, choices)
    (folder / "learning.json").write_text(json.dumps(found, indent=2) + "\n")
    return found


def read_steps(path: Path) -> list[Run]:
    """The runs of a file by ``write_steps``, to its six figures. Raises InputError where it is none."""
    names = [field.name for field in fields(Metrics)]
    tunings: dict[tuple[str, str, int], list[tuple[Step, bool, float]]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_text(path, LARGEST_BYTES, link=True))):
            metrics = Metrics(**{name: float(row[name]) for name in names})
            step = Step(float(row["cost"]), float(row["share"]), metrics)
            total_s = float(row["cost_s"]) / step.cost if step.cost else 0.0
            key = (row["grid"], row["strategy"], int(row["seed"]))
            tunings.setdefault(key, []).append((step, row["stop"] == "1", total_s))
    except (OSError, KeyError, ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{path} is no table of steps: {error}", "Give one that an earlier run left") from error
    return [
        Run(*key, tuple(step for step, _, _ in own), next((step for step, stop, _ in own if stop), None), own[-1][2])
        for key, own in tunings.items()
    ]


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=25.0, help="end after this time with what there is; 0: never")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--strategies", default=",".join((OURS, *OTHERS, OURS_EQUAL)))
    parser.add_argument("--reuse", type=Path, default=None, help="learning_steps.csv with tunings to take over")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    tables = options.tables or [p for p in sorted(DATA.glob("*")) if is_timed(p)]
    grids = load(tables)
    limit_s = 60.0 * options.minutes if options.minutes else float("inf")
    # Only our own stop is judged here.
    entrants = [
        one
        if one.name in (OURS, OURS_EQUAL)
        else replace(one, pace=replace(one.pace, to_stop=False), kind=one.kind or one.name)
        for one in contestants(options.strategies.split(","))
    ]
    choices = {grid.name: len(grid.choices) for grid in grids}
    recorded = read_steps(options.reuse) if options.reuse and options.reuse.exists() else []
    earlier = [run for run in recorded if run.grid in choices and run.seed < options.seeds]
    done = {(run.grid, run.strategy, run.seed) for run in earlier}
    plan = Plan(entrants, options.seeds, limit_s, options.jobs, done=done)

    def keep(runs: Sequence[Run]) -> None:
        print(write(options.out, [*earlier, *runs], choices), file=sys.stderr, flush=True)

    comparison = evaluate(grids, plan, keep=keep)
    print(json.dumps(write(options.out, [*earlier, *comparison.runs], choices), indent=2))
    if comparison.cut:
        print(f"cut off after {options.minutes} minutes: not every table has all seeds", file=sys.stderr)


def is_timed(path: Path) -> bool:
    """Whether a file of benchmarks/data holds times, and not labels or features."""
    return path.name.endswith((".csv.gz", ".parquet")) and "labels" not in path.name


if __name__ == "__main__":
    main()
