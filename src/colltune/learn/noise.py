"""The uncertainty of a median of a few repetitions."""

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Sample

Floats = NDArray[np.float64]

# The median of many repetitions is uncertain by about this share: launches differ.
MEASURED_SD = 0.02
# The assumed variance of a single repetition's log time, and its weight in repetitions.
_ASSUMED_SD = 0.03
_ASSUMED_WEIGHT = 4.0
# The variance of a median divided by that of a mean, for normal noise.
_MEDIAN = np.pi / 2.0


def log_variances(samples: Sequence[Sequence[Sample]]) -> Floats:
    """(n,): the variance of the log of each of n medians, which are over the repetitions of ``samples``.

    The spread of a median's own repetitions is shrunk towards that of all medians, because three repetitions determine
    a spread badly.
    """
    times = [[time_s for sample in own for time_s in sample.times_s] for own in samples]
    count = np.array([len(own) for own in times], dtype=float)
    spread = np.array([robust_variance(own) for own in times])
    several = count > 2
    weight = np.where(several, count - 1.0, 0.0)
    # The median, because a few pairs can be very noisy (small messages on a loaded machine) where others are not.
    common = max(_ASSUMED_SD**2, float(np.median(spread[several]))) if several.any() else _ASSUMED_SD**2
    shrunk = (weight * spread + _ASSUMED_WEIGHT * common) / (weight + _ASSUMED_WEIGHT)
    # A time without repetitions beside it is a summary of many, as recorded tables hold them.
    return np.asarray(MEASURED_SD**2 + np.where(count > 1, _MEDIAN * shrunk / count, 0.0))


def robust_variance(times_s: Sequence[float]) -> float:
    """Of the log time, from the half below the median: disturbances only ever add time."""
    if len(times_s) < 3:
        return 0.0
    in_order = sorted(times_s)
    last = len(in_order) - 1
    low, middle = in_order[round(0.25 * last)], in_order[round(0.5 * last)]
    return float((log(middle / low) / 0.674) ** 2)
