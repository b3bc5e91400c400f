"""Whether `colltune tune --budget` keeps its word: the time that a tuning takes over max(budget, stated fixed cost).

    python benchmarks/bench_budget.py [--part cluster] [--part tables] [--budget 30s ...] [--tables FILE ...]

The part ``cluster`` times `colltune tune bcast allreduce alltoall allgather` on 8 nodes x 1 rank of network namespaces
(root and iproute2; an idle machine). The part ``tables`` runs whole campaigns, the proof included, on each recorded
table of benchmarks/data, on a clock of its own (`colltune_study.research.delivery`): a launch takes 5 s, and no library
loads files, so that none are compared and nothing is replayed. ``overrun_worst`` is the worst over all runs of all
parts that were ever made: figures of parts that are not run again are kept in bench/budget.json. Writes that file and
prints it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench_learning import DATA, is_timed
from colltune.core.errors import InputError
from colltune.core.units import parse_duration
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.delivery import by_cluster, deliver
from harness import known_figures, options_of, write_figures
from on_cluster import namespace_cluster, on_first_node, require_namespaces

BUDGETS = ("30s", "2m", "5m")
COLLECTIVES = ("bcast", "allreduce", "alltoall", "allgather")


def tables(paths: Sequence[Path], budgets: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for path in paths or [p for p in sorted(DATA.glob("*")) if is_timed(p)]:
        for name, grids in by_cluster(load_grids([path])).items():
            for budget in budgets:
                try:
                    one = deliver(name, grids, parse_duration(budget), 1)
                except InputError as error:  # such as a table without the library's default
                    print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
                    break
                key = f"{name.replace('/', '_')}_{budget}"
                found[f"overrun_{key}"] = round(one.overrun, 4)
                print(key, one, file=sys.stderr, flush=True)
    return found


def on_cluster(budgets: Sequence[str]) -> dict[str, float]:
    """Wall time of the whole command, interpreter and page included."""
    require_namespaces()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", 8) as cluster:
        for budget in budgets:
            out = Path(place) / f"tuned-{budget}"
            words = [*COLLECTIVES, "--budget", budget, "--out", str(out), "--hostfile", str(cluster.host_file(1))]
            before_s = time.monotonic()
            on_first_node(cluster, "-m", "colltune", "tune", *words)
            wall_s = time.monotonic() - before_s
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
    parser = options_of(__doc__)
    parser.add_argument("--part", action="append", choices=("cluster", "tables"))
    parser.add_argument("--budget", action="append", help="30s, 2m and 5m if none is given")
    parser.add_argument("--tables", nargs="*", type=Path, default=[])
    options = parser.parse_args()
    parts, budgets = options.part or ["tables", "cluster"], options.budget or BUDGETS
    figures: dict[str, float] = known_figures("budget")
    if "tables" in parts:
        figures |= tables(options.tables, budgets)
    if "cluster" in parts:
        figures |= on_cluster(budgets)
    figures.pop("overrun_worst", None)
    figures = {"overrun_worst": max(v for k, v in figures.items() if k.startswith("overrun_")), **figures}
    write_figures("budget", figures)


if __name__ == "__main__":
    main()
