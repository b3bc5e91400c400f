"""From measurements to decisions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

from colltune.catalog import Catalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.medians import broken_choices, medians_of
from colltune.core.model import Model
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.distill.rules import distill
from colltune.distill.selection import Selection

# What a candidate is compared with in a scenario: the default, in one form or another.
Baseline = Callable[[Scenario], Choice]
# What a choice decides in common with other scenarios (see Backend.shared).
Shared = Callable[[Scenario, Choice], Mapping[Hashable, Choice]]


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


def unproven_rules(
    catalogue: Catalogue, spaces: Mapping[str, Space], models: Mapping[str, Model], samples: Sequence[Sample]
) -> dict[str, RuleSet]:
    """Rules of all that the models hold for the fastest, proven or not."""
    medians = medians_of(samples)
    return {
        name: distill(models[name], space, medians, catalogue.collective(name).basis) for name, space in spaces.items()
    }
