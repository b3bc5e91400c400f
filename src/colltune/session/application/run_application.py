"""An application under a tuning: what its launcher gets, and what is found out while it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from colltune.core.errors import ColltuneError, InputError
from colltune.deploy.applied import AppliedTuning, put_in_force
from colltune.mpi.application import UNKNOWN, Application, application_of
from colltune.mpi.launch_line import other_binding
from colltune.session.application.measure_run import (
    Exploration,
    MeasuredRun,
    begin_measuring,
    gather_profile,
    parse_risk,
    parse_share,
)
from colltune.session.application.run_child import run_and_prove, run_child, weighed
from colltune.session.application.withdrawn import withdrawn_from, without_slower_rules
from colltune.session.arguments import RunArguments, complete
from colltune.session.own_settings import effect_lines
from colltune.store.earlier import GAIN_PAGE
from colltune.store.tuning import load_deployable

if TYPE_CHECKING:
    from colltune.prove.loaded import LoadEvidence
    from colltune.session.application_gain import ApplicationGain

Listener = Callable[[str], None]
# Percent of the blocks of calls with --auto that run by default at first, so that a rule that turned bad is seen.
_AUTO_SHARE = 1


def unheard(_text: str) -> None:
    """For who does not listen."""


@dataclass(frozen=True)
class RunOptions:
    """How to run an application under a tuning.

    ``prove``: find out whether the tuning was in force. ``profile``: note its collective calls. ``measure``: let
    ``share`` percent of its blocks of calls run by default at first, and compare; the way is then "live".
    ``auto``: the runs of the program tune it, at the cost of the part ``risk`` of their time at most.
    ``provisional``: use decisions that a job which was ended left unproven. ``via``: "file" or "live". ``alltoallv``:
    a directory of `tune alltoallv`, or its table, for MPI_Alltoallv.
    """

    prove: bool = False
    profile: bool = False
    measure: bool = False
    share: int = 5
    auto: bool = False
    risk: float = 1e-3
    provisional: bool = False
    via: str = "file"
    alltoallv: Path | None = None

    @classmethod
    def of(cls, arguments: RunArguments) -> RunOptions:
        """What a caller said. Raises InputError for what cannot be understood."""
        given = complete(RunArguments, arguments)
        return cls(
            given["prove"],
            given["profile"],
            given["measure"],
            parse_share(str(given["share"])) if given["measure"] else _AUTO_SHARE,
            given["auto"],
            parse_risk(str(given["risk"])),
            given["provisional"],
            given["via"],
            None if (table := given["alltoallv"]) is None else Path(table),
        )

    @property
    def way(self) -> str:
        """How the tuning gets into the application."""
        return "live" if self.measures else self.via

    @property
    def measures(self) -> bool:
        """Whether blocks of calls are compared in the application."""
        return self.measure or self.auto


@dataclass(frozen=True)
class RunOutcome:
    """What came of a run: the application's own ``exit_code`` (128 + the signal that ended it), and what was asked for.

    ``proof``: whether the tuning was in force. ``profile``: the file, for `tune --profile`. ``gains``: what the tuning
    was worth, one for each MPI job of the command; ``page`` has them by collective, size and communicator. None and
    empty where it was not asked for, or could not be had: a listener heard why.
    """

    exit_code: int
    proof: LoadEvidence | None = None
    profile: Path | None = None
    gains: tuple[ApplicationGain, ...] = ()
    page: Path | None = None


@dataclass(frozen=True)
class ReadyRun:
    """An application that can be started: its command and environment are seen to fit the tuning.

    ``obstacles``: what is known to keep the tuning from deciding, of which the listener heard. ``application``: what
    the command starts, where that matters. ``closing``: what is said of it at the end, where it is measured.
    """

    options: RunOptions
    given: Sequence[str]
    force: AppliedTuning
    obstacles: Sequence[str]
    exploration: Exploration | None = None
    application: Application = UNKNOWN
    closing: Callable[[ApplicationGain], Sequence[str]] | None = None

    def started(self, force: AppliedTuning | None = None) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command and the environment by which the application starts, under ``force`` in place of its own."""
        force = force or self.force
        arguments, environment = force.command(self.given), force.environment
        if self.options.alltoallv is None:
            return arguments, environment
        from colltune.alltoallv.interposed import with_alltoallv

        return with_alltoallv(arguments, self.options.alltoallv, environment)

    def run(self, listener: Listener = unheard) -> RunOutcome:
        """Runs it to its end; signals are handed on. ``listener`` hears at the end what was found, a sentence each."""
        force, record = self.force, None
        if self.options.profile:
            record, force = force.profiled(self.given)
        measured = None
        if self.options.measures:
            try:
                experiment = self.options.share, self.application, self.exploration
                measured = begin_measuring(force.directory, force.tuning, *experiment)
                force = force.exporting(measured.variables)
            except ColltuneError as error:
                listener(f"warning: nothing is measured: {error}")
        proof = None
        if self.options.prove:
            code, proof = self._proven(force)
            known = "the tuning was in force" if proof.proven else "it is not proven that the tuning was in force"
            listener(f"{'' if proof.proven else 'warning: '}{known}: {proof.text}")
        else:
            code = run_child(*self.started(force))
        profile = _gathered(record, self.given, force, listener) if record is not None else None
        gains, page = _measured(measured, listener, self.closing) if measured is not None else ((), None)
        if measured is not None and self.options.measure:
            from colltune.session.gain_text import whole_run_text

            lost = withdrawn_from(force.directory, force.tuning.environment, self.application)
            for gain in gains:
                listener(whole_run_text(gain, str(self.application), list(lost)))
        return RunOutcome(code, proof, profile, gains, page)

    def _proven(self, force: AppliedTuning) -> tuple[int, LoadEvidence]:
        from colltune.prove.in_run.matched_calls import Counting, begin_counting

        count = begin_counting(force.tuning, force.environment, self.given) if force.variables else Counting()
        force = force.exporting(count.variables)
        try:
            arguments, environment = self.started(force)
            code, proof = run_and_prove(arguments, environment, force.variables, force.tuning, count)
        finally:
            count.discard()
        return code, weighed(proof, environment, force.tuning.rule_sets, self.obstacles)


