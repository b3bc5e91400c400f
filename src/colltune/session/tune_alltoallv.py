"""Tunes MPI_Alltoallv in this job: algorithms of our own, and a table in place of a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from colltune.alltoallv.tune import AlltoallvResult, tune_alltoallv
from colltune.bench.workbench import Workbench, open_workbench
from colltune.core.units import parse_duration, parse_size
from colltune.session.arguments import TuneArguments, complete
from colltune.session.options import machine_of, require_writable
from colltune.store.lock import locked

_LARGEST = 16384  # bytes: larger blocks go straight to their destinations by any algorithm


def tune_alltoallv_here(
    arguments: TuneArguments,
    out: Path,
    opened: Callable[[Workbench], None] = lambda _bench: None,
    stage: Callable[[str], None] = lambda _text: None,
) -> AlltoallvResult:
    """Measures, proves, and writes out/alltoallv.rules. ``opened`` hears of the job first. Raises ColltuneError."""
    said = complete(TuneArguments, arguments)
    budget_s, largest = parse_duration(said["budget"]), parse_size(said["max_size"])
    machine = machine_of(said)
    require_writable(out)
    with locked(out):
        bench = open_workbench(machine, os.environ)
        opened(bench)
        largest = min(largest, _LARGEST)
        return tune_alltoallv(bench, out, largest, budget_s, said["seed"], stage, resume=said["resume"])
