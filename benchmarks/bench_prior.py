"""How good a prior from other clusters is: on their times, and as the start of a campaign.

    python benchmarks/bench_prior.py [--seeds 3] [--campaign-seeds 10] [--minutes 14] [--reuse] [--out bench]

Leave one cluster out throughout: what is tested is never in what was trained on. Data: benchmarks/data (its README says
where from). Writes bench/prior.json, a flat object of named figures, and bench/prior_tables.json with the parts behind
them; prints both. Ends within the minutes given: the simulated campaigns, which take longest, are cut short by then.
Part calibrated is bench_calibrated.py's part plain; part predict is the processor time of `colltune predict`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import monotonic

import numpy as np

from colltune.core.choice import Choice
from colltune.core.model_answers import Model, Prediction
from colltune.core.scenario import Scenario
from colltune.learn.decision import DecisionLearner
from colltune.predict.bursts import Times
from colltune.predict.transfer import TransferPrior, times_of
from colltune.store.dataset import load_grids
from colltune.store.grid import Grid
from colltune_study.research.compare import estimate, write_steps
from colltune_study.research.simulate import Pace, Run, simulate
from colltune_study.training.train import FEWEST_SCENARIOS
from steps_table import read_steps

DATA = Path(__file__).parent / "data"
PICO = ("pico_leonardo", "pico_lumi", "pico_marenostrum5")
MPI_ADVANCE = ("mpiadvance_dane", "mpiadvance_tuolumne")
# A campaign needs a grid to choose from.
CAMPAIGN_SCENARIOS = 24
# How much slower than the cold start counts.
CLEARLY = 1.005
BUDGETS = np.geomspace(1e-3, 0.5, 16)
PREDICTIONS = 5

Tables = dict[str, object]


def grids_of(names: Sequence[str], fewest: int) -> dict[str, dict[str, Grid]]:
    """By collective and cluster."""
    found: defaultdict[str, dict[str, Grid]] = defaultdict(dict)
    for name in names:
        for grid in load_grids([DATA / f"{name}.csv.gz"], fewest):
            found[grid.collective][name] = grid
    return found


def timed_part(seeds: int, tables: Tables) -> dict[str, float]:
    """Predictions for a cluster from all others, without measuring, where they share at least two algorithms."""
    rows = {}
    copied: list[float] = []
    for names in (PICO, MPI_ADVANCE):
        for collective, by_cluster in grids_of(names, FEWEST_SCENARIOS).items():
            for name, grid in by_cluster.items():
                copied += [slow for key, other in by_cluster.items() if key != name for slow in copying(grid, other)]
                others = [times_of(other) for key, other in by_cluster.items() if key != name]
                shared = [c for c in grid.choices if any(c == choice for times in others for _, choice in times)]
                if len(shared) >= 2:
                    some = [predicted_slowdown(grid, shared, others, seed) for seed in range(seeds)]
                    rows[f"{name}/{collective}"] = {key: fmean(row[key] for row in some) for key in some[0]}
    tables["unseen"] = rows
    slow = [row["slowdown"] for row in rows.values()]
    compared = [row for row in rows.values() if np.isfinite(row["default"])]
    return {
        "unseen_slowdown": fmean(slow),
        "unseen_slowdown_median": median(slow),
        "unseen_slowdown_geometric": float(np.exp(fmean(row["log_slowdown"] for row in rows.values()))),
        "unseen_default_slowdown": fmean(row["default"] for row in compared),
        "unseen_better_than_default": fmean(row["slowdown"] <= row["default"] for row in compared),
        "unseen_random_slowdown": fmean(row["random"] for row in rows.values()),
        "unseen_worst_cell": max(row["worst"] for row in rows.values()),
        "unseen_cases": len(rows),
        "unseen_copied_winner": fmean(copied),
        "unseen_copied_scenarios": len(copied),
    }


def copying(grid: Grid, other: Grid) -> list[float]:
    """Slowdown of the choice that was fastest on another cluster, in each scenario that was measured on both.

    What the other one's measurements can tell at best: no model stands between.
    """
    both = [choice for choice in grid.choices if choice in other.columns]
    here = grid.time_s[:, [grid.columns[choice] for choice in both]]
    there = other.time_s[:, [other.columns[choice] for choice in both]]
    row_there = {scenario: row for row, scenario in enumerate(other.scenarios)}
    found = []
    for row, scenario in enumerate(grid.scenarios):
        if scenario in row_there:
            theirs = np.where(np.isfinite(here[row]), there[row_there[scenario]], np.nan)
            if np.isfinite(theirs).sum() >= 2:
                mine = here[row][np.isfinite(theirs)]
                found.append(float(here[row, np.nanargmin(theirs)] / mine.min()))
    return found


def predicted_slowdown(
    grid: Grid, shared: Sequence[Choice], others: Sequence[Mapping[tuple[Scenario, Choice], float]], seed: int
) -> dict[str, float]:
    """Of the choice that the others hold to be the best, over the best of the shared ones; the default's beside it."""
    prior = TransferPrior(others, shared, seed)
    time_s = grid.time_s[:, [grid.columns[choice] for choice in shared]]
    pairs = [(scenario, choice) for scenario in grid.scenarios for choice in shared]
    said = prior.predict(pairs).log_time.reshape(time_s.shape)
    said = np.where(np.isfinite(time_s) & np.isfinite(said), said, np.inf)
    usable = (np.isfinite(time_s).sum(axis=1) >= 2) & np.isfinite(said).any(axis=1)
    best = np.nanmin(np.where(np.isfinite(time_s), time_s, np.inf), axis=1)
    selected = time_s[np.arange(len(said)), said.argmin(axis=1)]
    default = (grid.default_s / best)[usable]
    slow = (selected / best)[usable]
    return {
        "slowdown": float(slow.mean()),
        "log_slowdown": float(np.log(slow).mean()),
        "default": float(np.nanmean(default)) if np.isfinite(default).any() else float("nan"),
        "random": float(np.nanmean((time_s / best[:, None])[usable])),
        "worst": float(slow.max()),
        "scenarios": float(usable.sum()),
        "choices": float(len(shared)),
    }


