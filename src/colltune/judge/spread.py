"""The interval of a median, and the variance between launches at each point, from all points that share the launches.

The logarithm of a launch's median at a point is modelled as the level of the point, an effect of the launch on all
points of the collective, and an effect of the launch on this point. The variance of the last differs between points.
Each point has few launches, but together the points show how much the variances differ. So the estimate of each point
is shrunk towards the common one accordingly (Smyth 2004, moderated t-statistics): similar points share one well-known
variance, and very different ones keep their own uncertain estimates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from colltune.core.proven import order_statistic

# With fewer points it is unknown how much the variances differ between them.
_FEWEST = 4
_LEAST, _MOST = 0.01, 1e4  # degrees of freedom of the common estimate
_TINY = 1e-12
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LaunchSpread:
    """Standard deviation of log times between launches at a point, and its degrees of freedom."""

    deviation: float
    freedom: float


def spreads(points: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[LaunchSpread]:
    """Of points that share their launches: default and tuned times of each, a time for every launch."""
    sides = [np.log([list(both[side]) for both in points]) for side in (0, 1)]
    sides = [side - side.mean(axis=1, keepdims=True) for side in sides]
    free = max(1, sum(side.shape[1] - 1 for side in sides))
    count = len(points)
    if count < _FEWEST:
        own = sum(np.square(side).sum(axis=1) for side in sides) / free
        return [LaunchSpread(math.sqrt(variance), free) for variance in own]
    means = [side.mean(axis=0, keepdims=True) for side in sides]
    own = sum(np.square(side - mean).sum(axis=1) for side, mean in zip(sides, means, strict=True)) / free
    own = np.maximum(own * count / (count - 1), _TINY)
    known, common = _common(own, free)
    drawn = (known * common + free * own) / (known + free)
    of_means = sum(float(np.square(mean).sum()) for mean in means) / free
    of_launches = max(of_means - float(own.mean()) / count, 0.0)
    return [_sum(of_launches, free, float(variance), known + free) for variance in drawn]


def _common(own: Floats, free: int) -> tuple[float, float]:
    """What all points together say of the variance of one: degrees of freedom that it is worth, and the variance."""
    from scipy.optimize import brentq
    from scipy.special import digamma, polygamma

    logs = np.log(own) - digamma(free / 2) + math.log(free / 2)
    surplus = float(logs.var(ddof=1)) - float(polygamma(1, free / 2))
    least, most = float(polygamma(1, _MOST / 2)), float(polygamma(1, _LEAST / 2))
    if surplus <= least:
        return _MOST, float(own.mean())
    known = 2.0 * brentq(lambda half: float(polygamma(1, half)) - min(surplus, most), _LEAST / 2, _MOST / 2)
    return known, math.exp(float(logs.mean()) + float(digamma(known / 2)) - math.log(known / 2))


def _sum(first: float, free_of_first: float, second: float, free_of_second: float) -> LaunchSpread:
    """Two variances added up; the degrees of freedom are Satterthwaite's."""
    total = first + second
    return LaunchSpread(math.sqrt(total), total**2 / (first**2 / free_of_first + second**2 / free_of_second))


# Beyond so many values the binomial distribution is a normal one.
_EXACT = 500
_ONE_SIDE = 0.975  # of 95% on both


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of the median of what ``values`` were drawn from; None where there are too few to give one.

    Order statistics: exact whatever the distribution, as long as the values are independent.
    """
    ordered, count = sorted(values), len(values)
    if count > _EXACT:
        index = int(0.5 * (count - NormalDist().inv_cdf(_ONE_SIDE) * math.sqrt(count))) - 1
    else:
        index = order_statistic(count, _ONE_SIDE)
    return (ordered[index], ordered[-1 - index]) if index >= 0 else None
