"""All commands in one application."""

from __future__ import annotations

import typer

from colltune.cli.check import check
from colltune.cli.diff import diff
from colltune.cli.doctor import doctor
from colltune.cli.env import env
from colltune.cli.explain import explain
from colltune.cli.lint import lint
from colltune.cli.run import run
from colltune.cli.tune import tune
from colltune.cli.verify import verify

app = typer.Typer(
    help="Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
app.command()(tune)
app.command(context_settings=_PASS_ON)(run)
app.command()(env)
app.command()(lint)
app.command()(check)
app.command()(verify)
app.command()(explain)
app.command()(diff)
app.command()(doctor)
