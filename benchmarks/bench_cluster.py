"""Tunes a real cluster of 8 nodes, and verifies the result: network namespaces with links of 1 Gbit/s, real TCP.

`colltune tune bcast allreduce alltoall allgather --budget 5m`, then `colltune verify` over 3 fresh launches with the
file and 3 without. ``speedup_geomean``: default over tuned, over all points that verify looks at, those without a rule
included; ``slower_points``: of these, the ones that are slower beyond their interval. Needs root, iproute2 and gcc.
With ``--judge osu --osu DIR`` OSU's own programs judge in place of ``verify`` (judge_osu.py says how; what follows
``--`` goes to it). With ``--jobs 3`` three such jobs follow each other with a store, each ``--budget`` long; the first
and the last are judged, and ``proven``, the shapes and sizes that each job's file changes, is there for all.

Writes bench/cluster.json and prints it. Takes 10 minutes or so, with OSU's programs and 14 launches of each kind an
hour; times are only worth something on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mpi"))

from namespaces import NamespaceCluster, namespace_cluster, why_not  # noqa: E402

COLLECTIVES = ("bcast", "allreduce", "alltoall", "allgather")


def colltune(cluster: NamespaceCluster, *arguments: str) -> str:
    """Runs the command on the first node, as a job script would; what it prints is shown and returned."""
    return on_first_node(cluster, "-m", "colltune", *arguments)


def on_first_node(cluster: NamespaceCluster, *arguments: str) -> str:
    """Runs a Python program there."""
    environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = cluster.inside(sys.executable, "-u", *arguments)
    lines = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode not in (0, 1):
        sys.exit(f"python {' '.join(arguments[:3])} failed with {process.returncode}")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--ppn", type=int, default=1)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES, help="non-blocking ones too")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--launches", default="3")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tuned", type=Path, help="where the tuning is kept; one that is there is only verified")
    parser.add_argument("--tune-only", action="store_true")
    parser.add_argument("--judge", choices=("verify", "osu"), default="verify")
    parser.add_argument("--osu", type=Path, help="directory of a build of the OSU Micro-Benchmarks")
    parser.add_argument("further", nargs="*", help="with --judge osu: options of judge_osu.py, after --")
    options = parser.parse_args()
    if options.judge == "osu" and options.osu is None:
        sys.exit("--judge osu needs --osu DIR, a build of the OSU Micro-Benchmarks")
    reason = why_not()
    if reason is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    with tempfile.TemporaryDirectory() as place:
        tuned = options.tuned or Path(place) / "tuned"
        figures: dict[str, Any] = {}
        with namespace_cluster(Path(place) / "cluster", options.nodes, options.rate) as cluster:
            where = ("--hostfile", str(cluster.host_file(options.ppn)))
            for job in range(1, options.jobs + 1):
                out, suffix = (tuned, "") if options.jobs == 1 else (tuned / f"job{job}", f"_job{job}")
                if not (out / "tuning.json").exists():
                    words = [*options.collectives, "--budget", options.budget, "--out", str(out)]
                    if options.jobs > 1:
                        if job == 1:
                            colltune(cluster, "site", "init", str(tuned / "store"))
                        words += ["--store", str(tuned / "store"), "--max-size", "32KiB"]
                    changed = re.search(r"(\d+) of \d+ shapes", colltune(cluster, "tune", *words, *where))
                    figures[f"proven{suffix}"] = int(changed[1]) if changed is not None else 0
                if job in (1, options.jobs) and not options.tune_only:
                    found = judged(cluster, out, where, options)
                    figures |= {f"{name}{suffix}": value for name, value in found.items()}
                if figures:
                    write(figures)


def judged(
    cluster: NamespaceCluster, tuned: Path, where: Sequence[str], options: argparse.Namespace
) -> dict[str, float]:
    if options.judge == "osu":
        judge = (str(ROOT / "benchmarks" / "judge_osu.py"), str(tuned), "--osu", str(options.osu), *where)
        found: dict[str, float] = json.loads(on_first_node(cluster, *judge, *options.further).splitlines()[-1])
        return found
    answer = colltune(cluster, "verify", str(tuned), "--launches", options.launches, *where)
    mean = re.search(r"geometric mean over \d+ points: ([0-9.]+)", answer)
    slower = re.search(r"([0-9]+) slower", answer)
    if mean is None or slower is None:
        sys.exit("cannot read what colltune verify printed")
    return {"speedup_geomean": float(mean.group(1)), "slower_points": int(slower.group(1))}


def write(figures: dict[str, Any]) -> None:
    target = Path("bench/cluster.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
