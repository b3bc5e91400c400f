"""`colltune run --auto`: the runs of a program tune it, with a directory as their memory, and no step between them.

The first run records what the program calls; at its end the calls that cost most, and the choices that may be tried in
them, are found, and every choice passes the conformance check on the job of the program. Each later run has those rules
in force that earlier runs found faster, and tries one more choice for each kind of call that is still open
(`prove/in_run/in_application.py`). In a directory of `colltune predict` what was predicted is tried first, and
confirmed or withdrawn by what the runs measure.
"""

import math
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench, require_tuned
from colltune.catalog import Catalogue
from colltune.core.errors import ColltuneError, InputError
from colltune.core.rules import RuleSet, Span
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.core.switchback import Where
from colltune.core.units import format_count, format_duration
from colltune.deploy.applied import put_in_force
from colltune.deploy.explored import (
    CallKind,
    Candidates,
    default_at,
    load_candidates,
    save_candidates,
    size_class,
    tables,
    with_candidates,
)
from colltune.deploy.live_selector import by_selector_alone, with_live
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter, live_basis, live_numbers
from colltune.judge.evidence import ALPHA
from colltune.machine.command_lines import colltune_command
from colltune.mpi.application import Application, application_of
from colltune.mpi.detect import ask_flux, mpi_at_hand
from colltune.mpi.job import find_job
from colltune.mpi.launch_line import host_file_of
from colltune.predict.model import TimesModel, load_model
from colltune.profile.application_profile import Profile
from colltune.prove.in_run.earned import accounts, resting
from colltune.prove.in_run.in_application import NextRun, expected, in_calls, next_run, standings
from colltune.prove.replay.on_workbench import UncheckedError, make_safe, non_default
from colltune.session.application.measure_run import Exploration, profile_run
from colltune.session.application.run_application import Listener, ReadyRun, RunOptions, RunOutcome, ready_run
from colltune.session.gain_text import changes_text, choice_text, run_text
from colltune.session.tuning.payoff import machine_like
from colltune.store.applications import RUN, ApplicationRun, application_runs
from colltune.store.earlier import PROFILE, entries, new_entry
from colltune.store.tuning import MANIFEST, Tuning, load_deployable, save_tuning

if TYPE_CHECKING:
    from colltune.session.application_gain import ApplicationGain


# Below this share of the program's time not even the fastest choice would be felt, and fewer calls than this hold no
# pair of blocks behind the first calls of a run.
_LEAST_SHARE, _FEWEST_CALLS = 0.002, 16
_MOST_KINDS, _MOST_CHOICES = 32, 6


@dataclass(frozen=True)
class Prepared:
    """``notes``: what may not be tried, a line each. ``why_none``: the reason where there are no kinds."""

    kinds: tuple[CallKind, ...]
    notes: tuple[str, ...]
    why_none: str = ""


def prepare(directory: Path, profile: Profile, application: Application) -> Prepared:
    """Finds what later runs may try, and keeps it in ``directory``, with a tuning of no rule where there is none.

    Raises ColltuneError where the job of the program cannot be opened, and where its library fails by itself.
    """
    bench = _bench_of(profile)
    predicted: Mapping[str, RuleSet] = {}
    if (directory / MANIFEST).exists():
        tuning = load_deployable(directory)
        require_tuned(bench, tuning.environment)
        if tuning.summary.prediction is not None:
            predicted = tuning.rule_sets
            if tuning.live is None:  # none of its rules is in force before a run has found it faster
                save_tuning(directory, tuning := with_live(bench, tuning, {}))
    else:
        names = sorted({row.collective for row, _ in profile.tunable()})
        default = {name: RuleSet.always(name, live_basis(bench.catalogue, name)) for name in names}
        tuning = with_live(bench, Tuning(bench.environment, default, {}, {}), {})
        save_tuning(directory, tuning)
    model = load_model()
    kinds = [_with_choices(bench, model, predicted, *kind_and_calls) for kind_and_calls in costly(profile, bench)]
    emitter = LiveEmitter(bench.catalogue, bench.settings)
    checked, notes = _safe(bench, tuning, [kind for kind in kinds if kind.choices], directory)
    safe = [kind for kind in checked if kind.choices]
    why_none = "" if safe else why_none_is_tried(profile, bench.catalogue, kinds)
    layers = [table for layer in _layers(safe) for table in layer.values()]
    text = emitter.emit([*(tuning.live or {}).values(), *layers])[LIVE_FILE].decode("ascii")
    save_candidates(directory, Candidates(application, bench.environment.mpi_build, tuple(safe), text, why_none))
    return Prepared(tuple(safe), tuple(notes), why_none)