def calibrated_part(seeds: int, minutes: float, out: Path, tables: Tables, *, reuse: bool) -> dict[str, float]:
    """Predictions for a cluster from all others and 40 pairs measured on it (bench_calibrated.py)."""
    from bench_calibrated import cases, hyperparameters, plain_part

    options = argparse.Namespace(seeds=seeds, minutes=minutes, pairs=40, budget_s=10.0)
    every = list(cases())
    figures, rows = plain_part(every, hyperparameters(every, out, reuse=reuse), options)
    tables["calibrated"] = rows["plain"]
    return figures | {"worst_cell": figures["calibrated_worst_cell"]}


def predict_part() -> dict[str, float]:
    """Processor time of `colltune predict` for 4 x 16 ranks and what it starts, the median; in seconds."""
    found = []
    for _ in range(PREDICTIONS):
        with TemporaryDirectory(prefix="colltune-") as place:
            before = os.times()
            command = [
                sys.executable,
                "-m",
                "colltune",
                "predict",
                "--out",
                place,
                "--nodes",
                "4",
                "--ppn",
                "16",
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
            after = os.times()
        spent = after.children_user - before.children_user, after.children_system - before.children_system
        found.append(sum(spent))
    return {"predict_cpu_s": median(found)}


class Reversed:
    """A prior that is wrong on purpose: it holds the slowest for the fastest."""

    def __init__(self, prior: Model) -> None:
        self._prior = prior

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        said = self._prior.predict(pairs)
        return Prediction(-said.log_time, said.std)


def campaign_cases() -> list[tuple[str, Grid, list[Times]]]:
    """Name, grid and the tables of the other clusters, smallest first."""
    cases = [
        (f"{name}/{collective}", grid, [times_of(other) for key, other in by_cluster.items() if key != name])
        for names in (PICO, MPI_ADVANCE)
        for collective, by_cluster in grids_of(names, FEWEST_SCENARIOS).items()
        if len(by_cluster) >= 2
        for name, grid in by_cluster.items()
        if len(grid.scenarios) >= CAMPAIGN_SCENARIOS
    ]
    return sorted(cases, key=lambda case: case[1].pairs)


def campaigns(seeds: int, deadline_s: float, kept: Path) -> list[Run]:
    """Simulated campaigns that start cold, from the other clusters, and from the opposite of what these say.

    Those of the file ``kept`` are not run again; all of them are in it afterwards. The first seed is run to its end.
    """
    runs = read_steps(kept) if kept.exists() else []
    done = {(run.grid, run.strategy, run.seed) for run in runs}
    cases = campaign_cases()
    priors = {name: TransferPrior(others, grid.choices) for name, grid, others in cases}
    for seed in range(seeds):
        for name, grid, _ in cases:
            starts: dict[str, Model | None] = {"cold": None, "prior": priors[name], "wrong": Reversed(priors[name])}
            for kind, start in starts.items():
                if (grid.name, kind, seed) in done:
                    continue
                if seed and monotonic() > deadline_s:
                    write_steps(kept, runs)
                    return runs
                make = partial(DecisionLearner, prior=start)
                runs.append(simulate(grid, kind, make, seed, pace=Pace(kept=2.0, to_stop=False)))
            write_steps(kept, runs)
    return runs


def campaigns_part(runs: Sequence[Run], tables: Tables) -> dict[str, float]:
    """Cost to reach and keep a slowdown of 1.03, prior over cold; share of budgets at which one is clearly worse."""
    by_grid: defaultdict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        by_grid[run.grid][run.strategy].append(run)
    found: defaultdict[str, list[float]] = defaultdict(list)
    rows = {}
    for name, of_kind in sorted(by_grid.items()):
        if set(of_kind) != {"cold", "prior", "wrong"}:
            continue
        reach = {kind: estimate([min(1.0, run.reach()) for run in some]) for kind, some in of_kind.items()}
        rows[name] = {kind: [value.median, value.low, value.high] for kind, value in reach.items()}
        for kind in ("prior", "wrong"):
            found[kind].append(reach[kind].median / reach["cold"].median)
            for budget in BUDGETS:
                beyond = worse_at(of_kind[kind], of_kind["cold"], budget)
                for measure, worse in beyond.items():
                    found[f"{kind} {measure}"].append(worse)
    tables["reach"] = rows
    return {
        "hybrid_cost_ratio": median(found["prior"]),
        "hybrid_cost_ratio_geometric": float(np.exp(fmean(np.log(found["prior"])))),
        "hybrid_cost_ratio_worst": max(found["prior"]),
        "wrong_cost_ratio_worst": max(found["wrong"]),
        "wrong_cost_ratio": median(found["wrong"]),
        "wrong_cost_ratio_geometric": float(np.exp(fmean(np.log(found["wrong"])))),
        "hybrid_worse_share": fmean(found["prior interval"]),
        "wrong_worse_share": fmean(found["wrong interval"]),
        "hybrid_beyond_worst_share": fmean(found["prior worst"]),
        "wrong_beyond_worst_share": fmean(found["wrong worst"]),
        "hybrid_tables": len(rows),
        "hybrid_seeds": min(len(some) for name in rows for some in by_grid[name].values()),
    }


def worse_at(ours: Sequence[Run], cold: Sequence[Run], budget: float) -> dict[str, float]:
    """With this share of the whole cost spent, is ours more than 0.5% slower than the cold start? 1 or 0, twice.

    ``interval``: the ratio of the medians, beyond its 95% interval (bootstrap over the seeds of both; of 40 budgets at
    which both are alike, one is so by chance). ``worst``: our median against the cold start's worst seed, which
    says less the more seeds there are.
    """
    theirs = np.array([m.slowdown for run in cold if (m := run.at(budget)) is not None])
    own = np.array([m.slowdown for run in ours if (m := run.at(budget)) is not None])
    if not len(theirs) or not len(own):
        return {"interval": 0.0, "worst": 0.0}
    random = np.random.default_rng(0)
    drawn = [np.median(some[random.integers(0, len(some), (2000, len(some)))], axis=1) for some in (own, theirs)]
    return {
        "interval": float(np.quantile(drawn[0] / drawn[1], 0.025) > CLEARLY),
        "worst": float(np.median(own) > CLEARLY * theirs.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--campaign-seeds", type=int, default=10, help="an interval needs more of them")
    parser.add_argument("--minutes", type=float, default=14.0)
    parser.add_argument("--parts", default="predict,timed,calibrated,campaigns")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--reuse", action="store_true", help="go on with the campaigns of an earlier run, in OUT")
    options = parser.parse_args()
    deadline_s = monotonic() + 60.0 * options.minutes
    figures: dict[str, float] = {}
    tables: Tables = {}
    wanted = options.parts.split(",")
    if "timed" in wanted:
        figures |= timed_part(options.seeds, tables)
    if "predict" in wanted:
        figures |= predict_part()
    options.out.mkdir(exist_ok=True)
    if "calibrated" in wanted:
        figures |= calibrated_part(options.seeds, 0.3 * options.minutes, options.out, tables, reuse=options.reuse)
    if "campaigns" in wanted:
        kept = options.out / "prior_steps.csv"
        if not options.reuse:
            kept.unlink(missing_ok=True)
        figures |= campaigns_part(campaigns(options.campaign_seeds, deadline_s, kept), tables)
    rounded = {name: round(float(value), 4) for name, value in figures.items()}
    (options.out / "prior.json").write_text(json.dumps(rounded, indent=2) + "\n")
    (options.out / "prior_tables.json").write_text(json.dumps(tables, indent=1, default=float) + "\n")
    print(json.dumps(tables, indent=1, default=float))
    print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
