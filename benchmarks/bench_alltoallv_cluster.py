"""MPI_Alltoallv on clusters of network namespaces (1 Gbit/s, real TCP): tuned there, then against the library's own.

    python benchmarks/bench_alltoallv_cluster.py [--shapes 8x1,4x4] [--budget 150s] [--rounds 6] [--launches 8]
        [--only path_random,core_rmat]

Two things for each shape, nodes x ranks on each. The gate: what a program gets by the table beside the library's own,
in turns inside fresh launches, over average blocks and patterns, also such as were not tuned, and over matrices of
sparse products, graph exchanges and sorted keys (alltoallv_applications.py). The applications: path-finding on graphs
of four kinds and core numbers of two (examples/), by turns with the table and without. With --keep DIR a tuning is kept
in DIR/SHAPE, and one that is there already is judged as it is. Keeps the figures in bench/alltoallv_cluster.json;
needs root, iproute2 and gcc.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np

from alltoallv_applications import matrices
from alltoallv_lookup import find
from colltune.alltoallv.interposed import with_alltoallv
from colltune.alltoallv.lookup_table import (
    FIRST_CALL,
    LIBRARY,
    TABLE,
    Setting,
    Shape,
    fill_class,
    load_table,
    save_table,
)
from colltune.alltoallv.matrices import Matrix
from colltune.alltoallv.samples import AGENT_PARTS, AlltoallvSource, Blocks
from colltune.core.proven import lower_bound, upper_bound
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario
from colltune.core.space import Point
from colltune.machine.compile import build, cache_directory
from colltune.measure.contract import Effort
from harness import ROOT, compiled, options_of, write_figures
from on_cluster import NamespaceCluster, namespace_cluster, require_namespaces, run_inside

MPICH = Path(sys.executable).parent / "mpiexec"
TUNED = Choice("tuned")
SLOWER = 0.98  # library over tuned, below which a point is slower by more than 2%
SIZES = (8, 24, 64, 100, 512, 1000, 4096)  # bytes on average; some between those that are tuned
# By the name of their figures: program of examples/, graph, vertices, how often it is done in a run.
APPLICATIONS = {
    "path_chain": ("path_finding", "chain", 300, 6),
    "path_random": ("path_finding", "random", 1000, 24),
    "path_grid": ("path_finding", "grid", 900, 24),
    "path_rmat": ("path_finding", "rmat", 512, 120),
    "core_random": ("k_core", "random", 8192, 240),
    "core_rmat": ("k_core", "rmat", 4096, 120),
}


@dataclass(frozen=True)
class Place:
    """A cluster that is up, and what was compiled for it."""

    cluster: NamespaceCluster
    shape: Shape
    directory: Path
    tuned: Path
    measure: Path

    @property
    def table(self) -> Path:
        return self.tuned / TABLE

    def job(self, program: Path, *arguments: str) -> list[str]:
        hosts = str(self.cluster.host_file(self.shape.ppn))
        return [str(MPICH), "-f", hosts, "-n", str(self.shape.ranks), str(program), *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.cluster.environment, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
        return run_inside(self.cluster, command, more=environment, to=None)


@dataclass(frozen=True)
class Judged:
    """``setting``: what the table has for it. ``ratios``: the library's time over the table's, of each launch."""

    pattern: str
    size_bytes: int
    setting: Setting
    ratios: Sequence[float]


Gate = list[Judged]


@contextmanager
def place(shape: Shape, keep: Path | None = None) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        mpicc = MPICH.with_name("mpicc")
        for name in {application[0] for application in APPLICATIONS.values()}:
            compiled(mpicc, ROOT / "examples" / f"{name}.c", directory / name)
        measure = build(mpicc, AGENT_PARTS, cache_directory(os.environ))
        with namespace_cluster(directory / "cluster", shape.nodes, realtime=False) as cluster:
            tuned = (keep or directory) / str(shape)
            yield Place(cluster, shape, directory, tuned.absolute(), measure)


def tune(here: Place, budget: str) -> None:
    hosts = str(here.cluster.host_file(here.shape.ppn))
    options = ["--mpiexec", str(MPICH), "--hostfile", hosts, "--ppn", str(here.shape.ppn), "--budget", budget]
    command = [sys.executable, "-m", "colltune", "tune", "alltoallv", *options, "--max-size", "4KiB"]
    print(here.run([*command, "--out", str(here.tuned)]), file=sys.stderr)


def patterns(ranks: int) -> list[Blocks]:
    few, half = max(1, (ranks - 1) // 4), max(2, (ranks - 1) // 2)
    found = [Blocks(), Blocks("constant"), Blocks("skewed"), Blocks("power"), Blocks("uniform", str(half))]
    return list(
        dict.fromkeys([*found, Blocks("skewed", str(half)), Blocks("uniform", str(few)), Blocks("uniform", "1")])
    )


def exchanged(here: Place) -> tuple[list[Scenario], list[Path], dict[Scenario, tuple[str, int]]]:
    """What is compared; the files of its matrices; of each its name, and its class of fill."""
    shape, names, paths = here.shape, {}, []
    for size in SIZES:
        for blocks in patterns(shape.ranks):
            drawn = Scenario(blocks.collective, shape.nodes, shape.ppn, size)
            peers = blocks.peers_among(shape.ranks) or shape.ranks - 1
            names[drawn] = (blocks.collective, fill_class(peers / (shape.ranks - 1)))
    for number, (name, counts) in enumerate(matrices(shape.ranks).items()):
        path = here.directory / f"counts{number}.txt"
        np.savetxt(path, counts, "%d")
        paths.append(path)
        matrix = Matrix(path, counts)
        recorded = Scenario(Blocks(f"counts{number}").collective, shape.nodes, shape.ppn, matrix.average_bytes)
        names[recorded] = (name, matrix.fill)
    return list(names), paths, names


def gate(here: Place, launches: int) -> Gate:
    """Library over tuned, a ratio for each launch."""
    shape = here.shape
    grid, paths, names = exchanged(here)
    found: dict[Scenario, list[float]] = {scenario: [] for scenario in grid}
    variables = {**here.environment, "COLLTUNE_ALLTOALLV": str(in_force_at_once(here))}
    made = Environment("mpich", "", "", "", shape.nodes, shape.ppn, "single", {})
    effort = Effort(relative_width=0.02, box_s=0.01, fewest=20, most=40)
    for launch in range(launches):
        command = here.cluster.inside(*here.job(here.measure, *map(str, paths)))
        source = AlltoallvSource(made, command, variables, seed=100 + launch, launch=launch)
        try:
            for point, samples in source.measure((Point(s, (DEFAULT, TUNED)) for s in grid), effort):
                times = {sample.choice: sample.time_s for sample in samples}
                found[point.scenario].append(times[DEFAULT] / times[TUNED])
        finally:
            source.close()
    entries = load_table(here.table)
    return [
        Judged(name, scenario.size_bytes, find(entries, shape.ranks, shape.ppn, scenario.size_bytes, fill), ratios)
        for scenario, ratios in found.items()
        for name, fill in [names[scenario]]
    ]


def in_force_at_once(here: Place) -> Path:
    """The table for programs that call for hours: what it takes to set up is not waited for."""
    entries = [replace(entry, first_call=FIRST_CALL) for entry in load_table(here.table)]
    path = here.directory / "at_once.rules"
    save_table(path, entries, {})
    return path


def gate_figures(name: str, found: Gate) -> dict[str, float]:
    slower = [one for one in found if upper_bound(one.ratios) < SLOWER]
    faster = [one for one in found if lower_bound(one.ratios) > 1.0]
    ruled = [median(one.ratios) for one in found if one.setting != LIBRARY]
    for one in found:
        marks = "slower" if one in slower else "faster" if one in faster else ""
        ratio = f"{median(one.ratios):.3f} ({lower_bound(one.ratios):.3f} to {upper_bound(one.ratios):.3f})"
        print(f"{name} {one.pattern} {one.size_bytes} B by {one.setting}: {ratio} {marks}")
    return {
        f"gate_{name}_points": float(len(found)),
        f"gate_{name}_slower": float(len(slower)),
        f"gate_{name}_faster": float(len(faster)),
        f"gate_{name}_ratio": round(geometric_mean(median(one.ratios) for one in found), 3),
        f"gate_{name}_ruled": float(len(ruled)),
        f"gate_{name}_ruled_ratio": round(geometric_mean(ruled), 3) if ruled else 1.0,
        f"gate_{name}_largest": round(max(median(one.ratios) for one in found), 3),
    }


def by_turns(here: Place, name: str, rounds: int) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Seconds by phase, without and with the table, a run of each in every round. They must find the same."""
    program, *words = APPLICATIONS[name]
    job = here.job(here.directory / str(program), *map(str, words))
    tuned_job, tuned_environment = with_alltoallv(job, here.table, here.environment)
    default, tuned, answers = [], [], set()
    for number in range(rounds):
        for way in ("default", "tuned") if number % 2 == 0 else ("tuned", "default"):
            said = here.run(job) if way == "default" else here.run(tuned_job, tuned_environment)
            answer, times = said.splitlines()[:2]
            answers.add(answer)
            words = times.split()
            (default if way == "default" else tuned).append(dict(zip(words[::2], map(float, words[1::2]), strict=True)))
    if len(answers) != 1:
        sys.exit(f"{name}: not always the same was found: {answers}")
    return default, tuned