def why_none_is_tried(profile: Profile, catalogue: Catalogue, kinds: Sequence[CallKind]) -> str:
    """What keeps most of the time in calls that can be tuned from being tried, where nothing is."""
    if kinds:
        return "no other algorithm gives right results in the calls that take its time"
    calls = [row for row, _ in profile.tunable() if catalogue.collective(row.collective).nothing_to_tune is None]
    share, of_few, of_uneven = (
        sum(row.time_s for row in some) / max(profile.core_s, 1e-12)
        for some in (
            calls,
            [call for call in calls if call.communicator.even and call.calls < _FEWEST_CALLS],
            [call for call in calls if not call.communicator.even],
        )
    )
    text = f"calls that can be tuned take {share:.1%} of its time"
    if max(of_few, of_uneven) < _LEAST_SHARE:
        return f"{text}, and no kind of call {_LEAST_SHARE:.1%} of it"
    if of_uneven > of_few:
        return (
            f"{text}, most of it on communicators with different numbers of ranks on their nodes: no rule is for these"
        )
    return (
        f"{text}, most of it in kinds of calls that a run makes fewer than {_FEWEST_CALLS} times: too few to try one."
        " `colltune profile` and then `colltune tune --profile` measure such calls in launches of their own"
    )


def _bench_of(profile: Profile) -> Workbench:
    """The program's MPI on the program's job."""
    command, environ = profile.command, os.environ
    mpiexec = str(mpi_at_hand(command, environ).mpiexec)
    job = find_job(environ, host_file=host_file_of(command), flux_resources=ask_flux(environ))
    machine = MachineOptions(mpiexec, host_file_of(command))
    bench = open_workbench(machine_like(profile, machine, "", job), environ)
    if bench.nodes < profile.nodes:
        raise InputError(
            f"the program ran on {profile.nodes} nodes, of which {len(job.nodes)} are known",
            "Name them in a file, by the option of mpiexec for that, or run inside a job of a scheduler",
        )
    return bench


def costly(profile: Profile, bench: Workbench) -> list[tuple[CallKind, list[Scenario]]]:
    """The kinds of calls that cost most, the most costly first, with no choices yet, and what stands for each."""
    kinds: dict[Where, CallKind] = {}
    stand: defaultdict[Where, set[Scenario]] = defaultdict(set)
    alike = dict(profile.communicators)
    for row, scenarios in profile.tunable():
        untunable = bench.catalogue.collective(row.collective).nothing_to_tune is not None
        if row.calls < _FEWEST_CALLS or not row.communicator.even or untunable:
            continue
        basis = live_basis(bench.catalogue, row.collective)
        part_s = row.time_s / len(scenarios)
        for scenario in scenarios:
            bits = scenario.basis_bytes(basis).bit_length()
            size = Span(0, None) if basis is SizeBasis.NONE else size_class(bits)
            new = CallKind(row.collective, basis, scenario.nodes, scenario.ppn, size, 0.0, 0.0, 0.0, 1, ())
            kind = kinds.get(new.where, new)
            kinds[kind.where] = replace(
                kind,
                share=kind.share + part_s / max(profile.core_s, 1e-12),
                calls=kind.calls + row.calls / len(scenarios),
                time_s=kind.time_s + part_s * row.calls / row.rank_calls,
                communicators=max(kind.communicators, math.ceil(alike.get(row.communicator, 1.0))),
            )
            stand[kind.where].add(scenario)
    ordered = sorted(kinds.values(), key=lambda kind: -kind.share)[:_MOST_KINDS]
    return [(kind, sorted(stand[kind.where])) for kind in ordered if kind.share >= _LEAST_SHARE]


