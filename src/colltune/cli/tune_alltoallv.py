"""`colltune tune alltoallv`: the non-uniform all-to-all has algorithms of our own, and a table in place of a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from colltune.core.units import format_duration, format_size

if TYPE_CHECKING:
    from colltune.alltoallv_tuner import AlltoallvResult
    from colltune.workbench import MachineOptions

_LARGEST = 16384  # bytes: larger blocks go straight to their destinations by any algorithm


def tune_alltoallv_here(machine: MachineOptions, out: Path, largest: int, budget_s: float, seed: int) -> None:
    """Measures, proves, writes out/alltoallv.json, and prints what was found."""
    from colltune.alltoallv_tuner import tune_alltoallv
    from colltune.workbench import open_workbench

    bench = open_workbench(machine, os.environ)
    typer.echo(f"{bench.environment.mpi} {bench.environment.mpi_version}, {bench.nodes} x {bench.ppn} ranks")
    largest = min(largest, _LARGEST)
    result = tune_alltoallv(bench, out, largest, budget_s, seed, lambda text: typer.echo(f"{text} ..."))
    _show(result)


def _show(result: AlltoallvResult) -> None:
    from colltune.verify.gate import Verdict

    kept = [found for found in result.gate if found.verdict is Verdict.KEPT]
    for found in sorted(kept, key=lambda found: found.scenario.size_bytes):
        size = format_size(found.scenario.size_bytes)
        typer.echo(f"  average block {size}: {found.choice} {found.speedup:.2f} x, at least {found.low:.2f}")
    typer.echo(
        f"{len(kept)} of {len(result.gate)} choices proven; everywhere else the library's own stands. "
        f"{len(result.outcome.samples)} measurements in {format_duration(result.outcome.elapsed_s)}"
    )
    if kept:
        typer.echo(f"Run your application with: colltune run --alltoallv {result.table} -- mpiexec ./app")
