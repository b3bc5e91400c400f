"""`colltune tune`: measure, decide, prove, write."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, ThreadLevel


def tune(
    collectives: Annotated[
        list[str], typer.Argument(help="Collectives to tune: bcast allreduce ...", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Directory for the tuning.")] = Path("tuned"),
    budget: Annotated[str, typer.Option(help="Time to spend, such as 90s or 5m.")] = "5m",
    min_size: Annotated[str, typer.Option(help="Smallest message.")] = "1",
    max_size: Annotated[str, typer.Option(help="Largest message, such as 64KiB or 1MiB.")] = "1MiB",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a campaign that was cut off.")] = False,
    gate: Annotated[
        str, typer.Option(help="on: keep only rules proven faster in fresh launches. off: keep all (research).")
    ] = "on",
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="Reductions give the same bits for every message size and timing.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
    thread_level: ThreadLevel = "single",
) -> None:
    """Measure collectives on the nodes of this job, and write the file that makes MPI choose best."""
    from colltune.core.errors import InputError
    from colltune.core.units import parse_duration, parse_size

    if gate not in ("on", "off"):
        raise InputError(f"--gate {gate} is neither on nor off", "Leave it out, unless you do research on colltune")
    budget_s, smallest, largest = parse_duration(budget), parse_size(min_size), parse_size(max_size)
    # The heavy imports come after the cheap checks, so that a slip of the fingers costs no wait.
    from colltune.cli.display import Display
    from colltune.tune import TuneOptions, require_writable
    from colltune.tune import tune as run_tune
    from colltune.workbench import MachineOptions, open_workbench

    require_writable(out)
    bench = open_workbench(MachineOptions(mpiexec, hostfile, nodes, ppn, thread_level), os.environ)
    signal.signal(signal.SIGTERM, _stop)
    options = TuneOptions(collectives, smallest, largest, budget_s, resume, seed, gate == "on", reproducible)
    with Display() as display:
        display.machine(bench)
        result = run_tune(bench, options, out, display.listener())
    display.result(result, out)


def _stop(_number: int, _frame: object) -> NoReturn:
    """A scheduler says that the time is over: what is measured by then is still made use of."""
    from colltune.campaign import StopRequestedError

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise StopRequestedError("the scheduler asked to stop")
