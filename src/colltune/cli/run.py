"""`colltune run`: an application, with the tuned file in force."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperOption

from colltune.cli.console import echo
from colltune.cli.options import Tuned, Via
from colltune.core.errors import InputError, on_os_error

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
_USUAL_SHARE, _USUAL_RISK = "5%", "0.1%"
# The exit code where the application succeeded and nothing proves that the tuning was in force.
_UNPROVEN = 3


class RunCommand(TyperCommand):
    """Takes its options before the directory, and between it and the command; ``--measure=10%`` has its share too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = list(args)
        options = self._taken(rest, unknown=True)
        if rest and rest[0] != "--":
            place = rest.pop(0)
            options += self._taken(rest, unknown=False)
            rest = [place, *(rest[1:] if rest[:1] == ["--"] else rest)]
        return super().parse_args(ctx, [*options, *rest])

    def _taken(self, rest: list[str], *, unknown: bool) -> list[str]:
        """The options at the beginning of ``rest``, which loses them; with ``unknown`` what only looks like one too."""
        known = {name: option for option in self.params if isinstance(option, TyperOption) for name in option.opts}
        taken: list[str] = []
        while rest and rest[0].startswith("-") and rest[0] != "--":
            name, equals, value = rest[0].partition("=")
            if name not in known and not unknown:
                break
            word = rest.pop(0)
            if name == _MEASURE and equals:
                taken += [_MEASURE, _SHARE, value]
            else:
                valued = name in known and not known[name].is_flag and not equals
                if valued and not rest:
                    raise InputError(f"{name} has no value", "See colltune run --help")
                taken += [word, *([rest.pop(0)] if valued else [])]
        return taken


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
    options = RunOptions(
        prove=prove,
        profile=profile,
        measure=measure,
        share=parse_share(share) if measure else 0,
        explore=explore,
        risk=parse_risk(risk),
        provisional=provisional,
        via=via,
        alltoallv=alltoallv,
        store=store,
    )
    ready = ready_run(tuned, context.args, options, os.environ, unheard if quiet else _say)
    if not options.watches:
        _replace_by(context.args, ready.started())
    done = ready.run(_say)
    raise typer.Exit(done.exit_code or (_UNPROVEN if done.proof is not None and not done.proof.proven else 0))


def _replace_by(command: Sequence[str], started: tuple[Sequence[str], Mapping[str, str]]) -> NoReturn:
    arguments, environment = started
    with on_os_error(f"cannot run {command[0]}", "Check the command after --"):
        os.execvpe(arguments[0], list(arguments), dict(environment))


def _say(text: str) -> None:
    echo(f"colltune: {text.rstrip('.')}.", err=True)