def row(shape: str, name: str, default: list[dict[str, float]], tuned: list[dict[str, float]]) -> dict[str, float]:
    """Prints a line of the table; figures of it. Ratios are tuned over default, of the two runs of a round."""
    ratios = {
        phase: sorted(t[phase] / d[phase] for d, t in zip(default, tuned, strict=True))
        for phase in ("total_s", "alltoallv_s")
    }
    phases = [phase for phase in default[0] if phase.endswith("_s")]
    base, after = ({phase: median(run[phase] for run in runs) for phase in phases} for runs in (default, tuned))
    blocks = f"{default[0]['mean_bytes']:.0f} B, {default[0]['empty']:.0%} empty"
    cells = [f"{median(r):.2f} ({r[0]:.2f} to {r[-1]:.2f})" for r in ratios.values()]
    times = " / ".join(f"{phase} {1e3 * base[phase]:.1f}, {1e3 * after[phase]:.1f}" for phase in phases)
    print(f"| {name} | {shape} | {blocks} | ms: {times} | {cells[0]} | {cells[1]} |", flush=True)
    return {
        f"{name}_{shape}_ratio": round(median(ratios["total_s"]), 3),
        f"{name}_{shape}_ratio_low": round(ratios["total_s"][0], 3),
        f"{name}_{shape}_ratio_high": round(ratios["total_s"][-1], 3),
        f"{name}_{shape}_alltoallv_ratio": round(median(ratios["alltoallv_s"]), 3),
        f"{name}_{shape}_alltoallv_share": round(base["alltoallv_s"] / base["total_s"], 3),
    }


def measure(options: argparse.Namespace) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in options.shapes.split(","):
        with place(Shape(*map(int, name.split("x"))), options.keep) as here:
            if not here.table.exists():
                tune(here, options.budget)
            print(here.table.read_text(), file=sys.stderr)
            if options.launches:
                figures |= gate_figures(name, gate(here, options.launches))
            for application in options.only.split(",") if options.rounds else ():
                figures |= row(name, application, *by_turns(here, application, options.rounds))
    return figures


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--shapes", default="8x1,4x4")
    parser.add_argument("--budget", default="150s")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--launches", type=int, default=8)
    parser.add_argument("--only", default=",".join(APPLICATIONS), help="applications")
    parser.add_argument("--keep", type=Path, help="where tunings are kept, and looked for")
    options = parser.parse_args()
    require_namespaces()
    write_figures("alltoallv_cluster", measure(options))


if __name__ == "__main__":
    main()
