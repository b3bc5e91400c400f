"""Faster, same, open or slower: two sets of launches compared, without a model of their noise."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, count
from math import comb
from statistics import geometric_mean, median

import numpy as np

from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.sample import Choice, Scenario
from colltune.judge.spread import LaunchSpread, spreads

# Differences below this share are reported as the same: they do not matter to an application.
PRACTICAL = 0.03
_MOST_EXPONENT = 700.0  # of a double
# Chance, per side, that any interval of one verification misses; that of a point is its share of it.
_ERROR = 0.005
# Where pairs are judged too, they have a fifth of that.
_UNPAIRED, _PAIRED = 1.25, 5.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides in one scenario: the default (A) and a tuning (B), or any others. ``speedup`` above 1: B is faster.

    Times are in seconds: medians over launches, and in ``a_launches_s`` and ``b_launches_s`` one median for each
    launch, in their order. ``choice``: what a rule of one side decides here.
    ``kept``: the same with a heap that keeps what is freed, where a call meets page faults without.
    """

    scenario: Scenario
    choice: Choice
    a_s: float
    b_s: float
    speedup: Interval
    a_launches_s: tuple[float, ...] = ()
    b_launches_s: tuple[float, ...] = ()
    kept: "Comparison | None" = None

    @property
    def verdict(self) -> SpeedVerdict:
        """Of the state of the heap in which it is worse."""
        own = verdict_of(self.speedup)
        return own if self.kept is None else max(own, self.kept.verdict, key=list(SpeedVerdict).index)


def verdict_of(speedup: Interval) -> SpeedVerdict:
    """The verdict for a speed-up; open where its interval reaches beyond what is called the same."""
    if speedup.low > 1.0 and speedup.estimate > 1.0 + PRACTICAL:
        return SpeedVerdict.FASTER
    if speedup.high < 1.0 and speedup.estimate < 1.0 - PRACTICAL:
        return SpeedVerdict.SLOWER
    within = speedup.low >= 1.0 - PRACTICAL and speedup.high <= 1.0 + PRACTICAL
    return SpeedVerdict.SAME if within else SpeedVerdict.OPEN


def compare(
    scenario: Scenario,
    choice: Choice,
    a_s: Sequence[float],
    b_s: Sequence[float],
    points: float = 1,
    spread: LaunchSpread | None = None,
) -> Comparison:
    """From one median per launch of each side to the ratio and its interval.

    The ratio is the median of all pairwise ratios (Hodges-Lehmann), the interval by the Mann-Whitney statistic: exact
    for any distribution of launch medians. ``points``: how many are compared together. ``spread``: of the launches,
    if these are too few.
    """
    speedup = _of_all(a_s, b_s, spread, points)
    return Comparison(scenario, choice, median(a_s), median(b_s), speedup, tuple(a_s), tuple(b_s))


def mean_speedup(comparisons: Sequence[Comparison]) -> tuple[Interval, int] | None:
    """Geometric mean of the speed-up, with an interval that misses in 1% of verifications, and over how many points.

    Each launch gives one geometric mean over the points that all launches have; these are compared as launches are.
    None where no point has times of every launch.
    """
    sides = [(c.a_launches_s, c.b_launches_s) for c in comparisons]
    fullest = max(((len(default), len(tuned)) for default, tuned in sides), default=(0, 0))
    whole = [both for both in sides if (len(both[0]), len(both[1])) == fullest and all(both)]
    if not whole:
        return None
    means = [[geometric_mean(times) for times in zip(*side, strict=True)] for side in zip(*whole, strict=True)]
    return ratio_interval(means[0], means[1]), len(whole)


def ratio_interval(a_s: Sequence[float], b_s: Sequence[float]) -> Interval:
    """The ratio of ``compare`` and its interval; with too few times for an exact one, Student's."""
    return _of_all(a_s, b_s, spreads([(a_s, b_s)])[0], 1)


