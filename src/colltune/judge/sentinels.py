"""Checks whether earlier measurements are still valid: repeats a few of them, the sentinels, and compares.

Notations: the gain of a sentinel is the time of the default over that of the other choice; its shift is the present
gain over the earlier one. Both times of a gain are measured side by side, so a slower machine as a whole causes no
shift. Its scatter is the standard deviation of the logarithm of the gain from launch to launch, as far as earlier
comparisons show it: an unchanged machine shifts that far by itself.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, mean, median, variance
from types import MappingProxyType
from typing import TypeVar

from colltune.core.interval import SpeedVerdict
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status, format_choice, grouped

# A gain that differs by more than this factor has changed; launches alone make it differ by less.
TOLERANCE = 1.25
# So many standard deviations from launch to launch are a change; from so few on it is worth another launch to be sure,
# up to so many that leave none uncertain.
_SURE, _UNCERTAIN, _PLAIN = 2.75, 1.5, 5.0
# What an algorithm's calls have in common in a launch, of their variance; the least shift of all its calls that counts.
_COMMON, _LEAST_SHIFT = 0.5, 1.1
# With fewer degrees of freedom a scatter is not known.
_FEWEST = 6
_ALL = "all collectives"
# If all calls take this many times as long, or as short, it is another machine; launches alone differ by less.
_SAME_SPEED = 2.0
# The share of a collective's sentinels that may have changed, and the gain from which a choice counts as better.
_STRAY, _GAIN = 0.25, 1.03


Item = TypeVar("Item")
Pair = tuple[Scenario, Choice]


@dataclass(frozen=True, slots=True)
class Sentinel:
    """A scenario, a choice to compare with the default, and the earlier times of both in seconds.

    ``default``: the choice that the default was measured as. ``promised``: whether the choice was proven to be faster.
    ``ratios``: the logarithms of the gain in earlier launches that compared them. ``scatter``: 0, where it is unknown.
    """

    scenario: Scenario
    choice: Choice
    default_s: float
    choice_s: float
    default: Choice = DEFAULT
    promised: bool = False
    ratios: tuple[float, ...] = ()
    scatter: float = 0.0

    @property
    def gain(self) -> float:
        return math.exp(mean(self.ratios)) if self.ratios else self.default_s / self.choice_s


@dataclass(frozen=True, slots=True)
class Recheck:
    """A sentinel measured again: one pair of times, default and choice, of each launch.

    ``sure``: how many standard deviations are a change.
    """

    sentinel: Sentinel
    pairs: tuple[tuple[float, float], ...]
    sure: float = _SURE

    @property
    def gain(self) -> float:
        return median(default / choice for default, choice in self.pairs)

    @property
    def pace(self) -> float:
        """The present time of the default over the earlier one."""
        return median(default for default, _ in self.pairs) / self.sentinel.default_s

    @property
    def verdict(self) -> SpeedVerdict:
        if not self.pairs:
            return SpeedVerdict.UNMEASURED
        # What was proven must not be slower now, whatever it was when it was measured last.
        least = math.exp(-self.sure * self.sentinel.scatter / math.sqrt(len(self.pairs)))
        if (self.sentinel.promised or self.sentinel.gain > _GAIN) and self.gain < least / _GAIN:
            return SpeedVerdict.SLOWER
        return SpeedVerdict.HOLDS if self.is_alike else SpeedVerdict.CHANGED

    @property
    def is_alike(self) -> bool:
        """Whether the gain is the earlier one, as far as launches differ."""
        return abs(self.shift) <= max(math.log(TOLERANCE), self.sure * self.deviation)

    @property
    def shift(self) -> float:
        """Its logarithm."""
        return math.log(self.gain / self.sentinel.gain)

    @property
    def deviation(self) -> float:
        """The standard deviation of the shift on an unchanged machine."""
        ratios, usual = self.sentinel.ratios, self.sentinel.scatter
        freedom = max(len(ratios) - 1, 0)
        own = variance(ratios) if freedom else 0.0
        scatter = math.sqrt((_FEWEST * usual**2 + freedom * own) / (_FEWEST + freedom)) if usual else 0.0
        return scatter * math.sqrt(1.0 / len(self.pairs) + 1.0 / max(len(ratios), 1))


@dataclass(frozen=True, slots=True)
class Validity:
    """Whether what was found of a collective before still holds; ``why_not``, where it does not."""

    why_not: str | None = None

    @property
    def holds(self) -> bool:
        return self.why_not is None


def sentinels(
    samples: Iterable[Sample],
    most: int,
    choice_of: Callable[[Scenario], Choice | None] = lambda _scenario: None,
    default_of: Callable[[Scenario], Choice] = lambda _scenario: DEFAULT,
    compared: Mapping[Pair, Sequence[float]] = MappingProxyType({}),
) -> list[Sentinel]:
    """At most ``most`` of each collective, spread over shapes and sizes, three of four where something is gained.

    The choice is that of ``choice_of``, and such scenarios come first; or the fastest one that was measured beside the
    default, which is ``default_of``. ``compared``: the logarithms of the gains in earlier launches, of each pair.
    """
    proven = {pair: some for pair, some in compared.items() if choice_of(pair[0]) == pair[1]}
    scatters = {_ALL: 0.0, **_scatters(compared), **_scatters(proven)}
    times: defaultdict[Scenario, dict[Choice, list[float]]] = defaultdict(dict)
    for sample in samples:
        if sample.status is Status.OK:
            times[sample.scenario].setdefault(sample.choice, []).append(sample.time_s)
    by_name: defaultdict[str, list[Sentinel]] = defaultdict(list)
    for scenario in sorted(times):
        medians = {choice: median(some) for choice, some in times[scenario].items()}
        default = default_of(scenario)
        others = {choice: time_s for choice, time_s in medians.items() if choice != default}
        if default not in medians or not others:
            continue
        choice = choice_of(scenario)
        promised = choice is not None and choice in others
        if choice is None or not promised:
            choice = min(others, key=others.__getitem__)
        ratios, scatter = tuple(compared.get((scenario, choice), ())), scatters.get(scenario.collective, scatters[_ALL])
        sentinel = Sentinel(scenario, choice, medians[default], others[choice], default, promised, ratios, scatter)
        by_name[scenario.collective].append(sentinel)
    return [sentinel for mine in by_name.values() for sentinel in _chosen(mine, most)]


def _scatters(compared: Mapping[Pair, Sequence[float]]) -> dict[str, float]:
    """Of each collective that was compared in enough launches, and of all of them together."""
    squares: defaultdict[str, float] = defaultdict(float)
    freedom: defaultdict[str, int] = defaultdict(int)
    for (scenario, _), ratios in compared.items():
        middle = fmean(ratios)
        square = sum((ratio - middle) ** 2 for ratio in ratios)
        for name in (scenario.collective, _ALL):
            squares[name] += square
            freedom[name] += len(ratios) - 1
    return {name: math.sqrt(squares[name] / free) for name, free in freedom.items() if free >= _FEWEST}


def _chosen(mine: Sequence[Sentinel], most: int) -> list[Sentinel]:
    promised = [sentinel for sentinel in mine if sentinel.promised]
    promised.sort(key=lambda sentinel: (format_choice(sentinel.choice), sentinel.scenario))
    gaining = [sentinel for sentinel in mine if sentinel.gain > _GAIN and not sentinel.promised]
    rest = [sentinel for sentinel in mine if sentinel.gain <= _GAIN and not sentinel.promised]
    few = min(len(rest), max(most // 4, most - len(gaining) - len(promised)))
    first = spread(promised, most - few)
    others = spread(gaining, most - few - len(first))
    return sorted([*first, *others, *spread(rest, few)], key=lambda sentinel: sentinel.scenario)


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most ``most`` of them, evenly taken."""
    if len(items) <= most:
        return list(items)
    return [items[(2 * number + 1) * len(items) // (2 * most)] for number in range(most)]


def recheck(chosen: Sequence[Sentinel], launches: Sequence[Iterable[Sample]]) -> list[Recheck]:
    """``launches``: what was measured again, launch by launch."""
    pairs: defaultdict[Sentinel, list[tuple[float, float]]] = defaultdict(list)
    for samples in launches:
        times = {(s.scenario, s.choice): s.time_s for s in samples if s.status is Status.OK}
        for sentinel in chosen:
            now = times.get((sentinel.scenario, sentinel.default)), times.get((sentinel.scenario, sentinel.choice))
            if now[0] is not None and now[1] is not None:
                pairs[sentinel].append((now[0], now[1]))
    return [Recheck(sentinel, tuple(pairs[sentinel])) for sentinel in chosen]


def verdicts(rechecks: Iterable[Recheck], unproven: Collection[Scenario] = frozenset()) -> Mapping[str, Validity]:
    """By collective, whether its measurements are still valid.

    ``unproven``: scenarios in which the choice was the fastest that was measured, and nobody promised that it is
    faster. The fastest of many noisy ones looks better than it is, so where it now is a little slower than the default
    nothing has changed; by more than launches differ, that is a change like others.
    """
    by_name = grouped(rechecks, lambda again: again.sentinel.scenario.collective)
    return {name: Validity(_why_not(mine, unproven)) for name, mine in by_name.items()}


def is_uncertain(rechecks: Sequence[Recheck], unproven: Collection[Scenario] = frozenset()) -> bool:
    """Whether another launch could tell more of what has changed."""
    judged = [verdicts([replace(again, sure=sure) for again in rechecks], unproven) for sure in (_UNCERTAIN, _PLAIN)]
    return any(judged[0][name].holds != judged[1][name].holds for name in judged[0])


def _of_algorithm(mine: Sequence[Recheck]) -> str | None:
    """What the calls of one algorithm say together: a change of all of them shows in their mean before it does in one.

    The calls of a launch err together in part, so many of them are not as many times as certain.
    """
    known = (again for again in mine if again.pairs and again.sentinel.scatter and again.sentinel.ratios)
    by_algorithm = grouped(known, lambda again: again.sentinel.choice.algorithm)
    for name, some in sorted(by_algorithm.items()):
        shift = mean(again.shift for again in some)
        alone = mean(again.deviation**2 for again in some)
        deviation = math.sqrt(alone * (_COMMON + (1.0 - _COMMON) / len(some)))
        if -shift > max(math.log(_LEAST_SHIFT), some[0].sure * deviation):
            return f"{name} gains {math.exp(shift):.2f} times what it did in {len(some)} of {len(mine)} sentinels"
    return None


def _why_not(mine: Sequence[Recheck], unproven: Collection[Scenario]) -> str | None:
    off = [
        again
        for again in mine
        if again.verdict is not SpeedVerdict.HOLDS
        and not (again.verdict is SpeedVerdict.SLOWER and again.sentinel.scenario in unproven and again.is_alike)
    ]
    if len(off) > _STRAY * len(mine):
        return f"{len(off)} of {len(mine)} sentinels changed"
    slower = [look for look in off if look.verdict is SpeedVerdict.SLOWER and look.sentinel.scenario not in unproven]
    if slower:
        return f"{slower[0].sentinel.choice} is now slower than the default in {len(slower)} of {len(mine)} sentinels"
    if (why := _of_algorithm(mine)) is not None:
        return why
    pace = median(again.pace for again in mine if again.pairs)
    if not 1.0 / _SAME_SPEED <= pace <= _SAME_SPEED:
        return f"calls take {pace:.2f} times as long as then"
    return None