def ready_run(
    directory: Path, command: Sequence[str], options: RunOptions, environment: Mapping[str, str], listener: Listener
) -> ReadyRun:
    """``command``, ready to run under the tuning in ``directory``; ``listener`` hears of what is left out or unsure.

    Raises InputError for a directory without a tuning, and where the command would use another MPI than the one tuned.
    """
    if not command:
        raise InputError("there is no command to run", "Write: colltune run tuned/ -- mpiexec -n 4 ./app")
    application = Application(tuple(command))
    if options.measures:
        from colltune.session.site.runs import copied_if_shared

        directory = copied_if_shared(directory, listener)
    tuning = load_deployable(directory, provisional=options.provisional)
    if tuning.left_out:
        listener(left_out_text(tuning.left_out))
    force = put_in_force(directory, tuning, environment, options.way, command)
    if options.way == "live":
        application = application_of(command, force.environment)
        lost = withdrawn_from(directory, force.tuning.environment, application)
        force = without_slower_rules(force, lost, listener)
    unsure = force.check_mpi(command)
    obstacles = [] if options.way == "live" else force.obstacles(command)
    bound = other_binding(force.tuning.environment.launch_line, command, force.environment)
    warnings = [f"warning: {text}" for text in (unsure, bound) if text]
    for text in [*warnings, *effect_lines(force, command, obstacles)]:
        listener(text)
    return ReadyRun(options, command, force, obstacles, application=application)


def left_out_text(count: int) -> str:
    """That ``count`` provisional decisions are not used, and how to use or prove them."""
    from colltune.core.units import format_count

    what = f"{format_count(count, 'provisional decision')} {'is' if count == 1 else 'are'}"
    return (
        f"{what} left out: faster, and not proven before the job was ended; --provisional uses them, "
        "`colltune tune ... --resume` proves them"
    )


def _gathered(record: Path, command: Sequence[str], force: AppliedTuning, listener: Listener) -> Path | None:
    """The profile of what the ranks left; None, and its folder taken away again, where that is nothing."""
    made = force.tuning.environment
    try:
        gather_profile(record, command, f"{made.mpi} {made.mpi_version}")
    except InputError as error:
        listener(str(error))
        with contextlib.suppress(OSError):
            record.parent.rmdir()
        return None
    listener(f"the profile of this run is {record}")
    return record


def _measured(
    run: MeasuredRun, listener: Listener, closing: Callable[[ApplicationGain], Sequence[str]] | None
) -> tuple[tuple[ApplicationGain, ...], Path | None]:
    """What the tuning was worth, which is then kept in its directory, and the page of it."""
    from colltune.session.gain_text import gain_line, gain_page

    gains: tuple[ApplicationGain, ...] = ()
    try:
        gains = tuple(run.finish())
        if not gains:
            listener("nothing was measured: no rank left anything. The program must call MPI_Init and MPI_Finalize")
        for gain in gains:
            for text in [gain_line(gain)] if closing is None else closing(gain):
                listener(text)
        if any(gain.cells for gain in gains):
            page = run.keep(gains).with_name(GAIN_PAGE)
            page.write_text("\n".join(line for gain in gains for line in [*gain_page(gain), ""]), encoding="utf-8")
            if closing is None:
                listener(f"by collective, size and communicator: {page}")
            return gains, page
    except ColltuneError as error:
        listener(f"what the tuning was worth is not known: {error}")
    except OSError as error:
        listener(f"cannot write {error.filename}: {error.strerror}")
    return gains, None
