"""What the jobs of a site gain from their store: twenty jobs in random shapes on a recorded cluster, one after another.

    python benchmarks/bench_site.py [--table NAME] [--collectives NAME ...] [--jobs 20] [--budget 120] [--seed 1]

Writes bench/site.json and prints it. Each job is a whole campaign with its proof (see bench_delivery.py: a launch takes
5 s, and each one is off by 5%), begins with what the store knows, and adds to it. The first and the last job have the
largest shape of the table, those between random parts of it. ``tuning_time_ratio``: the time of the last over that of
the first, on the clock of the cluster. ``captured_first``, ``captured_last``: the share of the headroom that they
delivered; ``harm_worst``: of all jobs, the greatest time over the default's. Needs no MPI.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from colltune.research.delivery import Delivery, by_cluster, deliver
from colltune.site.store import SiteStore
from colltune.store.dataset import load_grids
from colltune.store.grid import Grid
from part_of_grid import part_of

DATA = Path(__file__).parent / "data"


def part(grids: Sequence[Grid], nodes: int, ppn: int) -> list[Grid]:
    """What a job of ``nodes`` x ``ppn`` can form of the tables."""
    found = []
    for grid in grids:
        rows = [row for row, one in enumerate(grid.scenarios) if one.nodes <= nodes and one.ppn <= ppn]
        if rows:
            found.append(part_of(grid, rows))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="pico_lumi")
    parser.add_argument("--collectives", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    (path,) = (path for path in DATA.iterdir() if path.name.split(".")[0] == asked.table)
    (table, grids), *_ = by_cluster(load_grids([path])).items()
    grids = [grid for grid in grids if not asked.collectives or grid.collective in asked.collectives]
    shapes = sorted({(one.nodes, one.ppn) for grid in grids for one in grid.scenarios})
    draw = random.Random(asked.seed)
    largest = (max(nodes for nodes, _ in shapes), max(ppn for _, ppn in shapes))
    jobs = [largest, *(draw.choice(shapes) for _ in range(asked.jobs - 2)), largest]
    done: list[Delivery] = []
    with tempfile.TemporaryDirectory() as place:
        store = SiteStore.made(Path(place) / "store")
        for number, shape in enumerate(jobs):
            one = deliver(table, part(grids, *shape), asked.budget, asked.seed + number, store=store.directory)
            done.append(one)
            print(
                f"job {number + 1}, {shape[0]} x {shape[1]}: {one.total_s:.1f} s, captured {one.captured:.3f}",
                flush=True,
            )
    first, last = done[0], done[-1]
    figures = {
        "jobs": len(done),
        "tuning_time_ratio": round(last.total_s / first.total_s, 3),
        "captured_first": round(first.captured, 3),
        "captured_last": round(last.captured, 3),
        "first_s": round(first.total_s, 1),
        "last_s": round(last.total_s, 1),
        "all_s": round(sum(one.total_s for one in done), 1),
        "harm_worst": round(max(one.worst for one in done), 3),
    }
    target = Path("bench/site.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
