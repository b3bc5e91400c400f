"""From the profile of a program: the calls that cost it most, and the choices that its runs may try in them.

Every choice passes the conformance check first, on the job of the program. What `colltune run --auto` does at the end
of the run that recorded the profile.
"""

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench, require_tuned
from colltune.catalog import Catalogue
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Span
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.core.units import format_size
from colltune.deploy.explored import CallKind, Candidates, save_candidates, size_class, tables
from colltune.deploy.live_selector import by_selector_alone, with_live
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter, live_basis
from colltune.mpi.application import Application
from colltune.mpi.detect import ask_flux, mpi_at_hand
from colltune.mpi.job import find_job
from colltune.mpi.launch_line import host_file_of
from colltune.predict.model import TimesModel, load_model
from colltune.profile.application_profile import Profile
from colltune.prove.replay.on_workbench import UncheckedError, departing, make_safe
from colltune.session.tuning.payoff import machine_like
from colltune.store.tuning import MANIFEST, Tuning, load_deployable, save_tuning

# Below this share of the program's time not even the fastest choice would be felt, and in fewer calls of a communicator
# than this no run can try one within a risk of 0.1%.
_LEAST_SHARE, _FEWEST_CALLS = 0.002, 4000
_MOST_KINDS, _MOST_CHOICES = 32, 6
_Found = tuple[tuple[str, int, int, int], float, list[Scenario]]


@dataclass(frozen=True)
class Prepared:
    """``notes``: what may not be tried, a line each. ``share``: of the program's time in these calls. ``why_none``: the
    reason where there are none."""

    kinds: tuple[CallKind, ...]
    notes: tuple[str, ...]
    why_none: str = ""

    @property
    def share(self) -> float:
        return sum(kind.share for kind in self.kinds)


def prepare(directory: Path, profile: Profile, application: Application) -> Prepared:
    """Finds what later runs may try, and keeps it in ``directory``, with a tuning of no rule where there is none.

    Raises ColltuneError where the job of the program cannot be opened, and where its library fails by itself.
    """
    bench = _bench_of(profile)
    if (directory / MANIFEST).exists():
        tuning = load_deployable(directory)
        require_tuned(bench, tuning.environment)
    else:
        names = sorted({one.collective for one, _ in profile.tunable()})
        default = {name: RuleSet.always(name, live_basis(bench.catalogue, name)) for name in names}
        tuning = with_live(bench, Tuning(bench.environment, default, {}, {}), {})
        save_tuning(directory, tuning)
    model = load_model()
    kinds = [_kind(bench, model, *one) for one in costly(profile, bench)]
    emitter = LiveEmitter(bench.catalogue, bench.settings)
    checked, notes = _safe(bench, tuning, [kind for kind in kinds if kind.choices], directory)
    safe = [one for one in checked if one.choices]
    why_none = "" if safe else why_none_is_tried(profile, bench.catalogue, kinds)
    layers = [table for layer in _layers(safe) for table in layer.values()]
    text = emitter.emit([*(tuning.live or {}).values(), *layers])[LIVE_FILE].decode("ascii")
    save_candidates(directory, Candidates(application, bench.environment.mpi_build, tuple(safe), text, why_none))
    return Prepared(tuple(safe), tuple(notes), why_none)


def why_none_is_tried(profile: Profile, catalogue: Catalogue, kinds: Sequence[CallKind]) -> str:
    """What keeps most of the time in calls that can be tuned from being tried, where nothing is."""
    if kinds:
        return "no other algorithm gives right results in the calls that take its time"
    calls = [one for one, _ in profile.tunable() if catalogue.collective(one.collective).nothing_to_tune is None]
    few = [call for call in calls if call.communicator.even and call.calls < _FEWEST_CALLS]
    share, of_few, of_uneven = (
        sum(one.time_s for one in some) / max(profile.core_s, 1e-12)
        for some in (calls, few, [call for call in calls if not call.communicator.even])
    )
    text = f"calls that can be tuned take {share:.1%} of its time"
    if max(of_few, of_uneven) < _LEAST_SHARE:
        return f"{text}, and no kind of call {_LEAST_SHARE:.1%} of it"
    if of_uneven > of_few:
        return (
            f"{text}, most of it on communicators with different numbers of ranks on their nodes: no rule is for these"
        )
    most = max(few, key=lambda one: one.calls)
    size = "" if most.collective == "barrier" else f" of about {format_size(round(most.size_mean))}"
    return (
        f"{text}, but a run can try a choice only in a kind of call that it makes {_FEWEST_CALLS:,} times, and makes"
        f" none so often: {most.collective}{size} {most.calls:,.0f} times. `colltune profile` and then `colltune tune"
        " --profile` measure such calls in launches of their own"
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


def costly(profile: Profile, bench: Workbench) -> list[_Found]:
    """Collective, nodes, ranks per node and class of sizes of the calls that cost most, with their share of the time,
    and the scenarios that stand for them; the most costly first."""
    shares: defaultdict[tuple[str, int, int, int], float] = defaultdict(float)
    stand: defaultdict[tuple[str, int, int, int], set[Scenario]] = defaultdict(set)
    for one, scenarios in profile.tunable():
        if (
            one.calls < _FEWEST_CALLS
            or not one.communicator.even
            or bench.catalogue.collective(one.collective).nothing_to_tune is not None
        ):
            continue
        basis = live_basis(bench.catalogue, one.collective)
        for scenario in scenarios:
            size_class = scenario.basis_bytes(basis).bit_length()
            key = (scenario.collective, scenario.nodes, scenario.ppn, size_class)
            shares[key] += one.time_s / max(profile.core_s, 1e-12) / len(scenarios)
            stand[key].add(scenario)
    ordered = sorted(shares, key=lambda key: -shares[key])[:_MOST_KINDS]
    return [(key, shares[key], sorted(stand[key])) for key in ordered if shares[key] >= _LEAST_SHARE]


def _kind(
    bench: Workbench, model: TimesModel, key: tuple[str, int, int, int], share: float, scenarios: Sequence[Scenario]
) -> CallKind:
    collective, nodes, ppn, bits = key
    basis = live_basis(bench.catalogue, collective)
    size = Span(0, None) if basis is SizeBasis.NONE else size_class(bits)
    own = {DEFAULT, *(bench.baseline(scenario) for scenario in scenarios)}
    legal = [choice for choice in bench.legal(scenarios[0]) if choice not in own]
    legal = [choice for choice in legal if all(choice in bench.legal(scenario) for scenario in scenarios[1:])]
    choices = tuple(_by_promise(model, scenarios[-1], legal)[:_MOST_CHOICES])
    return CallKind(collective, basis, nodes, ppn, size, share, choices)


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
                checked, found = make_safe(bench, alone(rule_sets), Path(workplace), alone, counts)
        except UncheckedError as error:
            notes.append(f"{error.what}; what was not checked is not tried")
            continue
        notes += found
        for number, one in enumerate(kinds):
            if one.collective in departing(checked.rule_sets) and place < len(one.choices):
                right[number].append(one.choices[place])
    return [replace(one, choices=tuple(right[number])) for number, one in enumerate(kinds)], notes
