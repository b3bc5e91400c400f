"""Tunes MPI_Alltoallv in this job: algorithms of our own, and a table in place of a file."""

from __future__ import annotations

import os
from pathlib import Path

from colltune.alltoallv.bench import JobPatterns
from colltune.alltoallv.tune import AlltoallvOptions, AlltoallvResult, sizes_up_to, tune_alltoallv
from colltune.bench.workbench import open_workbench
from colltune.core.stop import StopRequest
from colltune.core.units import parse_duration, parse_size
from colltune.session.arguments import TuneArguments, complete
from colltune.session.options import Listener, machine_of, require_writable
from colltune.store.lock import locked

_LARGEST = 16384  # bytes: larger blocks go straight to their destinations by any algorithm


def tune_alltoallv_here(
    arguments: TuneArguments,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
) -> AlltoallvResult:
    """Measures, proves, and writes out/alltoallv.rules. Raises ColltuneError."""
    listener = listener or Listener()
    said = complete(TuneArguments, arguments)
    budget_s, largest = parse_duration(said["budget"]), parse_size(said["max_size"])
    machine = machine_of(said)
    require_writable(out)
    with locked(out):
        bench = open_workbench(machine, os.environ)
        listener.opened(bench)
        options = AlltoallvOptions(sizes_up_to(min(largest, _LARGEST)), budget_s, said["seed"], said["resume"])
        return tune_alltoallv(JobPatterns.on(bench), options, out, listener.stage, listener.note, stop)
