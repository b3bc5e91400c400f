"""`colltune tune`: measure, decide, prove, write."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from colltune.cli.options import AsJson, LaunchLineCommand, offers
from colltune.cli.stopping import go_on_command, heed_scheduler
from colltune.core.errors import InputError
from colltune.session.arguments import TuneArguments

if TYPE_CHECKING:
    from colltune.bench.contract import Bench
    from colltune.session.tuning.options import TuneOptions


__all__ = ["LaunchLineCommand", "tune", "tune_and_show"]


@offers(TuneArguments)
def tune(
    context: typer.Context,
    collectives: Annotated[
        list[str] | None, typer.Argument(help="Collectives to tune: bcast allreduce ..., or all.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the tuning.")] = Path("tuned"),
    counts: Annotated[
        list[Path] | None,
        typer.Option(
            help="With alltoallv: a matrix of the bytes that each rank of your application (row) sends to each"
            " (column), as text or .npy. May be given several times.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    **arguments: Unpack[TuneArguments],
) -> None:
    """Measure collectives on the nodes of this job, and write the file that makes MPI choose best."""
    from colltune.core.sample import only_alltoallv

    began_s = time.monotonic()
    if only_alltoallv(collectives or []):
        from colltune.cli.tune_alltoallv import refuse_other_options, tune_alltoallv

        refuse_other_options(context)
        tune_alltoallv(arguments, out, counts or [])
        return
    if counts:
        raise InputError("--counts is for alltoallv, whose blocks differ in size", "Use `colltune tune alltoallv`")
    from colltune.session.tuning.options import TuneOptions

    tune_and_show(
        TuneOptions.of(collectives or [], arguments), out, began_s, go_on_command(sys.argv[1:]), as_json=as_json
    )


def tune_and_show(
    options: "TuneOptions",
    out: Path,
    began_s: float,
    go_on: str,
    *,
    as_json: bool = False,
    bench: "Bench | None" = None,
) -> None:
    """Tunes, and shows how it goes and what came of it. ``go_on``: the command that goes on where it is cut off.

    ``bench``: where to tune in place of this job.
    ``as_json``: what came of it as `colltune report --json` has it, and how it goes on standard error.
    """
    # The heavy imports come after the cheap checks, so that a slip of the fingers costs no wait.
    from colltune.cli.console import print_json
    from colltune.cli.display import Display
    from colltune.core.stop import StopRequest
    from colltune.report.ending import WIDTH, folded
    from colltune.report.text import report_record
    from colltune.session.explain import load_findings
    from colltune.session.tuning.tune_here import tune_here

    stop = StopRequest()
    with Display(None if bench else began_s + options.budget_s, err=as_json) as display:
        listener = display.listener(lambda: heed_scheduler(stop))
        done = tune_here(options, out, listener, stop, began_s, bench)
    if as_json:
        print_json("tune", report_record(load_findings(out), out))
        return
    display.result(done, out, go_on)
    if done.payoff is not None:
        typer.echo("\n".join(folded(done.payoff.text(), WIDTH)))
    if not done.outcome.interrupted and bench is None:
        typer.echo(_page(out))


def _page(out: Path) -> str:
    """Makes the page of the report, and says where it is. What is tuned is tuned, whatever becomes of the page."""
    from colltune.session.explain import make_page

    try:
        return f"Look at it: {make_page(out)}"
    except InputError as error:
        return f"No page was made: {error}"
