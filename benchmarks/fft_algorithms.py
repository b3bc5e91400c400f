"""The FFT example on a cluster of network namespaces, with each algorithm of MPI_Alltoall forced on the application.

    python benchmarks/fft_algorithms.py [--nodes 8] [--minutes 4.5] [--realtime]

What a tuning could gain at most: the fastest algorithm over the default, in the application's own pattern. Every round
runs each problem size with each algorithm once, in random order; medians over the rounds there is time for. Prints a
table; needs root, iproute2 and gcc.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from time import monotonic

from namespaces import NamespaceCluster, namespace_cluster, why_not

from colltune.catalog import Catalogue, load
from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.mpi.detect import find_mpi
from fft_on_cluster import ROOT, _times

PROBLEMS = "64:100 128:60 256:40 512:20"
ELEMENT_BYTES = 16
# Of a step and of its part in MPI_Alltoall, in seconds, by problem (points in a row, steps) and algorithm.
Times = dict[tuple[tuple[int, ...], Choice], list[tuple[float, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=4.5)
    parser.add_argument("--problems", default=PROBLEMS, help="points in a row and steps of each")
    parser.add_argument("--only", default="", help="algorithms, comma-separated; default: all")
    parser.add_argument("--realtime", action="store_true", help="ranks share cores by turns of equal length")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    mpiexec = Path(sys.executable).parent / "mpiexec"
    catalogue = load("mpich", find_mpi(str(mpiexec), os.environ).version)
    choices = catalogue.legal(Scenario("alltoall", options.nodes, 1, 1024), "single")
    named = options.only.split(",") if options.only else []
    choices = tuple(one for one in choices if not named or one == DEFAULT or str(one) in named)
    problems = [tuple(map(int, text.split(":"))) for text in options.problems.split()]
    times: Times = defaultdict(list)
    order, started_s, rounds = random.Random(1), monotonic(), 0
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "fft"
        source = ROOT / "examples" / "fft_transpose.c"
        subprocess.run([str(mpiexec.with_name("mpicc")), "-O2", str(source), "-lm", "-o", str(program)], check=True)
        with namespace_cluster(Path(name) / "cluster", options.nodes, realtime=options.realtime) as cluster:
            job = [str(mpiexec), "-f", str(cluster.host_file(1)), "-n", str(options.nodes), str(program)]
            while rounds == 0 or (monotonic() - started_s) * (rounds + 1) / rounds < 60.0 * options.minutes:
                pairs = [(problem, choice) for problem in problems for choice in choices]
                for problem, choice in order.sample(pairs, len(pairs)):
                    times[problem, choice].append(run(cluster, catalogue, [*job, *map(str, problem)], choice))
                rounds += 1
    print(f"{rounds} rounds, {options.nodes} nodes; default: step / alltoall in ms, others over the default's step")
    print(table(times, options.nodes))


def run(cluster: NamespaceCluster, catalogue: Catalogue, job: list[str], choice: Choice) -> tuple[float, float]:
    """Seconds of a step, and of its part in MPI_Alltoall."""
    forced = dict(catalogue.settings("alltoall", choice))
    environment = {**os.environ, **cluster.environment, **forced}
    done = subprocess.run(
        cluster.inside(*job), env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{choice}: {done.returncode} {done.stderr}")
    return _times(done.stdout)


def table(times: Times, nodes: int) -> str:
    """In Markdown, with the range over the rounds."""
    choices = sorted({choice for _, choice in times} - {DEFAULT})
    lines = [
        "| n (block), steps | default | " + " | ".join(map(str, choices)) + " |",
        "|---" * (len(choices) + 2) + "|",
    ]
    for size, steps in sorted({problem for problem, _ in times}):
        default = times[(size, steps), DEFAULT]
        step = median(step for step, _ in default)
        part = median(part for _, part in default)
        cells = [f"{size} ({(size // nodes) ** 2 * ELEMENT_BYTES} B), {steps}", f"{1e3 * step:.3g} / {1e3 * part:.3g}"]
        for choice in choices:
            ratios = sorted(own / step for own, _ in times[(size, steps), choice])
            cells.append(f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
