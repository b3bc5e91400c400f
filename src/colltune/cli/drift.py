"""`colltune drift`: does a tuning still hold, after an upgrade for example?"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, Tuned


def drift(
    tuned: Tuned,
    budget: Annotated[str, typer.Option(help="Time to spend at most.")] = "100s",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
) -> None:
    """Measure a few points of a tuning again, in under two minutes. Exit code 1 if it does not hold any more.

    The MPI may be another version than the one that was tuned: what differs is said first.
    """
    from dataclasses import fields

    from colltune.cli.console import make_console
    from colltune.core.errors import InputError
    from colltune.core.sample import Environment
    from colltune.core.units import parse_duration
    from colltune.recheck import drift as look_again
    from colltune.report.tables import drift_table
    from colltune.store.tuning import load_deployable
    from colltune.workbench import MachineOptions, open_workbench

    budget_s = parse_duration(budget)
    tuning = load_deployable(tuned)
    there = tuning.environment
    machine = MachineOptions(
        mpiexec or there.facts.get("mpiexec"), hostfile, nodes or there.nodes, ppn or there.ppn, there.thread_level
    )
    bench = open_workbench(machine, os.environ)
    here = bench.environment
    if here.mpi != there.mpi:
        raise InputError(f"{tuned} was tuned for {there.mpi}, and here is {here.mpi}", "Give the other's --mpiexec")
    console = make_console()
    for one in fields(Environment):
        then, now = getattr(there, one.name), getattr(here, one.name)
        if one.compare and then != now:
            console.print(f"{one.name} was {str(then)[:40]} and is {str(now)[:40]}", markup=False)
    rechecks, verdicts = look_again(bench, tuning, tuned, budget_s, seed)
    console.print(drift_table(rechecks))
    for name, why in verdicts.items():
        console.print(f"{name}: {'does not hold: ' + why if why else 'holds'}.", markup=False)
    gone = any(verdicts.values())
    if gone:
        console.print(f"Tune again: colltune tune {' '.join(verdicts)} --out {tuned}", markup=False)
    raise typer.Exit(1 if gone else 0)
