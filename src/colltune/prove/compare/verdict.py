"""Faster, same or slower: two sets of launches compared, without a model of their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import comb
from statistics import geometric_mean, median

from scipy.special import stdtrit

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from colltune.prove.compare.spread import LaunchSpread, spreads

# Differences below this share are reported as the same: they do not matter to an application.
PRACTICAL = 0.03
_MOST_EXPONENT = 700.0  # of a double
# Chance, per side, that any interval of one verification misses; that of a point is its share of it.
_ERROR = 0.005


class PointVerdict(StrEnum):
    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides in one scenario: the default (A) and a tuning (B), or any others. ``ratio`` above 1: B is faster.

    Times are in seconds: medians over launches, and in ``a_launches_s`` and ``b_launches_s`` one median for each
    launch, in their order. ``choice``: what a rule of one side decides here.
    ``kept``: the same with a heap that keeps what is freed, where a call meets page faults without.
    """

    scenario: Scenario
    choice: Choice
    a_s: float
    b_s: float
    ratio: float
    low: float
    high: float
    a_launches_s: tuple[float, ...] = ()
    b_launches_s: tuple[float, ...] = ()
    kept: Comparison | None = None

    @property
    def verdict(self) -> PointVerdict:
        """Of the state of the heap in which it is worse."""
        own = verdict_of(self.ratio, self.low, self.high)
        return own if self.kept is None else max(own, self.kept.verdict, key=list(PointVerdict).index)


def verdict_of(ratio: float, low: float, high: float) -> PointVerdict:
    """The verdict for a ratio of A over B and its interval."""
    if low > 1.0 and ratio > 1.0 + PRACTICAL:
        return PointVerdict.FASTER
    if high < 1.0 and ratio < 1.0 - PRACTICAL:
        return PointVerdict.SLOWER
    return PointVerdict.SAME


def compare(
    scenario: Scenario, choice: Choice, a_s: Sequence[float], b_s: Sequence[float], points: int = 1
) -> Comparison:
    """From one median per launch of each side to the ratio and its interval.

    The ratio is the median of all pairwise ratios (Hodges-Lehmann), the interval by the Mann-Whitney statistic: exact
    for any distribution of launch medians. ``points``: how many are compared together.
    """
    ratios = sorted(a / b for a in a_s for b in b_s)
    index = _rank(len(a_s), len(b_s), points)
    low, high = (ratios[index], ratios[-1 - index]) if index >= 0 else (0.0, float("inf"))
    return Comparison(scenario, choice, median(a_s), median(b_s), median(ratios), low, high, tuple(a_s), tuple(b_s))


@dataclass(frozen=True, slots=True)
class MeanSpeedup:
    """Geometric mean of the speed-up over ``points``, with an interval that misses in 1% of verifications."""

    ratio: float
    low: float
    high: float
    points: int

    @property
    def significant(self) -> bool:
        """Whether the interval leaves 1 out."""
        return self.low > 1.0 or self.high < 1.0


def mean_speedup(comparisons: Sequence[Comparison]) -> MeanSpeedup | None:
    """Each launch gives one geometric mean over the points that all launches have; these are compared as launches are.

    None where no point has times of every launch.
    """
    sides = [(c.a_launches_s, c.b_launches_s) for c in comparisons]
    fullest = max(((len(default), len(tuned)) for default, tuned in sides), default=(0, 0))
    whole = [both for both in sides if (len(both[0]), len(both[1])) == fullest and all(both)]
    if not whole:
        return None
    means = [[geometric_mean(times) for times in zip(*side, strict=True)] for side in zip(*whole, strict=True)]
    return MeanSpeedup(*ratio_interval(means[0], means[1]), points=len(whole))


def ratio_interval(a_s: Sequence[float], b_s: Sequence[float]) -> tuple[float, float, float]:
    """The ratio of ``compare`` and its interval; with too few times for an exact one, Student's."""
    ratios = sorted(a / b for a in a_s for b in b_s)
    index = _rank(len(a_s), len(b_s), 1)
    if index >= 0:
        return median(ratios), ratios[index], ratios[-1 - index]
    reach = _reach(spreads([(a_s, b_s)])[0], len(a_s), len(b_s), 1)
    return median(ratios), median(ratios) / reach, median(ratios) * reach


def compare_all(sides: Mapping[tuple[Scenario, Choice], tuple[Sequence[float], Sequence[float]]]) -> list[Comparison]:
    """As ``compare`` for the points of one verification, also where launches are too few for exact intervals.

    Then launch medians are taken to be lognormal, and the interval is Student's, by ``spreads`` of each collective,
    among the points that have as many launches.
    """
    found: dict[tuple[Scenario, Choice], Comparison] = {}
    alike = {key: (key[0].collective, len(both[0]), len(both[1])) for key, both in sides.items()}
    for group in set(alike.values()):
        mine = {key: both for key, both in sides.items() if alike[key] == group}
        for (key, both), spread in zip(mine.items(), spreads(list(mine.values())), strict=True):
            one = compare(*key, *both, points=len(sides))
            if _rank(len(both[0]), len(both[1]), len(sides)) < 0:
                reach = _reach(spread, len(both[0]), len(both[1]), len(sides))
                one = replace(one, low=one.ratio / reach, high=one.ratio * reach)
            found[key] = one
    return [found[key] for key in sides]


def _reach(spread: LaunchSpread, first: int, second: int, points: int) -> float:
    """The factor between a ratio and the ends of its interval; infinite for one launch of each kind."""
    if first + second < 3:
        return math.inf
    quantile = float(stdtrit(spread.freedom, 1.0 - _ERROR / points))
    exponent = quantile * spread.deviation * math.sqrt(1 / first + 1 / second)
    return math.exp(exponent) if exponent < _MOST_EXPONENT else math.inf


def typical_reach(comparisons: Sequence[Comparison]) -> float:
    """The factor by which a point must differ to be distinguished from noise, for half of the points."""
    return median(max(one.high / one.ratio, one.ratio / one.low) if one.low > 0.0 else math.inf for one in comparisons)


@cache
def _rank(first: int, second: int, points: int) -> int:
    """Index of the pairwise ratio that bounds the true one, but for a chance of a ``points``-th of _ERROR.

    -1: too few launches.
    """
    total, below, index = comb(first + second, first), 0, -1
    for statistic in range(first * second // 2):
        below += _arrangements(first, second, statistic)
        if below / total > _ERROR / points:
            break
        index = statistic
    return index


@cache
def _arrangements(first: int, second: int, statistic: int) -> int:
    """Orders of two samples with this Mann-Whitney statistic."""
    if statistic < 0:
        return 0
    if first == 0 or second == 0:
        return 1 if statistic == 0 else 0
    return _arrangements(first - 1, second, statistic - second) + _arrangements(first, second - 1, statistic)


def fewest_launches(points: int = 1) -> int:
    """Launches of each kind from which the intervals of so many points are exact."""
    count = 2
    while _rank(count, count, points) < 0:
        count += 1
    return count