def _with_choices(
    bench: Workbench,
    model: TimesModel,
    predicted: Mapping[str, RuleSet],
    kind: CallKind,
    scenarios: Sequence[Scenario],
) -> CallKind:
    own = {DEFAULT, *(bench.baseline(scenario) for scenario in scenarios)}
    legal = [choice for choice in bench.legal(scenarios[0]) if choice not in own]
    legal = [choice for choice in legal if all(choice in bench.legal(scenario) for scenario in scenarios[1:])]
    decided = (RuleSet.decided(predicted, scenario) for scenario in scenarios)
    chosen = next((choice for choice in decided if choice in legal), DEFAULT)
    ordered = sorted(_by_promise(model, scenarios[-1], legal), key=lambda choice: choice != chosen)
    return replace(kind, choices=tuple(ordered[:_MOST_CHOICES]), predicted=chosen)


def _by_promise(model: TimesModel, scenario: Scenario, choices: Sequence[Choice]) -> list[Choice]:
    """``choices`` in the order of their times on other clusters; those that nobody knows last, as the catalogue has
    them."""
    if not choices or not model.knows(scenario.collective):
        return list(choices)
    log_time = model.of(scenario.collective).predict([(scenario, choice) for choice in choices]).log_time
    return [choices[place] for place in np.argsort(log_time, kind="stable")]  # which has NaN last


def _layers(kinds: Sequence[CallKind]) -> list[Mapping[str, RuleSet]]:
    """Rules of all the first choices of ``kinds``, of all the second ones, and so on."""
    return [
        tables({}, {kind: kind.choices[place] for kind in kinds if place < len(kind.choices)})
        for place in range(max((len(kind.choices) for kind in kinds), default=0))
    ]


