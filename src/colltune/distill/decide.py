"""From measurements to decisions."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from colltune.catalog import Catalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.grouping import grouped
from colltune.core.medians import broken_choices, medians_of
from colltune.core.model_answers import Model
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample
from colltune.core.scenario import Scenario
from colltune.core.space import Space, neighbours
from colltune.distill.minimal_rules import distill
from colltune.distill.selection import Selection

# Log speed-up by which a scenario must differ from neighbours that all decide alike: less is noise.
_LIKE_NEIGHBOURS = 0.07
# After so many looks at all scenarios hardly one changes.
_SWEEPS = 3
# Up to so many nodes every count is decided by itself.
_EVERY_COUNT = 16
# What a candidate is compared with in a scenario: the default, in one form or another.
Baseline = Callable[[Scenario], Choice]
# What a choice decides in common with other scenarios (see Backend.shared).
Shared = Callable[[Scenario, Choice], Mapping[Hashable, Choice]]


@dataclass(frozen=True)
class Decided:
    """``choices``: for every scenario that was looked at. ``gains``: for each, the log speed-up over the default that
    the measurements let expect of its choice; 0 where that is the default. ``default_s``: what a call takes by default.
    """

    choices: dict[Scenario, Choice]
    gains: dict[Scenario, float]
    default_s: dict[Scenario, float]

    @classmethod
    def together(cls, decided: "Iterable[Decided]") -> "Decided":
        """The decisions of all."""
        whole = cls({}, {}, {})
        for one in decided:
            whole.choices.update(one.choices)
            whole.gains.update(one.gains)
            whole.default_s.update(one.default_s)
        return whole


def decide(
    model: Model,
    space: Space,
    samples: Sequence[Sample],
    baseline: Baseline,
    threshold: float,
    shared: Shared = lambda _scenario, _choice: {},
) -> Decided:
    """The choice for every scenario of the grid of which the measurements let expect anything.

    The default stays unless another choice is expected to be ``threshold`` times as fast as ``baseline`` of it. Where
    that differs by less than the noise a scenario decides as its neighbours do, so that regions are large and tables
    small. Where choices do not agree on what is ``shared`` among their scenarios, what gains most there prevails, and
    the others are made anew among the choices that agree with it.
    """
    table = _Gains(model, space, samples, baseline, math.log(threshold), shared)
    decided = {scenario: table.best(scenario, {}, ()) for scenario in table.scenarios}
    beside = neighbours(decided)
    for _ in range(_SWEEPS):
        for scenario in decided:
            decided[scenario] = table.best(scenario, {}, [decided[other] for other in beside[scenario]])
    settled: dict[Hashable, Choice] = {}
    while conflict := _dearest_conflict(decided, shared, table.gain):
        settled[conflict[0]] = conflict[1]
        for scenario, choice in decided.items():
            if shared(scenario, choice).get(conflict[0], conflict[1]) != conflict[1]:
                decided[scenario] = table.best(scenario, settled, [decided[other] for other in beside[scenario]])
    gains = {scenario: table.gain(scenario, choice) for scenario, choice in decided.items()}
    default_s = {scenario: math.exp(table.default(scenario)) for scenario in decided}
    for scenario, ends in _between(decided).items():
        choice = table.best_between(scenario, ends, sorted({decided[end] for end in ends}))
        decided[scenario], gains[scenario] = choice, fmean(table.gain(end, choice) for end in ends)
        default_s[scenario] = max(default_s[end] for end in ends)
    return Decided(decided, gains, default_s)


class _Gains:
    """What each choice is expected to gain at each scenario."""

    def __init__(
        self, model: Model, space: Space, samples: Sequence[Sample], baseline: Baseline, floor: float, shared: Shared
    ) -> None:
        self._measured = medians_of(samples)
        # Where calls meet page faults, also with a heap that keeps what is freed: a rule may lose in neither state.
        keeping = [replace(one, times_s=(one.kept_s,)) if one.kept_s else one for one in samples]
        self._states = [self._measured, medians_of(keeping)]
        self._selection = Selection(model, space, self._measured)
        self._space, self._baseline, self._floor, self._shared = space, baseline, floor, shared
        self._broken = {choice for name, choice in broken_choices(samples) if name == space.collective}
        self._selection.prepare(space.scenarios)
        # Where nothing is known of the default nothing can be said to be faster.
        self.scenarios = [s for s in space.scenarios if math.isfinite(self.default(s))]

    def default(self, scenario: Scenario) -> float:
        """Logarithm of what a call takes; infinite where that is not known."""
        times = self._selection.log_times(scenario)
        return times.get(self._baseline(scenario), times.get(DEFAULT, math.inf))

    def gain(self, scenario: Scenario, choice: Choice) -> float:
        """The log speed-up over the default."""
        if choice == DEFAULT:
            return 0.0
        return self.default(scenario) - self._selection.log_times(scenario).get(choice, math.inf)

    def best(self, scenario: Scenario, settled: Mapping[Hashable, Choice], beside: Sequence[Choice]) -> Choice:
        """The best of those that agree with what is settled; with ``beside``, the choices of the neighbours."""
        times = self._selection.log_times(scenario)
        baseline = self._baseline(scenario)
        usual = _LIKE_NEIGHBOURS / len(beside) if beside else 0.0
        best, most = DEFAULT, usual * sum(choice == DEFAULT for choice in beside)
        default = self.default(scenario)
        for choice, log_time in times.items():
            worth = default - log_time - self._floor
            if worth + _LIKE_NEIGHBOURS <= most or choice in (DEFAULT, baseline) or choice in self._broken:
                continue
            worth += usual * sum(other == choice for other in beside)
            if worth > most and self._agrees(scenario, choice, settled) and not self._is_slower(scenario, choice):
                best, most = choice, worth
        return best

    def best_between(self, scenario: Scenario, ends: Sequence[Scenario], choices: Sequence[Choice]) -> Choice:
        """What both ends choose, or of the ``choices`` of either the one that gains most at both together."""
        legal = self._space.choices(scenario)
        gains = {
            choice: fmean(self.gain(end, choice) for end in ends)
            for choice in choices
            if choice in legal and (len(choices) == 1 or choice != DEFAULT)
        }
        best = max(gains, key=gains.__getitem__, default=DEFAULT)
        return best if len(choices) == 1 or gains.get(best, 0.0) > self._floor else DEFAULT

    def _agrees(self, scenario: Scenario, choice: Choice, settled: Mapping[Hashable, Choice]) -> bool:
        return not settled or all(settled.get(k, v) == v for k, v in self._shared(scenario, choice).items())

    def _is_slower(self, scenario: Scenario, choice: Choice) -> bool:
        """Whether it was measured to be in any state of the heap, whatever is thought of its neighbours."""
        pairs = [(scenario, self._baseline(scenario)), (scenario, choice)]
        return all(pair in self._measured for pair in pairs) and any(
            times[pairs[1]] > times[pairs[0]] for times in self._states
        )


def _between(decided: Mapping[Scenario, Choice]) -> dict[Scenario, tuple[Scenario, Scenario]]:
    """The scenarios on counts of nodes between two that were decided, and these; in large gaps only half way."""
    of_shape = grouped(decided, lambda scenario: (scenario.ppn, scenario.nodes))
    found = {}
    for (ppn, low), (other_ppn, high) in pairwise(sorted(of_shape)):
        if other_ppn != ppn or high - low < 2:
            continue
        for nodes in range(low + 1, high) if high <= _EVERY_COUNT else [(low + high) // 2]:
            for one in of_shape[ppn, low]:
                if (other := replace(one, nodes=high)) in decided:
                    found[replace(one, nodes=nodes)] = (one, other)
    return found


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
