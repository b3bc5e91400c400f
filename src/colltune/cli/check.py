"""`colltune check`: the conformance replay of a tuning on the real MPI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.console import echo
from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, Tuned, Via
from colltune.core.units import format_count

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions


def check(
    tuned: Tuned,
    short: Annotated[bool, typer.Option("--short", help="One case of each kind, as at the end of `tune`.")] = False,
    candidates: Annotated[
        bool,
        typer.Option(
            "--candidates",
            help="Check what the proof left open instead, and keep what gives right results for `run --explore`.",
        ),
    ] = False,
    via: Via = "file",
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
) -> None:
    """Run every collective in every form under a tuning, and compare each result byte for byte.

    The exit code is 1 if a case fails. More ranks than cores are fine here: --ppn 8 checks up to 8 ranks.
    """
    from colltune.session.arguments import machine_options
    from colltune.session.check import check as run_check

    machine = machine_options({"mpiexec": mpiexec, "hostfile": hostfile, "nodes": nodes, "ppn": ppn})
    if candidates:
        _check_candidates(tuned, machine)
        return
    result = run_check(tuned, machine, short=short, via=via)
    echo(result.message)
    for failure in result.failures:
        echo(f"  {failure}")
    raise typer.Exit(0 if result.passed else 1)


def _check_candidates(tuned: Path, machine: MachineOptions) -> None:
    from colltune.session.candidates import replay_candidates

    done = replay_candidates(tuned, machine)
    for note in done.notes:
        echo(note)
    echo(f"right results: {format_count(len(done.candidates.choices), 'choice')} of {', '.join(done.rules) or 'none'}")
    echo(f"try them in an application: colltune run --explore {tuned} -- mpiexec ...")
