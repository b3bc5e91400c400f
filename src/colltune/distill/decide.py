"""From measurements to decisions, and from decisions that were proven to rules."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Protocol

from colltune.catalog import Catalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.model import Model
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario, SizeBasis
from colltune.core.space import Space
from colltune.distill.rules import distill, distill_proven
from colltune.distill.selection import Selection
from colltune.learn.contract import Learner
from colltune.learn.measured import MeasuredModel
from colltune.prove.gate import GateResult, Verdict, fewest_groups, judge
from colltune.search.campaign import WHOLE, Outcome, broken_choices

# What a candidate is compared with in a scenario: the default, in one form or another.
Baseline = Callable[[Scenario], Choice]
# What a choice decides in common with other scenarios (see Backend.shared).
Shared = Callable[[Scenario, Choice], Mapping[Hashable, Choice]]


class Bench(Protocol):
    """What decisions ask of the place where they were measured: a workbench, or a simulation."""

    @property
    def nodes(self) -> int: ...

    @property
    def ppn(self) -> int: ...

    @property
    def catalogue(self) -> Catalogue: ...

    def baseline(self, scenario: Scenario) -> Choice: ...


# Where the job is ended from outside there is no time for fresh launches. What was seen in the one launch there was has
# to be clearer then.
_ONE_LAUNCH_THRESHOLD = 1.10


def medians_of(samples: Sequence[Sample]) -> dict[tuple[Scenario, Choice], float]:
    """Median time by pair in seconds, over all its samples; pairs of which a sample failed are left out."""
    broken = broken_choices(samples)
    times: defaultdict[tuple[Scenario, Choice], list[float]] = defaultdict(list)
    for sample in samples:
        if sample.status is Status.OK and (sample.scenario.collective, sample.choice) not in broken:
            times[sample.scenario, sample.choice].append(sample.time_s)
    return {pair: median(values) for pair, values in times.items()}


def models_of(
    learners: Mapping[str, Learner],
    outcome: Outcome,
    medians: Mapping[tuple[Scenario, Choice], float],
    *,
    grid_alone: bool,
) -> dict[str, Model]:
    """What is decided by, per collective: what was measured, and where that is not all, the learner's model.

    ``grid_alone``: rules do not reach beyond the grid, so that a whole grid needs no model. Nor is there time for one
    where the job is being ended.
    """
    models: dict[str, Model] = {}
    for name, learner in learners.items():
        enough = grid_alone and (outcome.interrupted or outcome.reasons.get(name) == WHOLE)
        known = any(scenario.collective == name for scenario, _ in medians)
        models[name] = learner.model() if known and not enough else MeasuredModel(medians)
    return models


def decide(
    model: Model,
    space: Space,
    samples: Sequence[Sample],
    baseline: Baseline,
    threshold: float,
    shared: Shared = lambda _scenario, _choice: {},
) -> dict[Scenario, Choice]:
    """The choice for every scenario of the grid that was measured at all in its shape.

    The default stays unless another choice was measured to be ``threshold`` times as fast as ``baseline`` of it.
    Where choices do not agree on what is ``shared`` among their scenarios, what gains most there prevails, and the
    others are made anew among the choices that agree with it.
    """
    measured = medians_of(samples)
    selection = Selection(model, space, measured)
    shapes = {(s.nodes, s.ppn) for s, _ in measured if s.collective == space.collective}
    scenarios = [s for s in space.scenarios if (s.nodes, s.ppn) in shapes]
    selection.prepare(scenarios)
    broken = broken_choices(samples)

    def promising(scenario: Scenario, choice: Choice) -> bool:
        """Worth the proof: another choice than the default, and not measured to be slower than would be proven."""
        if choice == baseline(scenario):
            return False
        times = [measured.get((scenario, one)) for one in (baseline(scenario), choice)]
        return times[0] is None or times[1] is None or times[0] > threshold * times[1]

    def best(scenario: Scenario, settled: Mapping[Hashable, Choice]) -> Choice:
        """The best of those that agree with what is settled."""
        choice = selection.best(scenario)
        if settled:
            times = selection.log_times(scenario)
            fitting = [c for c in times if all(settled.get(k, v) == v for k, v in shared(scenario, c).items())]
            choice = min(fitting, key=lambda c: times[c], default=DEFAULT)
            choice = choice if math.isfinite(times.get(choice, math.inf)) else DEFAULT
        return choice if (scenario.collective, choice) not in broken and promising(scenario, choice) else DEFAULT

    def gain(scenario: Scenario, choice: Choice) -> float:
        times = selection.log_times(scenario)
        return times.get(baseline(scenario), times.get(DEFAULT, 0.0)) - times[choice]

    decided = {scenario: best(scenario, {}) for scenario in scenarios}
    settled: dict[Hashable, Choice] = {}
    while conflict := _dearest_conflict(decided, shared, gain):
        settled[conflict[0]] = conflict[1]
        for scenario, choice in decided.items():
            if shared(scenario, choice).get(conflict[0], conflict[1]) != conflict[1]:
                decided[scenario] = best(scenario, settled)
    return decided


def _dearest_conflict(
    decided: Mapping[Scenario, Choice], shared: Shared, gain: Callable[[Scenario, Choice], float]
) -> tuple[Hashable, Choice] | None:
    """Of what the choices do not agree on, that with the most gain at stake, and what gains most there."""
    at_stake: defaultdict[Hashable, defaultdict[Choice, float]] = defaultdict(lambda: defaultdict(float))
    for scenario, choice in decided.items():
        if choice != DEFAULT:
            for key, value in shared(scenario, choice).items():
                at_stake[key][value] += max(gain(scenario, choice), 0.0)
    conflicts = {key: votes for key, votes in at_stake.items() if len(votes) > 1}
    if not conflicts:
        return None
    key = max(conflicts, key=lambda one: sum(conflicts[one].values()))
    return key, max(conflicts[key], key=lambda choice: conflicts[key][choice])


def candidates_of(
    workbench: Bench,
    decided: Mapping[str, Mapping[Scenario, Choice]],
    medians: Mapping[tuple[Scenario, Choice], float],
) -> dict[Scenario, Choice]:
    """The decisions that depart from the default, the most promising first."""

    def gain(scenario: Scenario, choice: Choice) -> float:
        """Of the whole job before its parts, and by the ratio that was measured."""
        default, chosen = medians.get((scenario, workbench.baseline(scenario))), medians.get((scenario, choice))
        ratio = default / chosen if default and chosen else 1.0
        return ratio * math.sqrt(scenario.ranks / (workbench.nodes * workbench.ppn))

    found = [(s, c) for choices in decided.values() for s, c in choices.items() if c != DEFAULT]
    return dict(sorted(found, key=lambda pair: gain(*pair), reverse=True))


def judge_one_launch(
    scenario: Scenario, choice: Choice, samples: Sequence[Sample], baseline: Baseline, threshold: float
) -> GateResult:
    """The gate without fresh launches: the repetitions of the campaign's own launch, cut into groups. No proof."""
    groups = fewest_groups()
    found = {s.choice: s for s in samples if s.scenario == scenario and s.status is Status.OK}
    pair = [found[one].times_s for one in (baseline(scenario), choice) if one in found]
    ratios: list[float] = []
    if len(pair) == 2 and min(map(len, pair)) >= groups:
        parts = [
            [times[i * len(times) // groups : (i + 1) * len(times) // groups] for i in range(groups)] for times in pair
        ]
        ratios = [median(default) / median(chosen) for default, chosen in zip(*parts, strict=True)]
    least = max(threshold, _ONE_LAUNCH_THRESHOLD)
    faster = judge(scenario, choice, ratios, groups, least).verdict is Verdict.KEPT
    verdict = Verdict.PROVISIONAL if faster else Verdict.REFUSED
    told = f"{'' if faster else 'not '}{least:.2f} times as fast in each part of its one launch"
    return GateResult(scenario, choice, verdict, tuple(ratios), f"{told}; the job was ended before the proof")


def provisional(gate: Sequence[GateResult], missing: str) -> list[GateResult]:
    """``gate`` where the job was ended before its last stages: what was kept is not proven. ``missing``: why."""
    return [
        replace(result, verdict=Verdict.PROVISIONAL, reason=f"{result.reason}; {missing}: the job was ended")
        if result.verdict is Verdict.KEPT
        else result
        for result in gate
    ]


def proven_rules(
    workbench: Bench,
    spaces: Mapping[str, Space],
    decided: Mapping[str, Mapping[Scenario, Choice]],
    gate: Sequence[GateResult],
    basis_of: Callable[[str], SizeBasis] | None = None,
    accepted: Collection[Verdict] = frozenset({Verdict.KEPT}),
) -> dict[str, RuleSet]:
    """The rules that make the choices with an ``accepted`` verdict.

    ``basis_of``: what they compare; None is what the library's file does.
    """
    basis_of = basis_of or (lambda name: workbench.catalogue.collective(name).basis)
    kept = {result.scenario for result in gate if result.verdict in accepted}
    return {
        name: distill_proven(
            {scenario: choice if scenario in kept else DEFAULT for scenario, choice in choices.items()},
            spaces[name],
            basis_of(name),
        )
        for name, choices in decided.items()
    }


def unproven_rules(
    bench: Bench, spaces: Mapping[str, Space], models: Mapping[str, Model], samples: Sequence[Sample]
) -> dict[str, RuleSet]:
    """Rules of all that the models hold for the fastest, proven or not."""
    medians = medians_of(samples)
    return {
        name: distill(models[name], space, medians, bench.catalogue.collective(name).basis)
        for name, space in spaces.items()
    }
