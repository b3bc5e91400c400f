"""Faster, same or slower: two sets of launches compared, without a model of their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import comb
from statistics import median

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario

# Differences below this share are called the same: no application would feel them.
PRACTICAL = 0.03
# Chance, per side and point, that the interval misses; small, because a verification looks at many points.
_ERROR = 1e-3
_NORMAL = 3.09  # the same for a normal distribution


class Verdict(StrEnum):
    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Default against tuned in one scenario; times in seconds, medians over launches. ``ratio`` above 1: faster."""

    scenario: Scenario
    choice: Choice
    default_s: float
    tuned_s: float
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.ratio, self.low, self.high)


def verdict_of(ratio: float, low: float, high: float) -> Verdict:
    """What a ratio of default over tuned says, with its interval."""
    if low > 1.0 and ratio > 1.0 + PRACTICAL:
        return Verdict.FASTER
    if high < 1.0 and ratio < 1.0 - PRACTICAL:
        return Verdict.SLOWER
    return Verdict.SAME


def compare(scenario: Scenario, choice: Choice, default_s: Sequence[float], tuned_s: Sequence[float]) -> Comparison:
    """From one median per launch, default and tuned, to the ratio and its interval.

    The ratio is the median of all pairwise ratios (Hodges-Lehmann), the interval by the Mann-Whitney statistic: exact
    for any distribution of launch medians.
    """
    ratios = sorted(default / tuned for default in default_s for tuned in tuned_s)
    index = _rank(len(default_s), len(tuned_s))
    low, high = (ratios[index], ratios[-1 - index]) if index >= 0 else (0.0, float("inf"))
    return Comparison(scenario, choice, median(default_s), median(tuned_s), median(ratios), low, high)


def ratio_interval(default_s: Sequence[float], tuned_s: Sequence[float]) -> tuple[float, float, float]:
    """As ``compare``; with too few times for that, the normal interval by how much they differ among themselves."""
    ratios = sorted(default / tuned for default in default_s for tuned in tuned_s)
    index = _rank(len(default_s), len(tuned_s))
    if index >= 0:
        return median(ratios), ratios[index], ratios[-1 - index]
    reach = math.exp(_NORMAL * _spread_of_logs(default_s, tuned_s) * math.sqrt(1 / len(default_s) + 1 / len(tuned_s)))
    return median(ratios), median(ratios) / reach, median(ratios) * reach


def compare_few(
    sides: Mapping[tuple[Scenario, Choice], tuple[Sequence[float], Sequence[float]]],
) -> list[Comparison]:
    """As ``compare``, where there are too few launches for an interval of each point by itself.

    How much launches differ is then taken from all points of a collective together: the interval of a point is the
    normal one of its mean log ratio, with the greater of the common and its own standard deviation.
    """
    own = {key: _spread_of_logs(*times) for key, times in sides.items()}
    found = []
    for key, (default_s, tuned_s) in sides.items():
        kin = [own[other] for other in sides if other[0].collective == key[0].collective]
        deviation = max(own[key], math.sqrt(sum(spread**2 for spread in kin) / len(kin)))
        reach = math.exp(_NORMAL * deviation * math.sqrt(1 / len(default_s) + 1 / len(tuned_s)))
        one = compare(*key, default_s, tuned_s)
        found.append(replace(one, low=one.ratio / reach, high=one.ratio * reach))
    return found


def _spread_of_logs(*sides: Sequence[float]) -> float:
    """Standard deviation of log times between launches, over both sides."""
    logs = [[math.log(time_s) for time_s in side] for side in sides]
    squares = sum(sum((value - sum(side) / len(side)) ** 2 for value in side) for side in logs)
    return math.sqrt(squares / max(1, sum(len(side) - 1 for side in logs)))


def _rank(first: int, second: int) -> int:
    """Index of the pairwise ratio that bounds the true one with at most _ERROR on its side; -1: too few launches."""
    total, below, index = comb(first + second, first), 0, -1
    for statistic in range(first * second // 2):
        below += _arrangements(first, second, statistic)
        if below / total > _ERROR:
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


def fewest_launches() -> int:
    """Launches of each kind below which nothing can be told."""
    count = 2
    while _rank(count, count) < 0:
        count += 1
    return count