def compare_all(
    sides: Mapping[tuple[Scenario, Choice], tuple[Sequence[float], Sequence[float]]], *, paired: bool = False
) -> list[Comparison]:
    """As ``compare`` for the points of one verification, also where launches are too few for exact intervals.

    Then launch medians are taken to be lognormal, and the interval is Student's, by ``spreads`` of each collective,
    among the points that have as many launches. ``paired``: launches of the same position were neighbours. Then each
    point also has an interval of its pairs, if these are three or more, and only what lies in both intervals counts.
    """
    judged: dict[tuple[Scenario, Choice], Comparison] = {}
    alike = {key: (key[0].collective, len(both[0]), len(both[1])) for key, both in sides.items()}
    points = len(sides) * _UNPAIRED if paired else len(sides)
    for group in set(alike.values()):
        mine = {key: both for key, both in sides.items() if alike[key] == group}
        for (key, both), spread in zip(mine.items(), spreads(list(mine.values())), strict=True):
            judged[key] = compare(*key, *both, points, spread)
        if paired and min(group[1:]) > 2:
            pairs = [[a / b for a, b in zip(*both, strict=False)] for both in mine.values()]
            for key, ratios, spread in zip(mine, pairs, spreads([(row, (1.0,)) for row in pairs]), strict=True):
                of_all, of_pairs = judged[key].speedup, _of_pairs(ratios, spread, len(sides) * _PAIRED)
                narrower = of_pairs if of_pairs.high * of_all.low < of_all.high * of_pairs.low else of_all
                low, high = sorted((max(of_pairs.low, of_all.low), min(of_pairs.high, of_all.high)))
                judged[key] = replace(judged[key], speedup=Interval(min(max(narrower.estimate, low), high), low, high))
    return [judged[key] for key in sides]


def _of_all(a_s: Sequence[float], b_s: Sequence[float], spread: LaunchSpread | None, points: float) -> Interval:
    ratios, first, second = [a / b for a in a_s for b in b_s], len(a_s), len(b_s)
    return _interval(ratios, _rank(first, second, points), _reach(spread, first, second, points))


def _of_pairs(ratios: Sequence[float], spread: LaunchSpread, points: float) -> Interval:
    """The median of the means of any two ratios and its interval, by Wilcoxon's signed ranks."""
    means = [math.sqrt(first * other) for n, first in enumerate(ratios) for other in ratios[n:]]
    return _interval(means, _signed_rank(len(ratios), points), _reach(spread, len(ratios), math.inf, points))


def _interval(ratios: Sequence[float], rank: int, reach: float) -> Interval:
    """By the ``rank`` where that is none of too few launches, else Student's."""
    ordered, middle = sorted(ratios), median(ratios)
    ends = (ordered[rank], ordered[-1 - rank]) if rank >= 0 else (middle / reach, middle * reach)
    return Interval(middle, *ends)


def _reach(spread: LaunchSpread | None, first: float, second: float, points: float) -> float:
    """The factor between a ratio and the ends of its interval; infinite for one launch of each kind."""
    if first + second < 3 or spread is None:
        return math.inf
    from scipy.special import stdtrit

    quantile = float(stdtrit(spread.freedom, 1.0 - _ERROR / points))
    exponent = quantile * spread.deviation * math.sqrt(1 / first + 1 / second)
    return math.exp(exponent) if exponent < _MOST_EXPONENT else math.inf


def launches_to_decide(comparisons: Sequence[Comparison], launches: int) -> int:
    """How many launches of each side would decide half of the points that ``launches`` left open; 0: none is."""
    factors = []
    for state in (c if c.kept is None or c.verdict is not c.kept.verdict else c.kept for c in comparisons):
        if state.verdict is SpeedVerdict.OPEN:
            speedup = state.speedup
            off, same = abs(math.log(speedup.estimate)), math.log1p(PRACTICAL)
            # An interval shrinks with the root of the number of launches.
            width = math.log(speedup.high / speedup.low) / 2 if speedup.low > 0.0 else 0.0
            factors.append(width / (off if off > same else max(same - off, 1e-3)))
    return max(fewest_launches(len(comparisons)), math.ceil(launches * median(factors) ** 2)) if factors else 0


@cache
def _rank(first: int, second: int, points: float) -> int:
    """Index of the pairwise ratio that bounds the true one, but for a chance of a ``points``-th of _ERROR.

    -1: too few launches.
    """
    # Orders of two samples by their Mann-Whitney statistic: the coefficients of a Gaussian binomial.
    half = first * second // 2
    ways = [1, *[0] * half]
    for place in range(1, first + 1):
        for statistic in range(half, second + place - 1, -1):
            ways[statistic] -= ways[statistic - second - place]
        for statistic in range(place, half + 1):
            ways[statistic] += ways[statistic - place]
    return bisect_right(list(accumulate(ways[:half])), _ERROR / points * comb(first + second, first)) - 1


@cache
def _signed_rank(pairs: int, points: float) -> int:
    """As ``_rank``, of the means of any two of so many ratios."""
    ways = np.ones(1)
    for rank in range(1, pairs + 1):
        ways = np.convolve(ways, [1.0, *[0.0] * (rank - 1), 1.0])
    return bisect_right(list(np.cumsum(ways)), _ERROR / points * 2**pairs) - 1


def fewest_launches(points: int = 1) -> int:
    """Launches of each kind from which the intervals of so many points are exact."""
    return next(n for n in count(2) if _rank(n, n, _UNPAIRED * points) >= 0)
