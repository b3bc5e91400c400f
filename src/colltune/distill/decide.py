"""From measurements to decisions."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from colltune.catalog import Catalogue
from colltune.core.medians import broken_choices, medians_of
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, grouped
from colltune.core.space import Model, Space
from colltune.distill.minimal_rules import distill
from colltune.distill.segments import Floats, Segments
from colltune.distill.selection import Selection

# Log speed-ups that differ by less may be noise.
_NOISE = 0.07
# Up to so many nodes every count is decided by itself.
_EVERY_COUNT = 16
# What a candidate is compared with in a scenario: the default, in one form or another.
Baseline = Callable[[Scenario], Choice]
# What a choice decides in common with other scenarios (see Backend.shared).
Shared = Callable[[Scenario, Choice], Mapping[Hashable, Choice]]
# By what is shared, and by what is needed of it: rows and columns of the choices that need it.
_Sharing = dict[Hashable, dict[Choice, tuple[NDArray[np.int_], NDArray[np.int_]]]]


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


@dataclass(frozen=True)
class ClaimCosts:
    """What one more claim costs. ``time_s``: of the proof, for all claims. ``claim_s``: seconds that one takes of it,
    where a call takes so long by default, in seconds, and its choice gains so much, as a log speed-up.
    """

    time_s: float = math.inf
    claim_s: Callable[[float, float], float] = lambda _default_s, _gain: 0.0


def decide(
    models: Mapping[str, Model],
    spaces: Mapping[str, Space],
    samples: Sequence[Sample],
    baseline: Baseline,
    threshold: float,
    shared: Shared = lambda _scenario, _choice: {},
    costs: ClaimCosts = ClaimCosts(),
) -> dict[str, Decided]:
    """The choice for every scenario of the grids of which the measurements let expect anything, by collective.

    The default stays unless another choice is expected to be ``threshold`` times as fast as ``baseline`` of it. Choices
    are made over few wide segments (`colltune.distill.segments`): one more claim has to gain what its time in the proof
    brings to the others. Where choices do not agree on what is ``shared`` among their scenarios, what gains most there
    prevails, and the others are made anew among the choices that agree with it.
    """
    tables = {
        name: _Gains(models[name], space, samples, baseline, math.log(threshold), shared)
        for name, space in spaces.items()
    }
    a_second = _last_second([one for table in tables.values() for one in table.worth_proving(costs.claim_s)], costs)
    return {
        name: table.decided(lambda default_s, gain: a_second * costs.claim_s(default_s, gain))
        for name, table in tables.items()
    }


def _last_second(claims: Sequence[tuple[float, float]], costs: ClaimCosts) -> float:
    """What the last second of the proof brings, if those of ``claims`` that gain most for their time come first.

    Each claim is what it gains, and its seconds. 0 where there is time for all.
    """
    left_s = costs.time_s
    for gain, claim_s in sorted(claims, key=lambda claim: claim[1] / claim[0]):
        left_s -= claim_s
        if left_s < 0.0:
            return gain / claim_s
    return 0.0


class _Gains:
    """What each choice is expected to gain at each scenario of one collective."""

    def __init__(
        self, model: Model, space: Space, samples: Sequence[Sample], baseline: Baseline, floor: float, shared: Shared
    ) -> None:
        self._measured = medians_of(samples)
        # Where calls meet page faults, also with a heap that keeps what is freed: a rule may lose in neither state.
        keeping = [replace(sample, times_s=(sample.kept_s,)) if sample.kept_s else sample for sample in samples]
        self._states = [self._measured, medians_of(keeping)]
        self._selection = Selection(model, space, self._measured)
        self._space, self._baseline, self._floor, self._shared = space, baseline, floor, shared
        self._broken = {choice for name, choice in broken_choices(samples) if name == space.collective}
        self._selection.prepare(space.scenarios)
        # Where nothing is known of the default nothing can be said to be faster.
        self._scenarios = [s for s in space.scenarios if math.isfinite(self._default(s))]
        self._defaults = np.array([self._default(scenario) for scenario in self._scenarios])
        self._weights = np.array([space.weight(scenario) for scenario in self._scenarios])
        known = dict.fromkeys(choice for s in self._scenarios for choice in self._selection.log_times(s))
        self._choices = sorted(known.keys() - {DEFAULT} - self._broken)
        self._columns = {choice: column for column, choice in enumerate(self._choices)}
        self._gains = self._log_speed_ups()

    def _log_speed_ups(self) -> Floats:
        """(scenarios, choices): over the default; minus infinity for what failed, NaN for what is no candidate."""
        gains = np.full((len(self._scenarios), len(self._columns)), np.nan)
        for row, scenario in enumerate(self._scenarios):
            default, baseline = self._defaults[row], self._baseline(scenario)
            for choice, log_time in self._selection.log_times(scenario).items():
                if choice != baseline and (column := self._columns.get(choice)) is not None:
                    gains[row, column] = default - log_time
        return gains

    def worth_proving(self, claim_s: Callable[[float, float], float]) -> Iterator[tuple[float, float]]:
        """What the best choice of each scenario gains, by its weight, and the seconds of a claim for it alone."""
        for default, gain, weight in zip(self._defaults, self._most, self._weights, strict=True):
            if gain > self._floor:
                yield float(gain * weight), claim_s(math.exp(default), float(gain))

    @property
    def _most(self) -> Floats:
        """(scenarios,): what the best choice gains, 0 where none does."""
        return np.asarray(np.fmax.reduce(self._gains, axis=1, initial=0.0))

    def decided(self, price: Callable[[float, float], float]) -> Decided:
        """``price``: what a claim has to gain, by the time of its calls by default and by its gain."""
        segments = self._segments(price)
        choices, sharing = segments.decide(), None
        while more := _settled(choices, self._shared, self._gain):
            sharing = sharing or self._sharing(segments)
            segments = replace(segments, worth=_agreeing(segments.worth, more, sharing))
            choices = segments.decide()
        gains = {scenario: self._gain(scenario, choice) for scenario, choice in choices.items()}
        default_s = {scenario: math.exp(self._default(scenario)) for scenario in choices}
        for scenario, ends in _between(choices).items():
            choice = self._best_between(scenario, ends, sorted({choices[end] for end in ends}))
            choices[scenario], gains[scenario] = choice, fmean(self._gain(end, choice) for end in ends)
            default_s[scenario] = max(default_s[end] for end in ends)
        return Decided(choices, gains, default_s)

    def _segments(self, price: Callable[[float, float], float]) -> Segments:
        prices: dict[int, list[float]] = {}
        luck: dict[tuple[int, int], float] = {}
        most, candidates = self._most, (~np.isnan(self._gains)).sum(axis=1)
        for row, scenario in enumerate(self._scenarios):
            prices.setdefault(scenario.size_bytes, []).append(price(math.exp(self._defaults[row]), float(most[row])))
            # The best of n that differ by noise alone seems so much better than the default.
            chance = 2.0 * _NOISE * math.sqrt(math.log(int(candidates[row]) + 1))
            luck[scenario.nodes, scenario.ppn] = float(self._weights[row]) * chance
        slower = self._gains < self._floor - _NOISE
        worth = np.where(slower, -np.inf, self._weights[:, None] * (self._gains - self._floor))
        for row, column in self._measured_slower():
            worth[row, column] = -np.inf
        medians = {size: median(some) for size, some in prices.items()}
        # What gains nowhere is made nowhere.
        gains = np.flatnonzero((worth > 0.0).any(axis=0)).tolist()
        return Segments(self._scenarios, [self._choices[column] for column in gains], worth[:, gains], medians, luck)

    def _measured_slower(self) -> Iterator[tuple[int, int]]:
        """Row and column of what was slower than the default by more than noise, in any state of the heap."""
        rows = {scenario: row for row, scenario in enumerate(self._scenarios)}
        for scenario, choice in self._measured:
            default = scenario, self._baseline(scenario)
            known = scenario in rows and choice in self._columns and default in self._measured
            if known and any(times[scenario, choice] > math.exp(_NOISE) * times[default] for times in self._states):
                yield rows[scenario], self._columns[choice]

    def _sharing(self, segments: Segments) -> _Sharing:
        rows, columns = np.nonzero(np.isfinite(segments.worth))
        needs: dict[Hashable, dict[Choice, list[int]]] = {}
        for place, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            for key, value in self._shared(segments.scenarios[row], segments.choices[column]).items():
                needs.setdefault(key, {}).setdefault(value, []).append(place)
        return {
            key: {value: (rows[places], columns[places]) for value, places in of_key.items()}
            for key, of_key in needs.items()
        }

    def _default(self, scenario: Scenario) -> float:
        """Logarithm of what a call takes; infinite where that is not known."""
        times = self._selection.log_times(scenario)
        return times.get(self._baseline(scenario), times.get(DEFAULT, math.inf))

    def _gain(self, scenario: Scenario, choice: Choice) -> float:
        """The log speed-up over the default."""
        if choice == DEFAULT:
            return 0.0
        return self._default(scenario) - self._selection.log_times(scenario).get(choice, math.inf)

    def _best_between(self, scenario: Scenario, ends: Sequence[Scenario], choices: Sequence[Choice]) -> Choice:
        """What both ends choose, or of the ``choices`` of either the one that gains most at both together."""
        if list(choices) == [DEFAULT]:
            return DEFAULT
        legal = self._space.choices(scenario)
        gains = {
            choice: fmean(self._gain(end, choice) for end in ends)
            for choice in choices
            if choice in legal and (len(choices) == 1 or choice != DEFAULT)
        }
        best = max(gains, key=gains.__getitem__, default=DEFAULT)
        return best if len(choices) == 1 or gains.get(best, 0.0) > self._floor else DEFAULT


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


def _agreeing(worth: Floats, settled: Mapping[Hashable, Choice], sharing: _Sharing) -> Floats:
    """``worth`` of the choices that agree with what is settled."""
    left = worth.copy()
    for key, value in settled.items():
        for other, places in sharing[key].items():
            if other != value:
                left[places] = np.nan
    return left


def _settled(
    decided: Mapping[Scenario, Choice], shared: Shared, gain: Callable[[Scenario, Choice], float]
) -> dict[Hashable, Choice]:
    """What the choices do not agree on, with what gains most there; that with the most gain at stake comes first.

    A scenario whose choice does not prevail in one thing has no say in the others: it is made anew. Settled are all
    at once, since each time that choices are made anew takes as long as the first.
    """
    votes: defaultdict[Hashable, dict[Scenario, Choice]] = defaultdict(dict)
    gains: dict[Scenario, float] = {}
    for scenario, choice in decided.items():
        if choice != DEFAULT:
            gains[scenario] = max(gain(scenario, choice), 0.0)
            for key, value in shared(scenario, choice).items():
                votes[key][scenario] = value
    conflicts = {key: some for key, some in votes.items() if len(set(some.values())) > 1}
    settled: dict[Hashable, Choice] = {}
    for key in sorted(conflicts, key=lambda one: -sum(gains.get(scenario, 0.0) for scenario in conflicts[one])):
        at_stake: defaultdict[Choice, float] = defaultdict(float)
        for scenario, value in conflicts[key].items():
            if scenario in gains:
                at_stake[value] += gains[scenario]
        if len(at_stake) > 1:
            settled[key] = max(at_stake, key=at_stake.__getitem__)
            for scenario, value in conflicts[key].items():
                if value != settled[key]:
                    gains.pop(scenario, None)
    return settled


def unproven_rules(
    catalogue: Catalogue, spaces: Mapping[str, Space], models: Mapping[str, Model], samples: Sequence[Sample]
) -> dict[str, RuleSet]:
    """Rules of all that the models hold for the fastest, proven or not."""
    medians = medians_of(samples)
    return {
        name: distill(models[name], space, medians, catalogue.collective(name).basis) for name, space in spaces.items()
    }
