"""Rules without any measurement: hardware features, models of other clusters, and the same emitters as after tuning.

What `colltune study predict` and the Python API do. The model of best algorithms, which knows the hardware, proposes;
the model of times, which knows what each algorithm sends, says how likely the proposal loses against the default.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.bench.workbench import Workbench
from colltune.core.choice import DEFAULT, Choice
from colltune.core.collective_names import parse_collectives
from colltune.core.errors import InputError
from colltune.core.hardware import Hardware
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import COLLECTIVES, Scenario
from colltune.core.space import Space, message_sizes, shapes
from colltune.core.summary import Guess, PredictedSizes, Summary
from colltune.distill.minimal_rules import distill_proven
from colltune.predict.calibration import MOST_PROBABLE
from colltune.predict.families import LIKE, family_of_choice
from colltune.predict.guesses import vetoed
from colltune.predict.model import PretrainedModel
from colltune.predict.times_model import load_times
from colltune.store.tuning import MANIFEST, Tuning, load_tuning


@dataclass(frozen=True)
class PredictResult:
    """``took_s``: for all collectives, from features to the bytes of the files. ``measured``: pairs, within
    ``measuring_s``; 0 without a calibration.
    """

    tuning: Tuning
    guesses: Sequence[Guess]
    took_s: float
    measured: int = 0
    measuring_s: float = 0.0


def existing_tuning(out: Path, here: Environment) -> Tuning | None:
    """The measured tuning of this machine in ``out``; None where there is none.

    Raises InputError where ``out`` holds a tuning of another machine or MPI, which is not to be overwritten.
    """
    if not (out / MANIFEST).exists():
        return None
    tuning = load_tuning(out)
    was = tuning.environment
    same = ("mpi", "mpi_version", "mpi_build", "machine")
    if any(getattr(was, name) != getattr(here, name) for name in same):
        raise InputError(
            f"{out} holds a tuning of {was.mpi} {was.mpi_version} on {was.machine}, not of this machine",
            "Give another directory by --out",
        )
    return None if tuning.summary.prediction is not None else tuning


def predict(
    bench: Workbench,
    model: PretrainedModel,
    hardware: Hardware,
    largest_bytes: int,
    collectives: Sequence[str] = (),
    risk: float = MOST_PROBABLE,
    times: Path | None = None,
) -> PredictResult:
    """Rules for all shapes of the workbench's nodes and ranks per node; runs no MPI. Raises InputError.

    ``times``: the file of the model of times, None for the shipped one. ``risk``: with no greater probability may a
    rule lose more than LOSS against the default.
    """
    started_s = time.monotonic()
    spaces = {name: _space(bench, name, largest_bytes) for name in _known(collectives, model, bench)}
    proposals = {name: _proposals(bench, model, hardware, space) for name, space in spaces.items()}
    judged = _judged(proposals, risk, times)
    guesses = [guess for own in judged.values() for guess in own]
    rule_sets = {name: rules_of(bench, space, judged[name]) for name, space in spaces.items()}
    tuning = bench.tuning(rule_sets)
    took_s = time.monotonic() - started_s
    return PredictResult(replace(tuning, summary=summary_of(guesses, hardware, took_s)), guesses, took_s)


def rules_of(bench: Workbench, space: Space, guesses: Sequence[Guess]) -> RuleSet:
    """What is chosen in ``space``, as far as the files of the bench's library can say it."""
    chosen = {guess.scenario: guess.choice for guess in guesses}
    return bench.expressible(distill_proven(chosen, space, bench.catalogue.collective(space.collective).basis))


def widened(bench: Workbench, nodes: int | None, ppn: int | None) -> Workbench:
    """The workbench as if its job had ``nodes`` x ``ppn``: to predict for more of the machine than this job has."""
    wide = replace(bench, nodes=nodes or bench.nodes, ppn=ppn or max(bench.job.ppn, 1))
    return replace(wide, environment=replace(bench.environment, nodes=wide.nodes, ppn=wide.ppn))


