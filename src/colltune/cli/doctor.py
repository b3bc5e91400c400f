"""`colltune doctor`: what is here, what can be tuned, and what cannot, with the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.console import echo
from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, ThreadLevel


def doctor(
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
    thread_level: ThreadLevel = "single",
    features: Annotated[
        bool, typer.Option("--features", help="What is known of this node's processors, memory and network instead.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(help="Write that to an archive (.tar.gz) or a directory, for a report. It holds no names."),
    ] = None,
    machine: Annotated[Path | None, typer.Option(help="With --features: of this record, not of this node.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --features: as JSON; null is missing.")] = False,
    triad: Annotated[
        bool,
        typer.Option("--triad/--no-triad", help="With --features: measure the memory bandwidth, in under a second."),
    ] = True,
) -> None:
    """Say which MPI, launcher and job are found, and what can be tuned here. Never needs root."""
    if features or record is not None:
        from colltune.cli.doctor_features import record_features, show_features

        if record is not None:
            record_features(record)
        else:
            show_features(machine, as_json=as_json, triad=triad)
        return
    from colltune.bench.workbench import MachineOptions
    from colltune.session.doctor import diagnose

    diagnose(MachineOptions(mpiexec, hostfile, nodes, ppn, thread_level), os.environ, echo)
