"""`colltune run`: an application, with the tuned file in force."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from colltune.cli.options import Tuned, Via, say_left_out
from colltune.core.errors import InputError

_PROVE = "--prove"
_PROFILE = "--profile"
_VIA = "--via"
_PROVISIONAL = "--provisional"
_FLAGS = (_PROVE, _PROFILE, _PROVISIONAL)


def run(
    tuned: Tuned,
    context: typer.Context,
    prove: Annotated[
        bool,
        typer.Option(
            _PROVE,
            help="Say at the end whether the tuning was in force, and how many calls met a rule, by collective;"
            " exit code 3 if nothing proves it, or no call did.",
        ),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option(_PROFILE, help="Note the collective calls too, for the next `tune --profile TUNED`."),
    ] = False,
    provisional: Annotated[
        bool, typer.Option(_PROVISIONAL, help="Also use decisions that a job which was ended left unproven.")
    ] = False,
    via: Via = "file",
    alltoallv: Annotated[
        Path | None,
        typer.Option(
            help="Directory (or its table) of `tune alltoallv`, for MPI_Alltoallv; TUNED may then be left out."
        ),
    ] = None,
) -> None:
    """Run a command with a tuning in force: colltune run tuned/ -- mpiexec -n 4 ./app.

    --prove, --profile, --provisional and --via stand before the directory, or between it and --. The exit code is the
    command's. MPICH from 5.0 on says itself which files it loaded; of others it is seen whether the files are opened on
    this node.
    """
    from colltune.store.tuning import load_deployable

    if alltoallv is not None and not tuned.is_dir():
        from colltune.alltoallv.preload import with_alltoallv

        command = [str(tuned), *context.args]
        _replace_by(command, with_alltoallv(command, alltoallv, os.environ))
    flags, via_after, command = _split(context.args)
    prove, profile, via = prove or _PROVE in flags, profile or _PROFILE in flags, via_after or via
    if not command:
        raise InputError("there is no command to run", "Write: colltune run tuned/ -- mpiexec -n 4 ./app")
    tuning = load_deployable(tuned, provisional=provisional or _PROVISIONAL in flags)
    say_left_out(tuning.left_out)
    from colltune.deploy.application import put_in_force

    force = put_in_force(tuned, tuning, os.environ, via)
    unsure = force.require_mpi(command)
    if unsure:
        typer.echo(f"colltune: warning: {unsure}", err=True)
    record = None
    if profile:
        record, force = force.profiled()
    if prove:
        from colltune.prove.counting import Counting, begin_counting

        count = begin_counting(force.tuning, force.environment) if force.variables else Counting()
        force = force.telling(count.variables)
    arguments, environment = force.command(command), force.environment
    obstacles = [] if via == "live" else force.obstacles(command)
    for text in obstacles:
        typer.echo(f"colltune: warning: {text}", err=True)
    if alltoallv is not None:
        from colltune.alltoallv.preload import with_alltoallv

        arguments, environment = with_alltoallv(arguments, alltoallv, environment)
    if not prove and not profile:
        _replace_by(command, (arguments, environment))
    from colltune.cli.prove import report, run_and_prove, run_child

    if prove:
        try:
            code, proof = run_and_prove(arguments, environment, force.variables, force.tuning, count)
        finally:
            count.discard()
        code = report(code, proof, environment, force.tuning.rule_sets, obstacles)
    else:
        code = run_child(arguments, environment)
    if record is not None:
        from colltune.cli.profile import finish_profile

        finish_profile(record, command, f"{tuning.environment.mpi} {tuning.environment.mpi_version}")
    raise typer.Exit(code)


def _replace_by(command: Sequence[str], started: tuple[Sequence[str], Mapping[str, str]]) -> NoReturn:
    arguments, environment = started
    try:
        os.execvpe(arguments[0], list(arguments), dict(environment))
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror}", "Check the command after --") from error


def _split(arguments: Sequence[str]) -> tuple[set[str], str, list[str]]:
    """What follows the directory: the flags that are there, the value of --via or "", and the command."""
    rest, via = list(arguments), ""
    flags: set[str] = set()
    while rest and rest[0].partition("=")[0] in (*_FLAGS, _VIA):
        if rest[0] in _FLAGS:
            flags.add(rest.pop(0))
        elif "=" in rest[0]:
            via, rest = rest[0].partition("=")[2], rest[1:]
        else:
            via, rest = (rest[1] if len(rest) > 1 else "?"), rest[2:]
    return flags, via, rest[1:] if rest[:1] == ["--"] else rest
