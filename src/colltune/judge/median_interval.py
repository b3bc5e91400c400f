"""The confidence interval of a median."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from colltune.core.proven import order_statistic

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
