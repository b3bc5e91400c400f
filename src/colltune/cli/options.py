"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Tuned = Annotated[Path, typer.Argument(help="Directory that `colltune tune` wrote.", show_default=False)]
Mpiexec = Annotated[
    str | None, typer.Option(help="mpiexec of the MPI to use. Default: beside this Python, then on PATH.")
]
HostFile = Annotated[Path | None, typer.Option("--hostfile", help="File with the nodes, where no scheduler says them.")]
Nodes = Annotated[int | None, typer.Option(min=1, help="Nodes to use. Default: all of the job.")]
Ppn = Annotated[int | None, typer.Option("--ppn", min=1, help="Ranks per node. Default: as many as the job has.")]
ThreadLevel = Annotated[
    str,
    typer.Option(help="What the application asks MPI_Init_thread for: single, funneled, serialized or multiple."),
]
