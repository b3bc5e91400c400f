"""`colltune doctor`: what is here, what can be tuned, and what cannot, with the reason."""

import json
import os
from pathlib import Path
from typing import Annotated, Unpack

import typer

from colltune.cli.console import echo, plain, print_json
from colltune.cli.options import AsJson, ThreadLevel, offers
from colltune.machine.command_lines import colltune_command
from colltune.session.arguments import MachineArguments, machine_options


@offers(MachineArguments)
def doctor(
    thread_level: ThreadLevel = "single",
    features: Annotated[
        bool, typer.Option("--features", help="What is known of this node's processors and network instead.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(help="Write that to an archive (.tar.gz) or a directory, for a report. It holds no names."),
    ] = None,
    machine: Annotated[Path | None, typer.Option(help="With --features: of this record, not of this node.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that is known: each algorithm, and conditions.")
    ] = False,
    as_json: AsJson = False,
    **where: Unpack[MachineArguments],
) -> None:
    """Say which MPI, launcher and job are found, and what can be tuned here. Never needs root."""
    if features or record is not None:
        if record is not None:
            record_features(record)
        else:
            show_features(machine, as_json=as_json)
        return
    from colltune.session.doctor import diagnose

    def say(label: str, text: str, first: bool) -> None:
        if (first or everything) and not as_json:
            echo(f"{label:<14} {text}", indent=15)

    diagnosis = diagnose(machine_options(where, thread_level), os.environ, say)
    if as_json:
        print_json("doctor", {**plain(diagnosis), "missing": diagnosis.missing})
        return
    if diagnosis.missing:
        echo(f"{'not ready':<14} {diagnosis.missing}", indent=15)
    if not diagnosis.choices:
        return
    options = [word for name, value in where.items() if value is not None for word in (f"--{name}", str(value))]
    options += [] if thread_level == "single" else ["--thread-level", thread_level]
    names = [name for name in ("bcast", "allreduce") if name in diagnosis.choices]
    line = colltune_command("tune", *(names or diagnosis.choices), *options, "--budget", "5m", "--out", "tuned")
    typer.echo(f"{'afterwards' if diagnosis.missing else 'ready':<14} {line}")


def show_features(machine: Path | None, *, as_json: bool) -> None:
    """Says what is known of this node's processors and network, or of a record's."""
    from colltune.core.hardware import NUMBERS
    from colltune.machine.conditions import advice, read_conditions
    from colltune.machine.hardware_features import read_features
    from colltune.machine.record import RecordedMachine, RunningMachine

    where = RunningMachine() if machine is None else RecordedMachine.load(machine)
    known = read_features(where)
    if as_json:
        typer.echo(json.dumps(plain(known), indent=1))
        return
    for name in (*NUMBERS, "fabric"):
        value = getattr(known, name)
        text = "missing" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
        source = known.sources.get(name)
        typer.echo(f"{name:<16} {text}" + (f"  ({source})" if source else ""))
    conditions = read_conditions(where)
    for name, text in conditions.items():
        echo(f"{name:<16} {text}")
    for text in advice(conditions):
        echo(f"{'note':<16} {text}")


def record_features(out: Path) -> None:
    """Writes what is read of this node to ``out``, to train on or to report a fault. It holds no names."""
    from colltune.machine.record import RunningMachine, record, save_record

    recorded = record(RunningMachine())
    save_record(recorded, out)
    command = colltune_command("doctor", "--features", "--machine", out)
    typer.echo(f"{len(recorded.files)} files of this node are in {out}; see them by: {command}")