def _safe(
    bench: Workbench, tuning: Tuning, kinds: Sequence[CallKind], directory: Path
) -> tuple[list[CallKind], list[str]]:
    """``kinds`` without the choices that give wrong results, and what was found, a line each; ``directory`` is one
    that all nodes see."""

    def alone(rule_sets: Mapping[str, RuleSet]) -> Tuning:
        return by_selector_alone(bench, tuning, rule_sets, os.environ)

    counts = sorted({kind.nodes * kind.ppn for kind in kinds})
    right: defaultdict[int, list[Choice]] = defaultdict(list)
    notes: list[str] = []
    for place, rule_sets in enumerate(_layers(kinds)):
        try:
            with tempfile.TemporaryDirectory(dir=directory) as workplace:
                checked, reasons = make_safe(bench, alone(rule_sets), Path(workplace), alone, counts)
        except UncheckedError as error:
            notes.append(f"{error.what}; what was not checked is not tried")
            continue
        notes += reasons
        for number, kind in enumerate(kinds):
            if kind.collective in non_default(checked.rule_sets) and place < len(kind.choices):
                right[number].append(kind.choices[place])
    checked_kinds = [
        replace(kind, choices=tuple(some), predicted=kind.predicted if kind.predicted in some else DEFAULT)
        for kind, some in zip(kinds, (right[number] for number in range(len(kinds))), strict=True)
    ]
    return checked_kinds, notes


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
            ready = prepare(self.directory, done.profile, self.application)
        except ColltuneError as error:
            listener(f"nothing is tried, for what may be tried could not be found: {error}")
            return RunOutcome(done.exit_code, profile=place)
        for note in ready.notes:
            listener(note)
        text = f"nothing is tried: {ready.why_none}"
        if ready.kinds:
            share = sum(kind.share for kind in ready.kinds)
            text = (
                f"{format_count(len(ready.kinds), 'kind')} of its calls can be tuned and take {share:.1%} of"
                f" its time. The next runs try faster algorithms in them{_predicted_text(ready.kinds)}. Checking that"
                f" these give right results took {format_duration(time.monotonic() - began_s)} after the program's end"
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
        """The choices of a kind share the error: of all that runs bring into force 1 of 100 kinds may be wrong."""
        live, judged = self.tuning.live or {}, standings(runs, ALPHA / _MOST_CHOICES)
        return next_run(self.candidates.kinds, lambda kind: default_at(live, kind), judged, expected(runs, in_calls))

    def exploration(self, plan: NextRun, runs: Sequence[ApplicationRun], risk: float) -> tuple[Exploration, int]:
        """What the ranks are told of a run with this ``plan``, and how many such runs earn what the first try costs."""
        ratios, known, waits = expected(runs), {}, [0]
        for kind, account in accounts(runs, plan.tried).items():
            key = kind.where, plan.tried[kind]
            known[key] = account.words(ratios.get(key))
            waits.append(account.runs_until(ratios.get(key), risk))
        in_force = {
            kind: choice  # what was predicted is compared until it is confirmed or withdrawn
            for kind, choice in plan.in_force.items()
            if choice != DEFAULT and (choice != kind.predicted or kind in plan.confirmed)
        }
        still = {(kind.where, in_force[kind]) for kind in resting(runs, in_force)}
        return Exploration(live_numbers(self.candidates.text), risk, known, still), min(waits[1:] or waits)


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
    from colltune.session.site.runs import copied_if_shared

    directory = copied_if_shared(directory, listener)
    application, candidates = application_of(command, environment), None
    try:
        candidates = load_candidates(directory)
    except InputError as error:
        listener(f"{error.what}; its calls are recorded again")
    if candidates is None or not candidates.application.is_same(application) or not (directory / MANIFEST).exists():
        return FirstRun(directory, command, environment, application)
    memory = _Memory(directory, application, load_deployable(directory), candidates)
    if candidates.mpi_build != memory.tuning.environment.mpi_build:  # it was tuned anew, with another MPI
        return FirstRun(directory, command, environment, application)
    runs = memory.runs()
    plan, number = memory.next_run(runs), _number_of_next(directory)
    if not plan.tried and not set(plan.in_force.values()) - {DEFAULT}:
        text = "no choice that was tried is surely faster than the library's own in what this program calls"
        kept = any(rules.departs for rules in (memory.tuning.live or {}).values())
        text = f"nothing is tried: {candidates.why_none}" if candidates.why_none else text
        text += f"; the proven rules of {directory} decide the calls that they are for" if kept else ""
        listener(text)  # without a number: such a run leaves no record
        return ready_run(directory, command, RunOptions(via="live"), environment, listener)
    force = put_in_force(directory, memory.tuning, environment, "live", command)
    in_force = tables(memory.tuning.live or {}, plan.in_force)
    tried = tables({}, plan.tried)
    force = with_candidates(force, candidates, list(in_force.values()), list(tried.values()))
    if unsure := force.check_mpi(command):
        listener(f"warning: {unsure}")
    exploration, waits = memory.exploration(plan, runs, options.risk)

    def closing(gain: "ApplicationGain") -> list[str]:
        changes = changes_text(plan, memory.next_run(memory.runs()))
        if waits > 1 and not gain.tried:
            changes += f"; about {waits - 1:,} more runs have to earn what the next try may cost"
        in_force = [choice for choice in plan.in_force.values() if choice != DEFAULT]
        return [run_text(number, gain, len(in_force), changes)]

    return ReadyRun(options, command, force, (), exploration, application, closing)


def _predicted_text(kinds: Sequence[CallKind]) -> str:
    some = [choice_text(kind, kind.predicted) for kind in kinds if kind.predicted != DEFAULT]
    return f", what was predicted first ({', '.join(some)})" if some else ""
