"""`colltune run`: an application, with the tuned file in force."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from colltune.cli.console import echo
from colltune.cli.options import Tuned, Via
from colltune.core.errors import InputError

_PROVE = "--prove"
_PROFILE = "--profile"
_MEASURE = "--measure"
_SHARE = "--share"
_EXPLORE = "--explore"
_RISK = "--risk"
_VIA = "--via"
_PROVISIONAL = "--provisional"
_ALLTOALLV = "--alltoallv"
_STORE = "--store"
_QUIET = "--quiet"
_FLAGS = (_PROVE, _PROFILE, _PROVISIONAL, _MEASURE, _EXPLORE, _QUIET)
_VALUES = (_VIA, _SHARE, _RISK, _STORE)
_USUAL_SHARE, _USUAL_RISK = "5%", "0.1%"
# The exit code where the application succeeded and nothing proves that the tuning was in force.
_UNPROVEN = 3


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
    explore: Annotated[
        bool,
        typer.Option(
            _EXPLORE,
            help="Also try what the proof left open, in few calls (first: colltune verify --results --candidates), and"
            " switch off what is slower. Implies --via live.",
        ),
    ] = False,
    risk: Annotated[
        str, typer.Option(_RISK, help="With --explore: what that may cost of the run's time, as far as is known.")
    ] = _USUAL_RISK,
    quiet: Annotated[
        bool, typer.Option(_QUIET, help="Do not say at the start where the tuning changes nothing, or is defeated.")
    ] = False,
    via: Via = "file",
    alltoallv: Annotated[
        Path | None,
        typer.Option(
            _ALLTOALLV,
            help="Directory (or its table) of `tune alltoallv`, for MPI_Alltoallv; TUNED may then be left out.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            _STORE,
            help="With --measure: the store of the site, to which it adds what it measured. Default: COLLTUNE_STORE.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a command with a tuning in force: colltune run tuned/ -- mpiexec -n 4 ./app.

    Options stand before the directory, or between it and --. The exit code is the command's. MPICH from 5.0 on says
    itself which files it loaded; of others it is seen whether the files are opened on this node.
    """
    from colltune.session.application.measure_run import parse_risk, parse_share
    from colltune.session.application.run_application import RunOptions, alltoallv_alone, ready_run, unheard

    if alltoallv is not None and not tuned.is_dir():
        flags_of = {_PROVE: prove, _PROFILE: profile, _MEASURE: measure, _EXPLORE: explore, _PROVISIONAL: provisional}
        for flag in (flag for flag, is_given in flags_of.items() if is_given):
            raise InputError(
                f"{flag} says nothing of MPI_Alltoallv, and no other tuning is given",
                f"Give the directory of a tuning too, or leave {flag} out",
            )
        command = [str(tuned), *context.args]
        _replace_by(command, alltoallv_alone(command, alltoallv, os.environ))
    flags, values, command = _split(context.args)
    measure = measure or _MEASURE in flags
    options = RunOptions(
        prove=prove or _PROVE in flags,
        profile=profile or _PROFILE in flags,
        measure=measure,
        share=parse_share(values.get(_SHARE, share)) if measure else 0,
        explore=explore or _EXPLORE in flags,
        risk=parse_risk(values.get(_RISK, risk)),
        provisional=provisional or _PROVISIONAL in flags,
        via=values.get(_VIA, via),
        alltoallv=alltoallv,
        store=Path(values[_STORE]) if _STORE in values else store,
    )
    ready = ready_run(tuned, command, options, os.environ, unheard if quiet or _QUIET in flags else _say)
    if not options.watches:
        _replace_by(command, ready.started())
    done = ready.run(_say)
    raise typer.Exit(done.exit_code or (_UNPROVEN if done.proof is not None and not done.proof.proven else 0))


def _replace_by(command: Sequence[str], started: tuple[Sequence[str], Mapping[str, str]]) -> NoReturn:
    arguments, environment = started
    try:
        os.execvpe(arguments[0], list(arguments), dict(environment))
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror}", "Check the command after --") from error


def _say(text: str) -> None:
    echo(f"colltune: {text.rstrip('.')}.", err=True)


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
