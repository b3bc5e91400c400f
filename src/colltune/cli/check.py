"""`colltune check`: the conformance replay of a tuning on the real MPI."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, Tuned, Via


def check(
    tuned: Tuned,
    short: Annotated[bool, typer.Option("--short", help="One case of each kind, as at the end of `tune`.")] = False,
    via: Via = "file",
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
) -> None:
    """Run every collective in every form under a tuning, and compare each result byte for byte.

    The exit code is 1 if a case fails. More ranks than cores are fine here: --ppn 8 checks up to 8 ranks.
    """
    from colltune.bench.workbench import MachineOptions, open_tuned_workbench
    from colltune.deploy.live import in_force_via
    from colltune.prove.replay import replay
    from colltune.store.tuning import load_deployable

    tuning = in_force_via(load_deployable(tuned), via, os.environ)
    bench = open_tuned_workbench(MachineOptions(mpiexec, hostfile, nodes, ppn), tuning.environment, os.environ)
    result = replay(bench, tuning.rule_sets, tuning.variables_at(tuned), short=short)
    typer.echo(result.message)
    for failure in result.failures:
        typer.echo(f"  {failure}")
    raise typer.Exit(0 if result.passed else 1)
