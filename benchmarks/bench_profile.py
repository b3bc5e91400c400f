"""What a profile is worth: less to measure (tuning replayed on recorded tables), and a faster FFT (a real cluster).

    python benchmarks/bench_profile.py TABLE... [--seeds 20] [--minutes 10] [--only replay]

The FFT is that of examples/ on network namespaces, see fft_on_cluster.py: ``fft_time_ratio`` is tuned over default for
a run of an hour, the profile and the tuning included; ``fft_run_ratio`` without them.

For every table and seed, applications are drawn: a communicator of a recorded shape (every third time two), one to
four message sizes on each, and a random share of the time at each. The whole space is tuned by our learner until it
stops by itself; its selection gives the weighted slowdown S of each application, and its measurements the cost. With a
profile, as `colltune tune --profile` does, the application's scenarios are measured with all their choices, what has
most time per cost first, until the weighted slowdown is at most S. Writes into bench/profile.json ``cost_ratio``: the
geometric mean over the tables of the mean over seeds and applications of the one cost over the other.

``cost_ratio_reach`` is harder: the whole space is charged only up to where an onlooker who knows the truth would see
its weighted slowdown come to 1.03 and stay there; the same onlooker looks at the profile's measurements. A mean of such
ratios is made by few applications, for which the learner guessed right at once; ``cost_ratio_reach_median`` is that
of the applications, ``cost_ratio_reach_total`` all that the profiles measured over all that the learner did.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean, mean, median
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import DEFAULT
from colltune.core.sample import Sample, Status
from colltune.core.space import Point
from colltune.learn.decision import DecisionLearner
from colltune.learn.stakes import Stakes
from colltune.measure.replay import MeasuringCost
from colltune.store.dataset import load_grids
from colltune.store.grid import Grid
from colltune_study.research.metrics import select, slowdowns

Floats = NDArray[np.float64]
APPLICATIONS = 8  # for each table and seed
RUNTIME_S = 1e15  # so long that all of an application pays: the cost to reach S is compared, not when to stop
GOOD = 1.03
SCORED = 1.05  # growth of the cost between two scored states


def draw(grid: Grid, random: np.random.Generator, number: int) -> Floats:
    """The share of the time at each scenario (N,)."""
    shapes = sorted({(s.nodes, s.ppn) for s in grid.scenarios})
    chosen = random.choice(len(shapes), size=min(len(shapes), 2 if number % 3 == 2 else 1), replace=False)
    weights = np.zeros(len(grid.scenarios))
    for shape in chosen:
        rows = [row for row, s in enumerate(grid.scenarios) if (s.nodes, s.ppn) == shapes[shape]]
        for row in random.choice(rows, size=min(len(rows), int(random.integers(1, 5))), replace=False):
            weights[row] = random.exponential()
    return weights / weights.sum()


def measured(grid: Grid, point: Point, cost: MeasuringCost, group: int = 0) -> list[Sample]:
    """The recorded times, and what measuring them takes: the repetitions and their set-up."""
    times = {choice: grid.time(point.scenario, choice) for choice in point.choices}
    return [
        Sample(point.scenario, choice, Status.OK, (time_s,), cost_s=cost.of(time_s), group=group)
        for choice, time_s in times.items()
    ]


def whole_space(grid: Grid, seed: int, applications: list[Floats]) -> tuple[float, list[float], list[float]]:
    """Tunes all of ``grid``: its cost in s, and of each application the weighted slowdown and when it came to GOOD."""
    learner, cost = DecisionLearner(grid.space, seed), MeasuringCost()
    spent, scored, group = 0.0, 0.0, 0
    history: list[tuple[float, list[float]]] = []
    while points := learner.ask(1):
        samples = measured(grid, points[0], cost, group)
        group += 1
        spent += sum(sample.cost_s for sample in samples)
        learner.tell(samples)
        stops = learner.should_stop() is not None
        if stops or spent >= scored * SCORED:
            scored = spent
            slow = slowdowns(select(learner.model(), grid)[0], grid)
            history.append((spent, [float(weights @ slow) for weights in applications]))
        if stops:
            break
    reached = history[-1][1]
    return spent, reached, [reach([(at, slow[number]) for at, slow in history]) for number in range(len(reached))]


def reach(history: list[tuple[float, float]]) -> float:
    """The cost from which on the slowdown is good; of the last state where it never is."""
    cost = history[-1][0]
    for at, slow in reversed(history):
        if slow > GOOD:
            break
        cost = at
    return cost


def with_profile(grid: Grid, weights: Floats, limit: float) -> float:
    """The cost in s until the weighted slowdown is at most ``limit``."""
    cost, spent = MeasuringCost(), 0.0
    rows = [int(row) for row in np.flatnonzero(weights)]
    at_stake = Stakes({grid.scenarios[row]: float(weights[row]) for row in rows}, RUNTIME_S)
    slow = np.where(
        np.isfinite(grid.default_s), grid.default_s / grid.best_s, np.nanmax(grid.time_s, axis=1) / grid.best_s
    )
    left, seen = list(rows), []
    while float(weights @ slow) > limit + 1e-9 and left:
        points = [(Point(grid.scenarios[row], grid.space.choices(grid.scenarios[row])), 0.0) for row in left]
        points = [(point, sum(s.cost_s for s in measured(grid, point, cost))) for point, _ in points]
        row = left.pop(at_stake.worth_measuring(points, seen)[0][0])
        scenario = grid.scenarios[row]
        samples = measured(grid, Point(scenario, grid.space.choices(scenario)), cost)
        spent += sum(sample.cost_s for sample in samples)
        # What the library itself would have done is measured too, where that is no candidate.
        if np.isfinite(grid.default_s[row]) and all(sample.choice != DEFAULT for sample in samples):
            spent += cost.of(float(grid.default_s[row]))
            seen.append(Sample(scenario, DEFAULT, Status.OK, (float(grid.default_s[row]),)))
        seen += samples
        slow[row] = 1.0
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0, help="end after this time with the seeds there are")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--only", choices=["replay", "fft"], help="one part; by default both")
    options = parser.parse_args()
    if options.only != "replay":
        from fft_on_cluster import measure

        write(options.out, measure())
    if options.only != "fft":
        write(options.out, replayed(options))


def replayed(options: argparse.Namespace) -> dict[str, float]:
    """Figures on the recorded tables."""
    grids = load_grids(options.tables or sorted(Path("tests/recorded").glob("*.csv.gz")))
    started = monotonic()
    stopped: defaultdict[str, list[float]] = defaultdict(list)
    early: defaultdict[str, list[float]] = defaultdict(list)
    reached: list[float] = []
    sums = np.zeros(2)
    seeds = 0
    for seed in range(options.seeds):
        for grid in grids:
            random = np.random.default_rng([seed, grid.pairs])
            applications = [draw(grid, random, number) for number in range(APPLICATIONS)]
            spent, slow, since = whole_space(grid, seed, applications)
            for weights, limit, early_s in zip(applications, slow, since, strict=True):
                own = with_profile(grid, weights, limit)
                stopped[grid.name].append(own / spent)
                own_early = with_profile(grid, weights, GOOD)
                early[grid.name].append(own_early / early_s)
                sums += (own_early, early_s)
                reached.append(limit)
        seeds += 1
        if monotonic() - started > 60.0 * options.minutes:
            break
    return {
        "cost_ratio": round(geometric_mean([mean(of) for of in stopped.values()]), 4),
        "cost_ratio_worst_table": round(max(mean(of) for of in stopped.values()), 4),
        "cost_ratio_reach": round(geometric_mean([mean(of) for of in early.values()]), 4),
        "cost_ratio_reach_median": round(median(ratio for of in early.values() for ratio in of), 4),
        "cost_ratio_reach_total": round(float(sums[0] / sums[1]), 4),
        "cost_weighted_slowdown": round(mean(reached), 4),
        "cost_seeds": seeds,
        "cost_tables": len(grids),
    }


def write(folder: Path, figures: dict[str, float]) -> None:
    """Adds ``figures`` to bench/profile.json."""
    folder.mkdir(exist_ok=True)
    path = folder / "profile.json"
    there = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**there, **figures}, indent=2) + "\n")
    print(json.dumps({**there, **figures}, indent=2))


if __name__ == "__main__":
    main()
