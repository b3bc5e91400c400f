"""What the jobs of a site gain from their store, on recorded clusters: how evidence adds up, and what an upgrade costs.

    python benchmarks/bench_site.py [--tables NAME ...] [--collectives NAME ...] [--noise 0.05 ...] [--seeds 3]
                                    [--budget 120] [--jobs 20] [--seed 1]

Writes bench/site.json and prints it. Each job is a whole campaign with its proof (see bench_delivery.py: a launch takes
5 s, and each one is off by the noise), begins with what the store knows, and adds to it. First six jobs of the largest
shape, one after another with equal budgets: ``captured_job1`` to ``captured_job6``, the share of the headroom that each
delivered, as medians over tables, collectives and seeds; ``captured_job3_of_six``: job 3 over the best of the six.
``false_changes``: of the looks of jobs 2 to 6 at a collective, those that called the unchanged machine changed. After
job 3 the machine is also upgraded, so that the algorithm with most rules takes 1.3 times as long everywhere; jobs 4 to
6 go on from a copy of the store. ``true_changes``: of these upgrades, those that were found by job 6;
``true_changes_at_once``: by job 4. All by noise, 5% without a suffix.

Then twenty jobs in random shapes at 5%. The first and the last job have the largest shape of the table, those between
random parts of it. ``tuning_time_ratio``: the time of the last over that of the first, on the clock of the cluster.
``captured_first``, ``captured_last``: as above; ``harm_worst``: of all jobs, the greatest time over the default's.
Needs no MPI.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from colltune.bench.recorded_cluster import RecordedBench
from colltune.bench.replay import TimeDrift
from colltune.core.proven import Verdict
from colltune.session.recorded_campaign import DRIFT_SD, LAUNCH_S
from colltune.session.tuning.options import Listener, TuneResult
from colltune.site.store import SiteStore
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.delivery import Delivery, by_cluster, deliver, deliver_into
from harness import options_of, part_of, write_figures

DATA = Path(__file__).parent / "data"
JOBS, UPGRADE_AFTER, SLOWER = 6, 3, 1.3


def tables(names: Sequence[str], collectives: Sequence[str]) -> dict[str, list[Grid]]:
    """By name, those of one cluster each."""
    found: dict[str, list[Grid]] = {}
    for name in names:
        (path,) = (path for path in DATA.iterdir() if path.name.split(".")[0] == name)
        (table, grids), *_ = by_cluster(load_grids([path])).items()
        found[table] = [grid for grid in grids if not collectives or grid.collective in collectives]
    return found


def part(grids: Sequence[Grid], nodes: int, ppn: int) -> list[Grid]:
    """What a job of ``nodes`` x ``ppn`` can form of the tables."""
    found = []
    for grid in grids:
        rows = [row for row, one in enumerate(grid.scenarios) if one.nodes <= nodes and one.ppn <= ppn]
        if rows:
            found.append(part_of(grid, rows))
    return found


def slowed(grid: Grid, algorithm: str) -> Grid:
    """``grid`` of the machine after an upgrade."""
    factor = [SLOWER if one.algorithm == algorithm else 1.0 for one in grid.choices]
    return replace(grid, time_s=grid.time_s * np.array(factor)[None, :])


@dataclass(frozen=True)
class Site:
    """The jobs of one shape on one table, of one collective so that their looks and upgrades are apart."""

    table: str
    grid: Grid
    noise: float
    seed: int
    budget_s: float

    def job(self, number: int, store: Path, grid: Grid | None = None) -> tuple[Delivery, TuneResult, bool]:
        """What job ``number`` delivered; and whether it called the machine changed."""
        seed = 100 * self.seed + number
        drift = TimeDrift(DRIFT_SD, seed)
        bench = RecordedBench([grid or self.grid], LAUNCH_S, self.noise, drift, machine=self.table)
        notes: list[str] = []
        with tempfile.TemporaryDirectory() as place:
            listener = Listener(note=notes.append)
            delivery, result = deliver_into(Path(place), bench, self.budget_s, seed, listener, store=store)
        changed = any("are not used" in text for text in notes)
        print(
            f"{self.table} {self.grid.collective} {self.noise:.0%} seed {self.seed} job {number}"
            f"{'' if grid is None else ' upgraded'}: {delivery.total_s:.0f} s, captured {delivery.captured:.3f},"
            f" kept {delivery.kept}, worst {delivery.worst:.2f}{', changed' if changed else ''}",
            flush=True,
        )
        return delivery, result, changed

    def jobs(self) -> tuple[list[float], list[bool], list[bool], float]:
        """Captured by job, looks at the unchanged machine, looks after the upgrade (none: no rule), and the harm."""
        captured, same, upgraded, worst = [], [], [], 1.0
        with tempfile.TemporaryDirectory() as place:
            store, copy = Path(place) / "store", Path(place) / "copy"
            SiteStore.made(store)
            for number in range(1, JOBS + 1):
                delivery, result, changed = self.job(number, store)
                captured.append(delivery.captured)
                worst = max(worst, delivery.worst)
                same += [changed] if number > 1 else []
                if number == UPGRADE_AFTER:
                    shutil.copytree(store, copy)
                    kept = Counter(one.choice.algorithm for one in result.decisions if one.verdict is Verdict.KEPT)
            if kept:
                after = slowed(self.grid, kept.most_common(1)[0][0])
                for number in range(UPGRADE_AFTER + 1, JOBS + 1):
                    upgraded.append(self.job(number, copy, after)[2])
        return captured, same, upgraded, worst


def figures_of(sites: Iterator[Site], suffix: str) -> dict[str, float]:
    done = [site.jobs() for site in sites]
    captured = np.array([one[0] for one in done])
    looks = [look for one in done for look in one[1]]
    upgraded = [one[2] for one in done if one[2]]
    found = {f"captured_job{number + 1}{suffix}": float(np.median(captured[:, number])) for number in range(JOBS)}
    found[f"captured_job3_of_six{suffix}"] = median(one[2] / max(*one, 1e-9) for one in captured.tolist())
    found[f"false_changes{suffix}"] = sum(looks) / len(looks)
    found[f"true_changes{suffix}"] = sum(map(any, upgraded)) / max(len(upgraded), 1)
    found[f"true_changes_at_once{suffix}"] = sum(one[0] for one in upgraded) / max(len(upgraded), 1)
    found[f"upgrades{suffix}"] = len(upgraded)
    found[f"harm_worst_six{suffix}"] = max(one[3] for one in done)
    return {name: round(value, 3) for name, value in found.items()}


def in_random_shapes(table: str, grids: Sequence[Grid], jobs: int, budget_s: float, seed: int) -> dict[str, float]:
    shapes = sorted({(one.nodes, one.ppn) for grid in grids for one in grid.scenarios})
    draw = random.Random(seed)
    largest = (max(nodes for nodes, _ in shapes), max(ppn for _, ppn in shapes))
    order = [largest, *(draw.choice(shapes) for _ in range(jobs - 2)), largest]
    done: list[Delivery] = []
    with tempfile.TemporaryDirectory() as place:
        store = SiteStore.made(Path(place) / "store")
        for number, shape in enumerate(order):
            one = deliver(table, part(grids, *shape), budget_s, seed + number, store=store.directory)
            done.append(one)
            print(
                f"job {number + 1}, {shape[0]} x {shape[1]}: {one.total_s:.1f} s, captured {one.captured:.3f}",
                flush=True,
            )
    first, last = done[0], done[-1]
    return {
        "jobs": len(done),
        "tuning_time_ratio": round(last.total_s / first.total_s, 3),
        "captured_first": round(first.captured, 3),
        "captured_last": round(last.captured, 3),
        "first_s": round(first.total_s, 1),
        "last_s": round(last.total_s, 1),
        "all_s": round(sum(one.total_s for one in done), 1),
        "harm_worst": round(max(one.worst for one in done), 3),
    }


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--tables", nargs="*", default=["pico_lumi", "pico_leonardo"])
    parser.add_argument("--collectives", nargs="*", default=[])
    parser.add_argument("--noise", nargs="*", type=float, default=[0.05, 0.15, 0.3])
    parser.add_argument("--seeds", type=int, default=3, help="of the six jobs")
    parser.add_argument("--jobs", type=int, default=20, help="in random shapes; 0: none")
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    clusters = tables(asked.tables, asked.collectives)
    figures: dict[str, float] = {}
    for noise in asked.noise:
        sites = (
            Site(table, grid, noise, asked.seed + number, asked.budget)
            for table, grids in clusters.items()
            for grid in grids
            for number in range(asked.seeds)
        )
        figures |= figures_of(sites, "" if noise == asked.noise[0] else f"_{100.0 * noise:.0f}")
    if asked.jobs:
        table, grids = next(iter(clusters.items()))
        figures |= in_random_shapes(table, grids, asked.jobs, asked.budget, asked.seed)
    write_figures("site", figures)


if __name__ == "__main__":
    main()
