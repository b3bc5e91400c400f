"""How much less our learner has to measure than the published ones: simulated tuning on recorded tables.

    python benchmarks/bench_learning.py TABLE... [--seeds 20] [--minutes 0]

Tables: CSV, CSV.GZ or Parquet with the columns that ``colltune.evaluate.dataset`` names; tests/recorded if none
is given. Writes bench/learning.json (a flat object of named figures), bench/learning_steps.csv and
bench/learning_reach.csv after every seed, so that a run that is cut short leaves what it has; prints the figures.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import monotonic

from colltune.evaluate.compare import cost_ratio, nonp2_ratio, reach_by_grid, stop_share, write_steps, write_table
from colltune.evaluate.contract import MakeStrategy
from colltune.evaluate.dataset import load_grids
from colltune.evaluate.simulate import Pace, Run, simulate
from colltune.learn.decision import DecisionLearner
from colltune.learn.published import AcclaimLearner, FactLearner, PublishedSettings, RandomLearner
from colltune.learn.scaling import Scaling

OURS = "ours"
# Forests are scored at fewer states than ours, for growing one for each choice is slow.
STRATEGIES: dict[str, tuple[MakeStrategy, Pace]] = {
    OURS: (DecisionLearner, Pace()),
    "acclaim": (lambda space, seed: AcclaimLearner(space, seed, PublishedSettings(trees=30)), Pace(growth=0.08)),
    "fact": (lambda space, seed: FactLearner(space, seed, PublishedSettings(trees=20)), Pace(growth=0.12)),
    "random": (
        lambda space, seed: RandomLearner(space, seed, PublishedSettings(trees=20, scaling=Scaling.NONE)),
        Pace(growth=0.12),
    ),
}


def figures(runs: list[Run]) -> dict[str, float]:
    reach = reach_by_grid(runs)
    found: dict[str, float] = {}
    for other in STRATEGIES:
        if other != OURS and any(strategy == other for _, strategy in reach):
            found[f"cost_ratio_{other}"] = round(cost_ratio(reach, OURS, other), 4)
    found["stop_share"] = round(stop_share(runs, OURS), 4)
    found["nonp2_ratio"] = round(nonp2_ratio(runs, OURS), 4)
    found["tables"] = len({grid for grid, _ in reach})
    found["seeds"] = min(estimate.seeds for estimate in reach.values())
    return found


def write(folder: Path, runs: list[Run]) -> dict[str, float]:
    folder.mkdir(exist_ok=True)
    write_steps(folder / "learning_steps.csv", runs)
    write_table(folder / "learning_reach.csv", reach_by_grid(runs))
    found = figures(runs)
    (folder / "learning.json").write_text(json.dumps(found, indent=2) + "\n")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="end after this time with what there is; 0: no limit"
    )
    parser.add_argument("--most-choices", type=int, default=60, help="leave out tables with more choices than this")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    tables = options.tables or sorted(Path("tests/recorded").glob("*.csv.gz"))
    grids = [grid for grid in load_grids(tables) if len(grid.choices) <= options.most_choices]
    grids.sort(key=lambda grid: grid.pairs)
    started, runs = monotonic(), []
    for seed in range(options.seeds):
        for grid in grids:
            for name in options.strategies.split(","):
                make, pace = STRATEGIES[name]
                runs.append(simulate(grid, name, make, seed, pace=pace))
            if options.minutes and monotonic() - started > 60.0 * options.minutes:
                print(json.dumps(write(options.out, runs), indent=2))
                return
            write(options.out, runs)
    print(json.dumps(write(options.out, runs), indent=2))


if __name__ == "__main__":
    main()
