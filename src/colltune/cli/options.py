"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.core.units import format_count

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions

Tuned = Annotated[Path, typer.Argument(help="Directory that `colltune tune` wrote.", show_default=False)]
Mpiexec = Annotated[
    str | None, typer.Option(help="mpiexec of the MPI to use. Default: beside this Python, then on PATH.")
]
HostFile = Annotated[Path | None, typer.Option("--hostfile", help="File with the nodes, where no scheduler says them.")]
Nodes = Annotated[int | None, typer.Option(min=1, help="Nodes to use. Default: all of the job.")]
Ppn = Annotated[int | None, typer.Option("--ppn", min=1, help="Ranks per node. Default: as many as the job has.")]
Via = Annotated[
    str,
    typer.Option(help="file: what the library itself loads. live: a preloaded selector, which can tell more apart."),
]
ThreadLevel = Annotated[
    str,
    typer.Option(help="What the application asks MPI_Init_thread for: single, funneled, serialized or multiple."),
]
Simulate = Annotated[
    str,
    typer.Option(help="Use a simulated cluster in place of this job's MPI: dragonfly:64x4 (nodes x ranks per node)."),
]


def say_left_out(count: int) -> None:
    """One line on standard error about ``count`` decisions that are provisional, if there are any."""
    if count:
        what = f"{format_count(count, 'provisional decision')} {'is' if count == 1 else 'are'}"
        typer.echo(
            f"colltune: {what} left out: faster, and not proven before the job was ended; --provisional uses them, "
            "`colltune tune ... --resume` proves them",
            err=True,
        )


def refuse_with_simulate(machine: MachineOptions) -> None:
    """Raises InputError for options that say where to run: a simulated cluster runs nowhere."""
    from colltune.core.errors import InputError

    given = {
        "--mpiexec": machine.mpiexec,
        "--hostfile": machine.host_file,
        "--nodes": machine.nodes,
        "--ppn": machine.ppn,
        "--thread-level": machine.thread_level != "single",
    }
    named = [name for name, value in given.items() if value]
    if named:
        raise InputError(f"{', '.join(named)} cannot be used with --simulate", "Write the shape as in dragonfly:64x4")
