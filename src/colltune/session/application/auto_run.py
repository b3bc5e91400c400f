"""`colltune run --auto`: the runs of a program tune it, with a directory as their memory, and no step between them.

The first run records what the program calls; at its end the choices for its costly calls are checked for wrong results.
Each later run has those rules in force that earlier runs found faster, and tries one more choice for each kind of call
that is still open (`prove/in_run/in_application.py`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from colltune.core.errors import ColltuneError, InputError
from colltune.core.sample import DEFAULT
from colltune.core.units import format_count, format_duration
from colltune.deploy.applied import put_in_force
from colltune.deploy.explored import CallKind, Candidates, default_at, load_candidates, tables, with_candidates
from colltune.emit.live_rules import live_numbers
from colltune.machine.command_lines import colltune_command
from colltune.mpi.application import Application, application_of
from colltune.prove.in_run.in_application import NextRun, expected, next_run, standings
from colltune.session.application.measure_run import Exploration
from colltune.session.application.run_application import (
    Listener,
    ReadyRun,
    RunOptions,
    RunOutcome,
    ready_run,
)
from colltune.session.gain_text import call_text, run_text
from colltune.store.applications import RUN, ApplicationRun, application_runs
from colltune.store.earlier import PROFILE, entries, new_entry
from colltune.store.tuning import MANIFEST, Tuning, load_deployable

if TYPE_CHECKING:
    from colltune.session.application_gain import ApplicationGain


@dataclass(frozen=True)
class FirstRun:
    """The run of ``command`` that records its calls, by the library's own choices.

    ``exit_code`` and output are the program's own.
    """

    directory: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    application: Application

    def run(self, listener: Listener) -> RunOutcome:
        """Also finds what later runs may try, unless the program failed; ``listener`` hears, a sentence each."""
        from colltune.session.application.calls_to_try import prepare
        from colltune.session.application.measure_run import profile_run

        number, place = _number_of_next(self.directory), new_entry(self.directory, time.time()) / PROFILE
        done = profile_run(self.command, place, self.environment)
        if done.profile is None or done.exit_code != 0 or done.profile.ended:
            why = done.why_none or f"the program ended with exit code {done.exit_code}"
            listener(f"nothing is tried yet, and the next run records its calls again: {why}")
            place.unlink(missing_ok=True)
            place.parent.rmdir()
            return RunOutcome(done.exit_code)
        if done.profile.threads_multiple:
            listener(
                "the program asks for MPI_THREAD_MULTIPLE (Python's mpi4py does, unless mpi4py.rc.thread_level is"
                f" 'single'), so its runs try nothing; use: {colltune_command('tune', '--profile', place)}"
            )
            return RunOutcome(done.exit_code, profile=place)
        began_s = time.monotonic()
        try:
            found = prepare(self.directory, done.profile, self.application)
        except ColltuneError as error:
            listener(f"nothing is tried, for what may be tried could not be found: {error}")
            return RunOutcome(done.exit_code, profile=place)
        for note in found.notes:
            listener(note)
        text = f"nothing is tried: {found.why_none}"
        if found.kinds:
            text = (
                f"{format_count(len(found.kinds), 'kind')} of its calls can be tuned and take {found.share:.1%} of its"
                " time. The next runs try faster algorithms in them. Checking that these give right results took"
                f" {format_duration(time.monotonic() - began_s)} after the program's end"
            )
        listener(f"run {number}: recorded what the program calls; {text}")
        return RunOutcome(done.exit_code, profile=place)


@dataclass(frozen=True)
class _Memory:
    """What ``directory`` knows of ``application``."""

    directory: Path
    application: Application
    tuning: Tuning
    candidates: Candidates

    def runs(self) -> list[ApplicationRun]:
        """Those of the application in the same environment, the latest first."""
        return [
            run
            for run in application_runs(self.directory)
            if run.record.application.is_same(self.application) and run.record.environment == self.tuning.environment
        ]

    def next_run(self, runs: Sequence[ApplicationRun]) -> NextRun:
        live = self.tuning.live or {}
        return next_run(self.candidates.kinds, lambda kind: default_at(live, kind), standings(runs))


def _number_of_next(directory: Path) -> int:
    """Of the run that begins next with ``directory`` as its memory, from 1."""
    return 1 + sum(1 for entry in entries(directory) if (entry / RUN).exists() or (entry / PROFILE).exists())


def ready_auto(
    directory: Path, command: Sequence[str], options: RunOptions, environment: Mapping[str, str], listener: Listener
) -> ReadyRun | FirstRun:
    """``command``, ready for its first run or a later one, with ``directory`` as the memory of its runs.

    Raises InputError where the command would use another MPI than earlier runs.
    """
    if not command:
        raise InputError("there is no command to run", "Write: colltune run --auto tuned/ -- mpiexec -n 4 ./app")
    application, candidates = application_of(command, environment), None
    try:
        candidates = load_candidates(directory)
    except InputError as error:
        listener(f"{error.what}; its calls are recorded again")
    if candidates is None or not candidates.application.is_same(application) or not (directory / MANIFEST).exists():
        return FirstRun(directory, command, environment, application)
    from colltune.session.site.runs import copied_if_released

    directory = copied_if_released(directory, listener)
    memory = _Memory(directory, application, load_deployable(directory), candidates)
    if candidates.mpi_build != memory.tuning.environment.mpi_build:  # it was tuned anew, with another MPI
        return FirstRun(directory, command, environment, application)
    runs = memory.runs()
    plan, number = memory.next_run(runs), _number_of_next(directory)
    if not plan.tried and not set(plan.in_force.values()) - {DEFAULT}:
        text = "no choice that was tried is surely faster than the library's own in what this program calls"
        kept = any(rules.departs for rules in (memory.tuning.live or {}).values())
        text = f"nothing is tried: {candidates.why_none}" if candidates.why_none else text
        what = "proven" if memory.tuning.summary.prediction is None else "predicted"
        text += f"; the {what} rules of {directory} decide the calls that they are for" if kept else ""
        listener(text)  # without a number: such a run leaves no record
        return ready_run(directory, command, RunOptions(via="live"), environment, listener)
    force = put_in_force(directory, memory.tuning, environment, "live", command)
    in_force = tables(memory.tuning.live or {}, plan.in_force)
    tried = tables({}, plan.tried)
    force = with_candidates(force, candidates, list(in_force.values()), list(tried.values()))
    if unsure := force.check_mpi(command):
        listener(f"warning: {unsure}")
    exploration = Exploration(live_numbers(candidates.text), options.risk, expected(runs))

    def closing(gain: "ApplicationGain") -> list[str]:
        return [run_text(number, gain, _changes(plan, memory.next_run(memory.runs())))]

    return ReadyRun(options, command, force, (), exploration, application, closing)


def _changes(before: NextRun, after: NextRun) -> str:
    """How many kinds of calls are open after a run, and which rules come into force or leave by it."""
    came = [kind for kind, choice in after.in_force.items() if choice not in (DEFAULT, before.in_force.get(kind))]
    left = [kind for kind, choice in before.in_force.items() if choice not in (DEFAULT, after.in_force.get(kind))]
    texts = [
        f"{format_count(len(after.tried), 'kind')} of calls still open" if after.tried else "nothing is left to try"
    ]
    for title, kinds, of in (("from the next run on", came, after), ("no longer used", left, before)):
        if kinds:
            texts.append(f"{title}: " + ", ".join(_text(kind, of) for kind in kinds))
    return "; ".join(texts)


def _text(kind: CallKind, plan: NextRun) -> str:
    return f"{call_text(kind.collective, kind.size.low, kind.size.high)} by {plan.in_force[kind]}"
