"""Tunes MPI_Alltoallv in this job: algorithms of our own, and a table in place of a file."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from colltune.alltoallv.launches import AlltoallvOptions, launches_on
from colltune.alltoallv.lookup_table import Shape
from colltune.alltoallv.matrices import Called, called_by, load_recorded, write_matrices
from colltune.alltoallv.tune_table import AlltoallvResult, sizes_up_to, tune_alltoallv
from colltune.bench.workbench import open_workbench
from colltune.core.errors import InputError
from colltune.core.stop import StopRequest
from colltune.core.units import parse_duration, parse_size
from colltune.mpi.detect import ask_flux
from colltune.mpi.job import find_job
from colltune.session.arguments import TuneArguments, complete
from colltune.session.tuning.options import Listener, load_given_profiles, machine_of, require_writable
from colltune.session.tuning.payoff import machine_like
from colltune.store.lock import locked

_LARGEST = 16384  # bytes: larger blocks go straight to their destinations by any algorithm


def tune_alltoallv_here(
    arguments: TuneArguments,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
    counts: Sequence[Path] = (),
) -> AlltoallvResult:
    """Measures, proves, and writes out/alltoallv.rules. Raises ColltuneError.

    ``counts``: files with matrices that the application exchanges (see colltune.alltoallv.matrices).
    """
    listener = listener or Listener()
    given = complete(TuneArguments, arguments)
    budget_s, largest = parse_duration(given["budget"]), parse_size(given["max_size"])
    machine, (profile, *more) = machine_of(given), load_given_profiles(given["profile"]) or (None,)
    if more:
        raise InputError("alltoallv is tuned for one profile, and several are given", "Give that of this job's ranks")
    if profile is not None:
        job = find_job(os.environ, host_file=machine.host_file, flux_resources=ask_flux(os.environ))
        machine = machine_like(profile, machine, given["thread_level"], job)
    require_writable(out)
    with locked(out):
        bench = open_workbench(machine, os.environ)
        listener.opened(bench)
        whole, sizes = Shape(bench.nodes, bench.ppn), sizes_up_to(min(largest, _LARGEST))
        recorded = load_recorded(counts, whole, sizes)
        options = AlltoallvOptions(sizes, budget_s, given["seed"], given["resume"], recorded=recorded)
        if profile is not None:
            called = called_by(profile, whole, sizes)
            listener.note(_described(called))
            options = replace(options, parts=called.parts, sizes=called.sizes, fills=called.fills, profile=profile)
        launches = launches_on(bench, write_matrices(recorded, out))
        return tune_alltoallv(bench, launches, options, out, listener.stage, listener.note, stop)


def _described(called: Called) -> str:
    parts = ", ".join(f"{shape.nodes} x {shape.ppn}" for shape in called.parts)
    return (
        f"MPI_Alltoallv takes {called.share:.1%} of the profiled run: {parts} ranks, blocks of"
        f" {called.sizes[0]} to {called.sizes[-1]} B on average"
    )
