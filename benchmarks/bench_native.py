"""What libcolltune.so adds to a call, in nanoseconds: ``profile_ns``, the profile, and ``alltoallv_select_ns``.

The latter is the choice of the non-uniform all-to-all where counts repeat; ``alltoallv_lookup_ns`` is a look-up in its
table, and ``alltoallv_statistic_ns`` the sums over 64 ranks' counts, in calls of algorithms that carry them anyway.
The profile: the least time of an MPI_Allreduce of one double on one rank, with the library and without it, in launches
by turns; the median difference. ``select_ns`` is the same for the live selector with a rule that sets nothing, and
``measure_ns`` what the experiment of `run --measure` adds to that, timed blocks included. ``handler_look_ns``: of that,
looking at the communicator's error handler. ``own_handler_ns``: what a handler of the program's own adds to a call
under the selector, in whose place another stands meanwhile. ``alltoallv_other_ns_mpich`` and ``_openmpi``: what the
same call, at which no module looks, takes more under `run --alltoallv`. Adds to bench/native.json and prints it. Worth
something on an idle machine.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from colltune.alltoallv.lookup_table import save_table
from colltune.machine.compile import preload_variables
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.mpi.programs import library_for
from colltune.profile.profile_files import preload_environment
from harness import MANY_CALLS, ROOT, compiled, known_figures, mpi_beside, mpiexec_of, printed_number, write_figures

LAUNCHES = 7


def main() -> None:
    mpi = mpi_beside()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        program = compiled(mpi.mpicc, MANY_CALLS, place / "many_calls")
        profiled = preload_environment(library_for(mpi, place), place / "app.json", os.environ)
        selecting = live_environment(library_for(mpi, place), place)
        measuring = {**selecting, "COLLTUNE_MEASURE": str(place / "measure")}
        plain = dict(os.environ)
        ways = {
            "plain": (plain, ""),
            "profile": (profiled, ""),
            "select": (selecting, ""),
            "measure": (measuring, ""),
            "look": (plain, "look"),
            "plain handler": (plain, "handler"),
            "select handler": (selecting, "handler"),
        }
        times = [{name: call_ns(program, *way) for name, way in ways.items()} for _ in range(LAUNCHES)]
        selection = selection_ns(str(mpi.mpicc), place)
        others = {f"alltoallv_other_ns_{mpi.library}": other_ns(mpi, place)}
        if (mpiexec := mpiexec_of("openmpi")).exists():
            of_open_mpi = find_mpi(str(mpiexec), os.environ)
            others[f"alltoallv_other_ns_{of_open_mpi.library}"] = other_ns(of_open_mpi, place)
    usual = {name: median(one[name] for one in times) for name in times[0]}
    figures = {
        "profile_ns": usual["profile"] - usual["plain"],
        "select_ns": usual["select"] - usual["plain"],
        "measure_ns": usual["measure"] - usual["select"],
        "handler_look_ns": usual["look"],
        "own_handler_ns": usual["select handler"] - usual["plain handler"] - (usual["select"] - usual["plain"]),
        "plain_call_ns": usual["plain"],
    }
    rounded = {name: round(value, 1) for name, value in figures.items()}
    write_figures("native", {**known_figures("native"), **rounded, **selection, **others})


def live_environment(library: Path, place: Path) -> dict[str, str]:
    """The live selector with a rule for the program's calls that sets no control variable."""
    rules = place / "live.rules"
    rules.write_text("colltune-rules 2\nchoice 0 - -\nrules allreduce message\nrule - - - 0\n")
    return {**os.environ, **preload_variables(library, os.environ), "COLLTUNE_SELECT": str(rules)}


def other_ns(mpi: Installation, place: Path) -> float:
    """The median over launches by turns, of a table that has no rule for the job."""
    program, table = place / f"other_calls_{mpi.library}", place / "empty.rules"
    compiled(mpi.mpicc, MANY_CALLS, program)
    save_table(table, [], {})
    under = {**os.environ, **preload_variables(library_for(mpi, place), os.environ), "COLLTUNE_ALLTOALLV": str(table)}
    return round(median(call_ns(program, under, "") - call_ns(program, {**os.environ}, "") for _ in range(LAUNCHES)), 1)


def selection_ns(mpicc: str, place: Path) -> dict[str, float]:
    """Medians of launches of tests/native/alltoallv_select.c."""
    native = ROOT / "native"
    parts = [native / name for name in ("alltoallv", "common")]
    sources = [str(path) for part in parts for path in part.glob("*.c")]
    includes = [f"-I{part}" for part in (native / "include", *parts)]
    source, options = ROOT / "tests" / "native" / "alltoallv_select.c", ["-std=c11", *includes, *sources, "-lm"]
    program = compiled(mpicc, source, place / "select", *options)
    runs = [subprocess.run([str(program)], capture_output=True, text=True, check=True) for _ in range(LAUNCHES)]
    columns = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
    names = ("alltoallv_select_ns", "alltoallv_lookup_ns", "alltoallv_statistic_ns")
    return {name: round(median(values), 1) for name, values in zip(names, columns, strict=True)}


def call_ns(program: Path, environment: dict[str, str], mode: str) -> float:
    return printed_number([str(program), mode], environment)


if __name__ == "__main__":
    main()
