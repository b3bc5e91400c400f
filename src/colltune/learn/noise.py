"""How well a median of a few repetitions is known."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Sample

Floats = NDArray[np.float64]

# A median of many repetitions is known to about this share of it: the next launch is another one.
MEASURED_SD = 0.02
# Variance of a single repetition's log time that is assumed with the weight of this many repetitions.
_ASSUMED_SD = 0.03
_ASSUMED_WEIGHT = 4.0
# The variance of a median over that of a mean, for normal noise.
_MEDIAN = np.pi / 2.0


def log_variances(samples: Sequence[Sequence[Sample]]) -> Floats:
    """(n,): the variance of the log of each of n medians, which are over the repetitions of ``samples``.

    The spread of a median's own repetitions is drawn towards that of all medians, for three repetitions say little
    about themselves.
    """
    times = [[time_s for sample in own for time_s in sample.times_s] for own in samples]
    count = np.array([len(own) for own in times], dtype=float)
    spread = np.array([robust_variance(own) for own in times])
    several = count > 2
    weight = np.where(several, count - 1.0, 0.0)
    # The median: where a few pairs are wild, as small messages on a loaded machine are, the others need not be.
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
