"""`colltune run`: an application, with the tuned file in force."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from colltune.cli.options import Tuned, Via, say_left_out
from colltune.core.errors import InputError

if TYPE_CHECKING:
    from colltune.deploy.application import InForce

_PROVE = "--prove"
_PROFILE = "--profile"
_MEASURE = "--measure"
_SHARE = "--share"
_VIA = "--via"
_PROVISIONAL = "--provisional"
_ALLTOALLV = "--alltoallv"
_FLAGS = (_PROVE, _PROFILE, _PROVISIONAL, _MEASURE)
_VALUES = (_VIA, _SHARE)
_USUAL_SHARE = "5%"


class RunCommand(TyperCommand):
    """`--measure=10%` before the directory is `--measure --share 10%`, as it is behind it (``_split``)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        before, rest = list[str](), list(args)
        while rest and rest[0].startswith("-") and rest[0] != "--":
            word = rest.pop(0)
            if word.startswith(f"{_MEASURE}="):
                before += [_MEASURE, _SHARE, word.partition("=")[2]]
            else:
                before += [word, *([rest.pop(0)] if word in (*_VALUES, _ALLTOALLV) and rest else [])]
        return super().parse_args(ctx, [*before, *rest])


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
    measure: Annotated[
        bool,
        typer.Option(
            _MEASURE,
            help="Measure in the application itself what the tuning is worth: a share of its calls runs by default."
            " Implies --via live.",
        ),
    ] = False,
    share: Annotated[str, typer.Option(_SHARE, help="With --measure: that share, 1% to 50%.")] = _USUAL_SHARE,
    via: Via = "file",
    alltoallv: Annotated[
        Path | None,
        typer.Option(
            _ALLTOALLV,
            help="Directory (or its table) of `tune alltoallv`, for MPI_Alltoallv; TUNED may then be left out.",
        ),
    ] = None,
) -> None:
    """Run a command with a tuning in force: colltune run tuned/ -- mpiexec -n 4 ./app.

    Options stand before the directory, or between it and --. The exit code is the command's. MPICH from 5.0 on says
    itself which files it loaded; of others it is seen whether the files are opened on this node.
    """
    from colltune.deploy.application import put_in_force
    from colltune.store.tuning import load_deployable

    if alltoallv is not None and not tuned.is_dir():
        _replace_by_alltoallv_alone([str(tuned), *context.args], alltoallv)
    asked = _Asked(prove, profile, provisional, measure, share, via).with_those_in(context.args)
    if not asked.command:
        raise InputError("there is no command to run", "Write: colltune run tuned/ -- mpiexec -n 4 ./app")
    tuning = load_deployable(tuned, provisional=asked.provisional)
    say_left_out(tuning.left_out)
    force = put_in_force(tuned, tuning, os.environ, asked.via)
    unsure = force.require_mpi(asked.command)
    obstacles = [] if asked.via == "live" else force.obstacles(asked.command)
    for text in ([unsure] if unsure else []) + obstacles:
        typer.echo(f"colltune: warning: {text}", err=True)
    if not asked.prove and not asked.profile and not asked.measure:
        _replace_by(asked.command, _started(force, asked.command, alltoallv))
    raise typer.Exit(_watched(asked, force, alltoallv, obstacles))


@dataclass(frozen=True)
class _Asked:
    """How to run ``command``: proven, profiled, with what is provisional, measured with which share of its calls by
    default, and by which way the tuning is loaded."""

    prove: bool
    profile: bool
    provisional: bool
    measure: bool
    share: str
    via: str
    command: Sequence[str] = ()

    def with_those_in(self, arguments: Sequence[str]) -> _Asked:
        """This with what ``arguments``, those after the directory, ask for: options, and the command."""
        flags, values, command = _split(arguments)
        measure = self.measure or _MEASURE in flags
        return _Asked(
            self.prove or _PROVE in flags,
            self.profile or _PROFILE in flags,
            self.provisional or _PROVISIONAL in flags,
            measure,
            values.get(_SHARE, self.share),
            "live" if measure else values.get(_VIA, self.via),
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
    measured = None
    if asked.measure:
        from colltune.cli.measured import Measured

        measured = Measured.begin(force, asked.share, asked.command)
        force = measured.force if measured is not None else force
    if asked.prove:
        code = _proven(asked.command, force, alltoallv, obstacles)
    else:
        code = run_child(*_started(force, asked.command, alltoallv))
    if record is not None:
        from colltune.cli.profile import finish_profile

        made = force.tuning.environment
        finish_profile(record, asked.command, f"{made.mpi} {made.mpi_version}")
    if measured is not None:
        measured.finish()
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


def _split(arguments: Sequence[str]) -> tuple[set[str], dict[str, str], list[str]]:
    """What follows the directory: the flags and the options with values that are there, and the command.

    ``--measure=10%`` is ``--measure --share 10%``.
    """
    rest = list(arguments)
    flags: set[str] = set()
    values: dict[str, str] = {}
    while rest and (name := rest[0].partition("=")[0]) in (*_FLAGS, *_VALUES):
        if rest[0] in _FLAGS:
            flags.add(rest.pop(0))
        elif name == _MEASURE:
            flags.add(name)
            values[_SHARE] = rest.pop(0).partition("=")[2]
        elif "=" in rest[0]:
            values[name] = rest.pop(0).partition("=")[2]
        else:
            values[name], rest = (rest[1] if len(rest) > 1 else "?"), rest[2:]
    return flags, values, rest[1:] if rest[:1] == ["--"] else rest