def _known(collectives: Sequence[str], model: PretrainedModel, bench: Workbench) -> list[str]:
    wanted = parse_collectives(collectives) or COLLECTIVES
    return [
        name
        for name in COLLECTIVES
        if name in wanted
        and LIKE.get(name, name) in model.forests
        and bench.catalogue.collective(name).nothing_to_tune is None
    ]


def _space(bench: Workbench, collective: str, largest_bytes: int) -> Space:
    sizes = message_sizes(collective, 1, largest_bytes)
    grid = tuple(Scenario(collective, n, p, size) for n, p in shapes(bench.nodes, bench.ppn) for size in sizes)
    return Space(collective, grid, lambda scenario: bench.catalogue.legal(scenario, bench.thread_level))


@dataclass(frozen=True)
class _Proposal:
    """``choice``: what may replace ``twin``, which is what the library runs by itself; DEFAULT where nothing may."""

    scenario: Scenario
    twin: Choice | None
    choice: Choice
    reason: str


def _proposals(bench: Workbench, model: PretrainedModel, hardware: Hardware, space: Space) -> list[_Proposal]:
    name = space.collective
    like = LIKE.get(name, name)
    asked = space.scenarios if like == name else [replace(s, collective=like) for s in space.scenarios]
    inside = model.knows(like, asked)
    # The library's own choice is looked up only where there is an opinion on it.
    twins = [
        bench.backend.twin(scenario, bench.thread_level) if is_inside else None
        for scenario, is_inside in zip(space.scenarios, inside, strict=True)
    ]
    now = [None if twin is None else family_of_choice(name, twin) for twin in twins]
    opinions = model.opinions(like, asked, hardware, now)
    found = []
    for scenario, opinion, twin, current, is_inside in zip(space.scenarios, opinions, twins, now, inside, strict=True):
        choice, reason = DEFAULT, opinion.reason
        if is_inside and current is None:
            # If the default's algorithm is unknown, the new choice cannot be compared with it.
            reason = "what the library runs by itself is of no known family"
        elif opinion.family is not None and opinion.family != current:
            choice = next((c for c in space.choices(scenario) if family_of_choice(name, c) == opinion.family), DEFAULT)
            reason = reason if choice != DEFAULT else f"{opinion.family} is not legal here"
        found.append(_Proposal(scenario, twin, choice, reason))
    return found


def _judged(proposals: Mapping[str, Sequence[_Proposal]], risk: float, path: Path | None) -> dict[str, list[Guess]]:
    """By collective the proposals that lose improbably enough; the default stays in place of the others."""
    groups = {
        name: [(one.scenario, one.twin, [one.choice]) for one in some if one.twin and one.choice != DEFAULT]
        for name, some in proposals.items()
    }
    asked = {name: own for name, own in groups.items() if own}
    judged = {}
    if asked:
        times = load_times(path, only=asked)  # of what is asked alone
        for name, own in asked.items():
            known = times.calibration(name, [(own[0][0], own[0][1])])
            for group, gap in zip(own, known.against(own), strict=True):
                judged[group[0]] = vetoed(*group, *gap, risk)
    return {
        name: [judged.get(one.scenario) or Guess(one.scenario, DEFAULT, 0.0, one.reason) for one in some]
        for name, some in proposals.items()
    }


def summary_of(
    guesses: Sequence[Guess], hardware: Hardware, took_s: float, reason: str = "predicted, not measured"
) -> Summary:
    """Of a prediction that was made in ``took_s``; ``reason`` is the same for every collective."""
    names = dict.fromkeys(guess.scenario.collective for guess in guesses)
    made = tuple(guess for guess in guesses if guess.choice != DEFAULT)
    sizes = {n: sorted({g.scenario.size_bytes for g in guesses if g.scenario.collective == n}) for n in names}
    return Summary(
        gated=False,
        reasons=dict.fromkeys(names, reason),
        total_s=took_s,
        prediction=PredictedSizes({name: tuple(some) for name, some in sizes.items()}, hardware, made),
    )
