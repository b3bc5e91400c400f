"""The confidence interval of a median."""

import math
from collections.abc import Sequence
from math import comb
from statistics import NormalDist

# Beyond so many values the binomial distribution is a normal one.
_EXACT = 500


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Two-sided interval of the median of what ``values`` were drawn from; None where there are too few to give one.

    Order statistics: exact whatever the distribution, as long as the values are independent.
    """
    ordered, count = sorted(values), len(values)
    if count > _EXACT:
        index = int(0.5 * (count - NormalDist().inv_cdf(0.5 + 0.5 * confidence) * math.sqrt(count))) - 1
        return ordered[index], ordered[-1 - index]
    below, index = 0, -1
    for rank in range(count // 2):
        below += comb(count, rank)
        if 2 * below > (1.0 - confidence) * 2**count:
            break
        index = rank
    return (ordered[index], ordered[-1 - index]) if index >= 0 else None
