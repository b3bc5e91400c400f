"""All commands in one application."""

from __future__ import annotations

from typing import Annotated

import typer

from colltune.cli.check import check
from colltune.cli.collect import collect
from colltune.cli.diff import diff
from colltune.cli.doctor import doctor
from colltune.cli.drift import drift
from colltune.cli.env import env
from colltune.cli.evaluate import evaluate
from colltune.cli.explain import explain
from colltune.cli.export import export
from colltune.cli.features import features, gather
from colltune.cli.lint import lint
from colltune.cli.plan import plan
from colltune.cli.predict import predict
from colltune.cli.profile import profile
from colltune.cli.report import report
from colltune.cli.run import RunCommand, run
from colltune.cli.site import site
from colltune.cli.train import train
from colltune.cli.tune import tune
from colltune.cli.verify import verify
from colltune.cli.watch import watch
from colltune.core.version import __version__

app = typer.Typer(
    help="Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"colltune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe."""


_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
app.command()(tune)
app.command(context_settings=_PASS_ON, cls=RunCommand)(run)
app.command(context_settings=_PASS_ON)(profile)
app.command()(env)
app.command()(lint)
app.command()(check)
app.command()(verify)
app.command()(watch)
app.command()(drift)
app.command()(explain)
app.command()(export)
app.command()(diff)
app.command()(report)
app.command()(doctor)
app.command()(plan)
app.command()(collect)
app.command()(features)
app.command()(gather)
app.command()(evaluate)
app.command()(train)
app.command()(predict)
app.add_typer(site, name="site")
