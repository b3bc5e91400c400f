"""`colltune doctor --features` and `--record`: what is known of the hardware, and a record of it."""

import json
from pathlib import Path

import typer

from colltune.cli.console import echo
from colltune.machine.command_lines import colltune_command


def show_features(machine: Path | None, *, as_json: bool, triad: bool) -> None:
    """Says what is known of this node's processors, memory and network, or of a record's."""
    from colltune.core.hardware import NUMBERS, hardware_to_dict
    from colltune.machine.conditions import advice, read_conditions
    from colltune.machine.hardware_features import read_features
    from colltune.machine.record import RecordedMachine, RunningMachine

    where = RunningMachine() if machine is None else RecordedMachine.load(machine)
    if machine is None and triad:
        from colltune.machine.triad import measure_triad

        found = read_features(where, measure_triad)
    else:
        found = read_features(where)
    if as_json:
        typer.echo(json.dumps(hardware_to_dict(found), indent=1))
        return
    for name in (*NUMBERS, "fabric"):
        value = getattr(found, name)
        text = "missing" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
        source = found.sources.get(name)
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
