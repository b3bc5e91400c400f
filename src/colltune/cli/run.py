"""`colltune run`: an application, with the tuned file in force."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from colltune.cli.options import Tuned, Via, say_left_out
from colltune.core.errors import InputError

if TYPE_CHECKING:
    from colltune.deploy.application import InForce

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
    from colltune.deploy.application import put_in_force
    from colltune.store.tuning import load_deployable

    if alltoallv is not None and not tuned.is_dir():
        _replace_by_alltoallv_alone([str(tuned), *context.args], alltoallv)
    asked = _Asked(prove, profile, provisional, via).with_those_in(context.args)
    if not asked.command:
        raise InputError("there is no command to run", "Write: colltune run tuned/ -- mpiexec -n 4 ./app")
    tuning = load_deployable(tuned, provisional=asked.provisional)
    say_left_out(tuning.left_out)
    force = put_in_force(tuned, tuning, os.environ, asked.via)
    unsure = force.require_mpi(asked.command)
    obstacles = [] if asked.via == "live" else force.obstacles(asked.command)
    for text in ([unsure] if unsure else []) + obstacles:
        typer.echo(f"colltune: warning: {text}", err=True)
    if not asked.prove and not asked.profile:
        _replace_by(asked.command, _started(force, asked.command, alltoallv))
    raise typer.Exit(_watched(asked, force, alltoallv, obstacles))


@dataclass(frozen=True)
class _Asked:
    """How to run ``command``: proven, profiled, with what is provisional, and by which way the tuning is loaded."""

    prove: bool
    profile: bool
    provisional: bool
    via: str
    command: Sequence[str] = ()

    def with_those_in(self, arguments: Sequence[str]) -> _Asked:
        """This with what ``arguments``, those after the directory, ask for: options, and the command."""
        flags, via, command = _split(arguments)
        return _Asked(
            self.prove or _PROVE in flags,
            self.profile or _PROFILE in flags,
            self.provisional or _PROVISIONAL in flags,
            via or self.via,
            command,
        )


def _started(force: InForce, command: Sequence[str], alltoallv: Path | None) -> tuple[Sequence[str], Mapping[str, str]]:
    """The command and the environment to start, with ``alltoallv`` for MPI_Alltoallv, if it is given."""
    arguments, environment = force.command(command), force.environment
    if alltoallv is None:
        return arguments, environment
    from colltune.alltoallv.preload import with_alltoallv

    return with_alltoallv(arguments, alltoallv, environment)


def _watched(asked: _Asked, force: InForce, alltoallv: Path | None, obstacles: Sequence[str]) -> int:
    """Runs the command to its end, profiled and proven as ``asked``; the exit code of `colltune run`."""
    from colltune.cli.prove import run_child

    record = None
    if asked.profile:
        record, force = force.profiled()
    if asked.prove:
        code = _proven(asked.command, force, alltoallv, obstacles)
    else:
        code = run_child(*_started(force, asked.command, alltoallv))
    if record is not None:
        from colltune.cli.profile import finish_profile

        made = force.tuning.environment
        finish_profile(record, asked.command, f"{made.mpi} {made.mpi_version}")
    return code


def _proven(command: Sequence[str], force: InForce, alltoallv: Path | None, obstacles: Sequence[str]) -> int:
    """Runs the command to its end, and says whether the tuning was in force, and how many calls met a rule."""
    from colltune.cli.prove import report, run_and_prove
    from colltune.prove.counting import Counting, begin_counting

    count = begin_counting(force.tuning, force.environment) if force.variables else Counting()
    force = force.telling(count.variables)
    try:
        arguments, environment = _started(force, command, alltoallv)
        code, proof = run_and_prove(arguments, environment, force.variables, force.tuning, count)
    finally:
        count.discard()
    return report(code, proof, environment, force.tuning.rule_sets, obstacles)


def _replace_by_alltoallv_alone(command: Sequence[str], table: Path) -> NoReturn:
    from colltune.alltoallv.preload import with_alltoallv

    _replace_by(command, with_alltoallv(command, table, os.environ))


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
