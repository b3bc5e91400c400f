"""From measurements to decisions."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from colltune.catalog import Catalogue
from colltune.core.inner_calls import Inner, InnerCall, SharedCall, shared_calls
from colltune.core.medians import broken_choices, medians_of
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, grouped
from colltune.core.space import Model, Space
from colltune.distill.minimal_rules import distill
from colltune.distill.segments import Floats, Segments
from colltune.distill.selection import Selection

# Log speed-ups that differ by less may be noise.
_NOISE = 0.07
# Of what measured times are unsure by, so many standard deviations are no noise.
_SURELY = 2.0
# Up to so many nodes every count is decided by itself.
_EVERY_COUNT = 16
# What a candidate is compared with in a scenario: the default, in one form or another.
Baseline = Callable[[Scenario], Choice]


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
        for part in decided:
            whole.choices.update(part.choices)
            whole.gains.update(part.gains)
            whole.default_s.update(part.default_s)
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
    inner: Inner = lambda _collective, _choice: (),
    costs: ClaimCosts = ClaimCosts(),
) -> dict[str, Decided]:
    """The choice for every scenario of the grids of which the measurements let expect anything, by collective.

    The default stays unless another choice is expected to be ``threshold`` times as fast as ``baseline`` of it. Choices
    are made over few wide segments (`colltune.distill.segments`): one more claim has to gain what its time in the proof
    brings to the others. Where choices do not agree on what runs in an ``inner`` call of theirs, what gains most there
    prevails, and the others are made anew among the choices that agree with it.
    """
    tables = {
        name: _Gains(models[name], space, samples, baseline, math.log(threshold), inner)
        for name, space in spaces.items()
    }
    a_second = _last_second([claim for table in tables.values() for claim in table.worth_proving(costs.claim_s)], costs)
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
        self, model: Model, space: Space, samples: Sequence[Sample], baseline: Baseline, floor: float, inner: Inner
    ) -> None:
        self._measured = medians_of(samples)
        # Where calls meet page faults, also with a heap that keeps what is freed: a rule may lose in neither state.
        keeping = [replace(sample, times_s=(sample.kept_s,)) if sample.kept_s else sample for sample in samples]
        self._states = [self._measured, medians_of(keeping)]
        self._selection = Selection(model, space, self._measured)
        self._space, self._baseline, self._floor, self._inner = space, baseline, floor, inner
        self._selection.prepare(space.scenarios)
        by_default = {scenario: self._log_time_by_default(scenario) for scenario in space.scenarios}
        # Where nothing is known of the default nothing can be said to be faster.
        self._rows = {s: row for row, s in enumerate(s for s in space.scenarios if math.isfinite(by_default[s]))}
        self._scenarios = list(self._rows)
        self._defaults = np.array([by_default[scenario] for scenario in self._scenarios])
        self._weights = np.array([space.weight(scenario) for scenario in self._scenarios])
        broken = {DEFAULT, *(choice for name, choice in broken_choices(samples) if name == space.collective)}
        self._choices = sorted(self._selection.columns.keys() - broken)
        self._columns = {choice: column for column, choice in enumerate(self._choices)}
        self._gains = self._defaults[:, None] - self._log_times()
        # The same for what a scenario is compared with too, where it seems no candidate.
        self._speed_ups: list[list[float]] = self._gains.tolist()
        for row, scenario in enumerate(self._scenarios):
            if (column := self._columns.get(baseline(scenario))) is not None:
                self._gains[row, column] = np.nan

    def _log_time_by_default(self, scenario: Scenario) -> float:
        """NaN or infinite where that is not known."""
        log_times, columns = self._selection.log_times(scenario), self._selection.columns
        places = (columns[choice] for choice in (self._baseline(scenario), DEFAULT) if choice in columns)
        return next((float(log_times[place]) for place in places if not np.isnan(log_times[place])), math.nan)

    def _log_times(self) -> Floats:
        """(scenarios, choices): infinite for what failed, NaN for what is not legal."""
        columns = [self._selection.columns[choice] for choice in self._choices]
        rows = [self._selection.log_times(scenario) for scenario in self._scenarios]
        return np.array(rows)[:, columns] if rows else np.empty((0, len(columns)))

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
        choices = segments.decide()
        while more := _settled(choices, self._inner, self._gain):
            segments = replace(segments, worth=_agreeing(segments, more, self._inner))
            choices = segments.decide()
        gains = {scenario: self._gain(scenario, choice) for scenario, choice in choices.items()}
        default_s = dict(zip(self._scenarios, np.exp(self._defaults).tolist(), strict=True))
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
        slower = math.exp(_NOISE + _SURELY * math.sqrt(2.0) * self._selection.measured_sd)
        for scenario, choice in self._measured:
            default = scenario, self._baseline(scenario)
            known = scenario in self._rows and choice in self._columns and default in self._measured
            if known and any(times[scenario, choice] > slower * times[default] for times in self._states):
                yield self._rows[scenario], self._columns[choice]

    def _gain(self, scenario: Scenario, choice: Choice) -> float:
        """The log speed-up over the default; minus infinity where ``choice`` is not legal."""
        if choice == DEFAULT:
            return 0.0
        gain = self._speed_ups[self._rows[scenario]][self._columns[choice]]
        return -math.inf if math.isnan(gain) else gain

    def _best_between(self, scenario: Scenario, ends: Sequence[Scenario], choices: Sequence[Choice]) -> Choice:
        """What both ends choose, or of the ``choices`` of either the one that gains most at both together."""
        if list(choices) == [DEFAULT]:
            return DEFAULT
        legal = self._selection.legal(scenario)
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
    ends_of = {}
    for (ppn, low), (other_ppn, high) in pairwise(sorted(of_shape)):
        if other_ppn != ppn or high - low < 2:
            continue
        high_ends = {scenario.size_bytes: scenario for scenario in of_shape[ppn, high]}
        for nodes in range(low + 1, high) if high <= _EVERY_COUNT else [(low + high) // 2]:
            for low_end in of_shape[ppn, low]:
                if (high_end := high_ends.get(low_end.size_bytes)) is not None:
                    ends_of[replace(low_end, nodes=nodes)] = (low_end, high_end)
    return ends_of


def _agreeing(segments: Segments, settled: Mapping[SharedCall, Choice], inner: Inner) -> Floats:
    """``worth`` of the choices that agree with what is settled; NaN for the others."""
    left, made = segments.worth.copy(), np.isfinite(segments.worth)
    codes = {choice: code for code, choice in enumerate(dict.fromkeys(settled.values()))}
    required: dict[InnerCall, NDArray[np.int_]] = {}  # of a kind of calls in each scenario; -1: nothing
    for column, choice in enumerate(segments.choices):
        for call in inner(segments.scenarios[0].collective, choice):
            kind = call._replace(choice=DEFAULT)
            if kind not in required:
                values = _settled_below(kind, segments.scenarios, settled)
                required[kind] = np.array([-1 if value is None else codes[value] for value in values])
            differs = (required[kind] >= 0) & (required[kind] != codes.get(call.choice, -1))
            left[made[:, column] & differs, column] = np.nan
    return left


def _settled_below(
    kind: InnerCall, scenarios: Sequence[Scenario], settled: Mapping[SharedCall, Choice]
) -> list[Choice | None]:
    """What is settled for the ``kind`` of calls of each of ``scenarios``."""
    of_kind = (kind.where, kind.collective)
    here = {(call.ranks, call.size_bytes): value for call, value in settled.items() if call[:2] == of_kind}
    return [here.get((kind.ranks_in(scenario), scenario.size_bytes)) for scenario in scenarios]


def _settled(
    decided: Mapping[Scenario, Choice], inner: Inner, gain: Callable[[Scenario, Choice], float]
) -> dict[SharedCall, Choice]:
    """What the choices do not agree on, with what gains most there; that with the most expected gain comes first.

    A scenario whose choice does not prevail in one thing has no say in the others: it is made anew. Settled are all
    at once, since each time that choices are made anew takes as long as the first.
    """
    votes: defaultdict[SharedCall, dict[int, Choice]] = defaultdict(dict)
    gains: dict[int, float] = {}  # by the place of a scenario, as the votes are
    for place, (scenario, choice) in enumerate(decided.items()):
        if choice != DEFAULT and (calls := shared_calls(inner, scenario, choice)):
            gains[place] = max(gain(scenario, choice), 0.0)
            for key, value in calls.items():
                votes[key][place] = value
    conflicts = {key: some for key, some in votes.items() if len(set(some.values())) > 1}
    settled: dict[SharedCall, Choice] = {}
    for key in sorted(conflicts, key=lambda call: -sum(gains[place] for place in conflicts[call])):
        gain_of: defaultdict[Choice, float] = defaultdict(float)
        for place, value in conflicts[key].items():
            if place in gains:
                gain_of[value] += gains[place]
        if len(gain_of) > 1:
            settled[key] = max(gain_of, key=gain_of.__getitem__)
            for place, value in conflicts[key].items():
                if value != settled[key]:
                    gains.pop(place, None)
    return settled


def unproven_rules(
    catalogue: Catalogue, spaces: Mapping[str, Space], models: Mapping[str, Model], samples: Sequence[Sample]
) -> dict[str, RuleSet]:
    """Rules of all that the models hold for the fastest, proven or not."""
    medians = medians_of(samples)
    return {
        name: distill(models[name], space, medians, catalogue.collective(name).basis) for name, space in spaces.items()
    }
