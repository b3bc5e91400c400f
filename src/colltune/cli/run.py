"""`colltune run`: an application, with the tuned file in force."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Unpack, cast

import typer
from typer.core import TyperCommand

from colltune.cli.console import echo
from colltune.cli.options import Tuned, offers
from colltune.core.errors import InputError, on_os_error
from colltune.session.arguments import RunArguments

if TYPE_CHECKING:
    from colltune.session.application.auto_run import FirstRun

_OF_A_TUNING = ("prove", "profile", "measure", "auto", "provisional")


class RunCommand(TyperCommand):
    """Has the words behind ``--`` as they are, for they are the program's; ``--measure=10%`` has its share too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options, ctx.allow_interspersed_args = False, True
        own = args[: args.index("--")] if "--" in args else args
        if own is args and not ctx.resilient_parsing and not {*args} & {*ctx.help_option_names}:
            raise InputError(
                "there is no command to run, as none stands behind --",
                "Write it there: colltune run tuned/ -- mpiexec -n 4 ./app",
            )
        given = [word for text in own for word in _with_share(text)]
        return super().parse_args(ctx, [*given, *args[len(own) :]])


def _with_share(word: str) -> list[str]:
    name, equals, value = word.partition("=")
    return ["--measure", "--share", value] if name == "--measure" and equals else [word]


@offers(RunArguments)
def run(
    tuned: Tuned,
    context: typer.Context,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Do not say at the start where the tuning changes nothing, or is defeated.")
    ] = False,
    **arguments: Unpack[RunArguments],
) -> None:
    """Run a command with a tuning in force: colltune run tuned/ -- mpiexec -n 4 ./app.

    Options stand before --. The exit code is the command's. MPICH from 5.0 on says
    itself which files it loaded; of others it is seen whether the files are opened on this node.
    """
    from colltune.judge.finding import ExitCode
    from colltune.session.application.run_application import ReadyRun, RunOptions, ready_run, unheard
    from colltune.session.export import holds_thresholds, thresholds_of_job

    table, given = arguments["alltoallv"], cast(Mapping[str, object], arguments)
    if table is not None and not tuned.is_dir():
        for name in (name for name in _OF_A_TUNING if given[name]):
            raise InputError(
                f"--{name} says nothing of MPI_Alltoallv, and no other tuning is given",
                f"Give the directory of a tuning too, or leave --{name} out",
            )
        from colltune.alltoallv.interposed import with_alltoallv

        command = [str(tuned), *context.args]
        replace_by(command, with_alltoallv(command, Path(table), os.environ))
    if holds_thresholds(tuned):
        for name in (name for name in (*_OF_A_TUNING, "alltoallv") if given.get(name)):
            raise InputError(f"--{name} needs a tuning, and {tuned} has thresholds", "Give the tuning, or leave it out")
        variables, note = thresholds_of_job(tuned, context.args, os.environ)
        if not quiet:
            _say(note)
        replace_by(context.args, (context.args, {**os.environ, **variables}))
    options = RunOptions.of(arguments)
    ready: ReadyRun | FirstRun
    listener = unheard if quiet else _say
    if options.auto:
        from colltune.session.application.auto_run import ready_auto

        ready = ready_auto(tuned, context.args, options, os.environ, listener)
    else:
        ready = ready_run(tuned, context.args, options, os.environ, listener)
    if isinstance(ready, ReadyRun) and not (ready.options.prove or ready.options.profile or ready.options.measures):
        replace_by(context.args, ready.started())
    done = ready.run(_say)
    unproven = done.proof is not None and not done.proof.proven
    raise typer.Exit(done.exit_code or (ExitCode.UNPROVEN if unproven else ExitCode.DONE))


def replace_by(command: Sequence[str], started: tuple[Sequence[str], Mapping[str, str]]) -> NoReturn:
    """Becomes what is ``started``, arguments and environment, so that signals and exit code are its own."""
    arguments, environment = started
    with on_os_error(f"cannot run {command[0]}", "Check the command after --"):
        os.execvpe(arguments[0], list(arguments), dict(environment))


def _say(text: str) -> None:
    echo(f"colltune: {text.rstrip('.')}.", err=True)
