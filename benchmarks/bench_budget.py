"""Whether `colltune tune --budget` keeps its word: the time that a tuning takes over max(budget, stated fixed cost).

    python benchmarks/bench_budget.py [--part cluster] [--part tables] [--budget 30s ...] [--tables FILE ...]

The part ``cluster`` times `colltune tune bcast allreduce alltoall allgather` on 8 nodes x 1 rank of network namespaces
(root and iproute2; an idle machine). The part ``tables`` runs the real campaign and the real confirmation on each
recorded table of benchmarks/data, with the costs that were recorded, on a clock of its own: a launch takes 5 s, and
what outlasts its stage is cut off as a live source cuts it off; the comparison of the files is charged with its fewest
launches, the replay with four. ``overrun_worst`` is the worst over all runs of all parts that were ever made: figures
of parts that are not run again are kept in bench/budget.json. Writes that file and prints it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from colltune.core.choice import DEFAULT, Choice
from colltune.core.medians import medians_of
from colltune.core.proven import Verdict
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.core.units import parse_duration
from colltune.distill.decide import decide
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.prove.fresh_launches import Confirmation
from colltune.prove.proof import EFFORT
from colltune.prove.time_plan import FEWEST_PROOF_LAUNCHES, PROOF_LAUNCHES, TimePlan
from colltune.search.campaign import Campaign
from colltune.search.models import models_of
from colltune.store.dataset import load_grids
from colltune.store.grid import Grid

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "mpi"), str(ROOT / "benchmarks")]
DATA = ROOT / "benchmarks" / "data"
TARGET = Path("bench/budget.json")
BUDGETS = ("30s", "2m", "5m")
COLLECTIVES = ("bcast", "allreduce", "alltoall", "allgather")
LAUNCH_S, REPLAY_S, SET_UP_S = 5.0, 20.0, 8.0
SET_UP = 1e-3  # seconds of a measurement beyond its calls
ENVIRONMENT = Environment("recorded", "0", "0" * 64, "recorded", 1, 1, "single")


class Machine:
    """The clock of a machine whose times and costs were recorded."""

    def __init__(self, grids: Sequence[Grid], seed: int = 1) -> None:
        self.now_s = 0.0
        self.grids = {grid.collective: grid for grid in grids}
        self.random = np.random.default_rng(seed)

    def clock(self) -> float:
        return self.now_s

    def launch(self, number: int, until_s: float) -> Recorded:
        self.now_s += LAUNCH_S
        return Recorded(self, number, until_s)

    def recorded(self, scenario: Scenario) -> Scenario:
        """The recorded scenario that is nearest in size: learners ask for sizes between those of the grid, too."""
        if scenario in self.grids[scenario.collective].rows:
            return scenario
        shape = (scenario.nodes, scenario.ppn)
        alike = [s for s in self.grids[scenario.collective].scenarios if (s.nodes, s.ppn) == shape]
        return min(alike, key=lambda s: abs(np.log2((s.size_bytes + 1) / (scenario.size_bytes + 1))))

    def time_s(self, scenario: Scenario, choice: Choice) -> float | None:
        """The recorded median; None for what was not recorded.

        The library's own selection: where it was not recorded, a choice as good as half of them.
        """
        grid, place = self.grids[scenario.collective], self.recorded(scenario)
        row = grid.time_s[grid.rows[place]]
        default_s = float(grid.default_s[grid.rows[place]])
        known = default_s if choice == DEFAULT else float(row[grid.columns[choice]])
        if choice == DEFAULT and not np.isfinite(known):
            return float(np.nanmedian(row))
        return known if np.isfinite(known) else None

    def sample(self, scenario: Scenario, choice: Choice, effort: Effort) -> Sample:
        """Repetitions around the recorded median, at the recorded cost."""
        middle_s = self.time_s(scenario, choice)
        if middle_s is None:
            return Sample(scenario, choice, Status.INAPPLICABLE, cost_s=SET_UP)
        grid = self.grids[scenario.collective]
        known_s = None if choice == DEFAULT else grid.recorded_cost(self.recorded(scenario), choice)
        cost_s = SET_UP + effort.expected_cost_s(middle_s) if known_s is None else known_s
        times_s = tuple(float(one) for one in middle_s * np.exp(self.random.normal(0.0, 0.05, 10)))
        return Sample(scenario, choice, Status.OK, times_s, cost_s=cost_s)


@dataclass
class Recorded:
    """A launch on a machine: what is not answered by ``until_s`` is given up, as a live source does."""

    machine: Machine
    number: int
    until_s: float
    environment: Environment = ENVIRONMENT

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for group, point in enumerate(points):
            samples = [self.machine.sample(point.scenario, choice, effort) for choice in point.choices]
            self.machine.now_s += sum(sample.cost_s for sample in samples)
            if self.machine.now_s > self.until_s:
                self.machine.now_s = self.until_s
                return
            yield point, [replace(sample, launch=self.number, group=group) for sample in samples]

    def close(self) -> None:
        pass


def on_table(grids: Sequence[Grid], budget_s: float) -> dict[str, float]:
    """One tuning of all collectives of a table: what it took over what it may take, and how many were proven."""
    machine = Machine(grids)
    machine.now_s = SET_UP_S - LAUNCH_S
    plan = TimePlan(budget_s, 0.0, SET_UP_S, LAUNCH_S, REPLAY_S)
    spaces = {grid.collective: _with_default(grid) for grid in grids}
    learners = {name: DecisionLearner(space, 1) for name, space in spaces.items()}
    source = machine.launch(1, plan.measured_by_s + plan.grace_s)
    campaign = Campaign(
        source, spaces, learners, lambda _s: None, plan.measured_by_s - machine.now_s, clock=machine.clock
    )
    outcome = campaign.run()
    medians = medians_of(outcome.samples)
    models = models_of(learners, outcome, medians, grid_alone=True)
    candidates: dict[Scenario, Choice] = {}
    for name, space in spaces.items():
        chosen = decide(models[name], space, outcome.samples, lambda _s: DEFAULT, 1.03)
        candidates |= {scenario: choice for scenario, choice in chosen.items() if choice != DEFAULT}
    results = _proven(machine, plan, candidates, medians)
    kept = sum(1 for verdict in results if verdict is Verdict.KEPT)
    if kept:
        machine.now_s += 6 * LAUNCH_S + REPLAY_S
    may_s = max(budget_s, plan.fixed_cost_s)
    return {"overrun": machine.now_s / may_s, "kept": kept, "candidates": len(candidates)}


def _proven(
    machine: Machine,
    plan: TimePlan,
    candidates: dict[Scenario, Choice],
    medians: dict[tuple[Scenario, Choice], float],
) -> list[Verdict]:
    """As ``proof.Proof`` does it: the most gain for its time first, and a share kept for the files."""
    left_s = plan.proven_by_s - machine.now_s
    by_s = plan.proven_by_s - max(0.3 * left_s, 7.2 * LAUNCH_S)

    def group_s(scenario: Scenario) -> float:
        pair = ((scenario, DEFAULT), (scenario, candidates[scenario]))
        return sum(EFFORT.expected_cost_s(medians.get(one) or machine.time_s(*one) or 0.0) for one in pair)

    def worth(scenario: Scenario) -> float:
        default_s = medians.get((scenario, DEFAULT)) or machine.time_s(scenario, DEFAULT) or 0.0
        return max(np.log(default_s / medians.get((scenario, candidates[scenario]), default_s)), 0.02) / group_s(
            scenario
        )

    ordered = {scenario: candidates[scenario] for scenario in sorted(candidates, key=worth, reverse=True)}
    many = 0.3 * (by_s - machine.now_s) >= PROOF_LAUNCHES * LAUNCH_S
    numbers = count(2)
    confirmation = Confirmation(
        lambda: machine.launch(next(numbers), by_s + plan.grace_s),
        lambda _samples: None,
        launches=PROOF_LAUNCHES if many else FEWEST_PROOF_LAUNCHES,
        clock=machine.clock,
        launch_s=LAUNCH_S,
        cost_s=group_s,
        effort=EFFORT,
    )
    return [result.verdict for result in confirmation.run(ordered, by_s)]


def _with_default(grid: Grid) -> Space:
    inner = grid.space
    return Space(grid.collective, inner.scenarios, lambda scenario: (DEFAULT, *inner.choices(scenario)))


def tables(paths: Sequence[Path], budgets: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for path in paths or [p for p in sorted(DATA.glob("*")) if _is_timed(p)]:
        together: defaultdict[str, list[Grid]] = defaultdict(list)
        for grid in load_grids([path]):
            together[grid.name.rpartition("/")[0]].append(grid)
        for name, grids in together.items():
            for budget in budgets:
                one = on_table(grids, parse_duration(budget))
                key = f"{name.replace('/', '_')}_{budget}"
                found[f"overrun_{key}"] = round(one["overrun"], 4)
                print(key, {what: round(value, 3) for what, value in one.items()}, file=sys.stderr, flush=True)
    return found


def _is_timed(path: Path) -> bool:
    return path.name.endswith((".csv.gz", ".parquet")) and "labels" not in path.name


def on_cluster(budgets: Sequence[str]) -> dict[str, float]:
    """Wall time of the whole command, interpreter and page included."""
    from namespaces import namespace_cluster, why_not

    reason = why_not()
    if reason is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", 8) as cluster:
        environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        for budget in budgets:
            out = Path(place) / f"tuned-{budget}"
            words = ["tune", *COLLECTIVES, "--budget", budget, "--out", str(out)]
            words += ["--hostfile", str(cluster.host_file(1))]
            before_s = time.monotonic()
            done = subprocess.run(
                cluster.inside(sys.executable, "-m", "colltune", *words), env=environment, check=False
            )
            wall_s = time.monotonic() - before_s
            if done.returncode != 0:
                sys.exit(f"colltune tune failed with {done.returncode}")
            summary = json.loads((out / "tuning.json").read_text())["summary"]
            verdicts = [entry["verdict"] for entry in summary["gate"]]
            found |= {
                f"overrun_cluster_{budget}": round(wall_s / max(parse_duration(budget), summary["fixed_cost_s"]), 4),
                f"wall_s_cluster_{budget}": round(wall_s, 2),
                f"fixed_cost_s_cluster_{budget}": round(summary["fixed_cost_s"], 2),
                f"kept_cluster_{budget}": verdicts.count("kept"),
                f"not_tried_cluster_{budget}": verdicts.count("not tried"),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=("cluster", "tables"))
    parser.add_argument("--budget", action="append", help="30s, 2m and 5m if none is given")
    parser.add_argument("--tables", nargs="*", type=Path, default=[])
    options = parser.parse_args()
    parts, budgets = options.part or ["tables", "cluster"], options.budget or BUDGETS
    figures: dict[str, float] = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    if "tables" in parts:
        figures |= tables(options.tables, budgets)
    if "cluster" in parts:
        figures |= on_cluster(budgets)
    figures.pop("overrun_worst", None)
    figures = {"overrun_worst": max(v for k, v in figures.items() if k.startswith("overrun_")), **figures}
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
