"""`colltune demo`: a recorded cluster and this machine, tuned before the reader's eyes."""

import time
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.console import echo
from colltune.core.errors import ColltuneError, InputError

# Collectives that gain on most machines with two cores or more, and what a laptop has time for.
_HERE = ("alltoall", "reduce_scatter", "allreduce", "bcast")
_HERE_BUDGET = "40s"
_RECORDED_BUDGET_S = 300.0


def demo(
    out: Annotated[Path, typer.Option(help="Directory for both tunings.")] = Path("demo"),
    mpiexec: Annotated[str | None, typer.Option(help="mpiexec of the MPI to tune on this machine.")] = None,
) -> None:
    """Tune a recorded cluster, then this machine: a minute that shows what to expect."""
    echo(f"1 of 2: LUMI as it was recorded, {_RECORDED_BUDGET_S / 60:.0f} minutes on its own clock. No MPI runs.")
    _recorded(out / "lumi")
    echo("")
    echo(f"2 of 2: this machine, at most {_HERE_BUDGET}.")
    try:
        _here(out / "here", mpiexec)
    except ColltuneError as error:
        # What was shown of the recorded cluster stands, whatever is missing here.
        raise InputError(f"this machine was not tuned: {error.what}", error.next_step) from error


def _recorded(out: Path) -> None:
    """Tunes the recorded cluster of the package, and says what was found of all there was to find."""
    from colltune.bench.recorded_cluster import RecordedBench
    from colltune.bench.replay import TimeDrift
    from colltune.cli.display import Display
    from colltune.session.explain import make_page
    from colltune.session.recorded_campaign import DRIFT_SD, LAUNCH_S, LAUNCH_SD, tune_recorded
    from colltune.store.grid import unpack_grids

    with resources.as_file(resources.files("colltune.bench") / "lumi.npz") as path:
        grids = unpack_grids(path)
    out.mkdir(parents=True, exist_ok=True)
    with Display() as display:
        bench = RecordedBench(grids, LAUNCH_S, LAUNCH_SD, TimeDrift(DRIFT_SD, 0), machine="LUMI")
        display.bench(bench)
        score, result = tune_recorded(out, bench, _RECORDED_BUDGET_S, 0, display.listener())
    display.result(result, out)
    scenarios = sum(len(grid.scenarios) for grid in grids)
    harmed = "none" if score.harmed == 0.0 else f"{score.harmed:.1%}"
    echo(
        f"judged     by the whole record: {score.captured:.0%} of what the fastest choice of each of the"
        f" {scenarios} scenarios gains; slower than the default by 3% or more: {harmed}"
    )
    echo(f"Look at it: {make_page(out)}")


def _here(out: Path, mpiexec: str | None) -> None:
    from colltune.cli.tune import tune_and_show
    from colltune.machine.command_lines import colltune_command
    from colltune.session.tuning.options import TuneOptions

    began_s = time.monotonic()
    options = TuneOptions.of(_HERE, {"mpiexec": mpiexec, "budget": _HERE_BUDGET, "max_size": "256KiB"})
    out.mkdir(parents=True, exist_ok=True)
    tune_and_show(options, out, began_s, colltune_command("tune", *_HERE, "--out", out, "--resume"))
