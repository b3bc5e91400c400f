"""`colltune features` and `colltune gather`: what is known of the hardware, and a record of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.hints import colltune_command

_Machine = Annotated[
    Path | None, typer.Option("--machine", help="A record that `colltune gather` made. Default: this node.")
]


def features(
    machine: _Machine = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; null is missing.")] = False,
    triad: Annotated[
        bool, typer.Option("--triad/--no-triad", help="Measure the memory bandwidth, which takes under a second.")
    ] = True,
) -> None:
    """Say what is known of this node's processors, memory and network. Never needs root."""
    from colltune.core.hardware import NUMBERS, hardware_to_dict
    from colltune.machine.features import read_features
    from colltune.machine.record import RecordedMachine, RunningMachine

    if machine is not None:
        found = read_features(RecordedMachine.load(machine))
    else:
        from colltune.machine.triad import measure_triad

        found = read_features(RunningMachine(), measure_triad if triad else None)
    if as_json:
        typer.echo(json.dumps(hardware_to_dict(found), indent=1))
        return
    for name in (*NUMBERS, "fabric"):
        value = getattr(found, name)
        text = "missing" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
        source = found.sources.get(name)
        typer.echo(f"{name:<16} {text}" + (f"  ({source})" if source else ""))


def gather(
    out: Annotated[Path, typer.Option(help="Archive (.tar.gz) or directory to write.")] = Path("machine.tar.gz"),
) -> None:
    """Record what `colltune features` reads of this node, to train on or to report a fault. Holds no names."""
    from colltune.machine.record import RunningMachine, record, save_record

    recorded = record(RunningMachine())
    save_record(recorded, out)
    command = colltune_command("features", "--machine", out)
    typer.echo(f"{len(recorded.files)} files of this node are in {out}; see them by: {command}")
