"""`colltune doctor`: what is here, what can be tuned, and what cannot, with the reason."""

import os
from pathlib import Path
from typing import Annotated, Unpack

import typer

from colltune.cli.as_json import plain, print_json
from colltune.cli.console import echo
from colltune.cli.options import AsJson, ThreadLevel, offers
from colltune.machine.command_lines import colltune_command
from colltune.session.arguments import MachineArguments, machine_options


@offers(MachineArguments)
def doctor(
    thread_level: ThreadLevel = "single",
    features: Annotated[
        bool, typer.Option("--features", help="What is known of this node's processors, memory and network instead.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(help="Write that to an archive (.tar.gz) or a directory, for a report. It holds no names."),
    ] = None,
    machine: Annotated[Path | None, typer.Option(help="With --features: of this record, not of this node.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that is known: each algorithm, conditions, non-blocking calls.")
    ] = False,
    as_json: AsJson = False,
    triad: Annotated[
        bool,
        typer.Option("--triad/--no-triad", help="With --features: measure the memory bandwidth, in under a second."),
    ] = True,
    **where: Unpack[MachineArguments],
) -> None:
    """Say which MPI, launcher and job are found, and what can be tuned here. Never needs root."""
    if features or record is not None:
        from colltune.cli.doctor_features import record_features, show_features

        if record is not None:
            record_features(record)
        else:
            show_features(machine, as_json=as_json, triad=triad)
        return
    from colltune.session.doctor import diagnose

    def say(label: str, text: str, first: bool) -> None:
        if (first or everything) and not as_json:
            echo(f"{label:<14} {text}", indent=15)

    found = diagnose(machine_options(where, thread_level), os.environ, say)
    if as_json:
        print_json("doctor", {**plain(found), "missing": found.missing})
        return
    if found.missing:
        echo(f"{'not ready':<14} {found.missing}", indent=15)
    if not found.choices:
        return
    options = [word for name, value in where.items() if value is not None for word in (f"--{name}", str(value))]
    options += [] if thread_level == "single" else ["--thread-level", thread_level]
    names = [name for name in ("bcast", "allreduce") if name in found.choices]
    line = colltune_command("tune", *(names or found.choices), *options, "--budget", "5m", "--out", "tuned")
    typer.echo(f"{'afterwards' if found.missing else 'ready':<14} {line}")
