"""How sure it is that a choice is faster, from one number for each launch.

The number is the mean over a launch of log(time of the default / time of the choice). Launches are what is independent:
what lies inside one launch shares its placement and its modes. For the hypothesis "the mean is at most ``floor``" the
evidence is a Bayes factor: the likelihood of the launches under means above the floor (half a normal distribution of
``SPREAD``) over their likelihood at the floor. The variance of a launch is unknown in both; it has an inverse gamma
distribution about ``scale``, which is estimated from all regions together, and counts as ``CREDIT`` launches. Such a
ratio is an e-process: under the hypothesis the chance that it ever reaches 1 / alpha is at most alpha, however often
one looks and whenever one stops (Wang and Ramdas 2025, "Anytime-valid t-tests and confidence sequences for Gaussian
means with unknown variance"; Gruenwald, de Heide and Koolen 2024, "Safe testing", section 4). The chance is taken over
the distribution of the variance too; docs/design/proof.md has the rates with tails and modes that are not Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Chance that a region is called faster which is not.
ALPHA = 0.01
# Log speed-ups that are to be expected where there is one, and the greatest one that is looked at.
SPREAD, _GREATEST = 0.25, 1.5
# So many launches counts what is known of the variance from all regions.
CREDIT = 4.0
# Below so many launches nothing is decided, however clear it looks: half of the launches may have a mode of their own.
FEWEST_LAUNCHES = 3
# The variance between launches is never taken to be less: clocks and seconds are not better than that.
LEAST_SCALE = 0.02
_MEANS: Floats = np.geomspace(0.002, _GREATEST, 96)
_LOG_PRIOR: Floats = np.log(np.gradient(_MEANS)) - 0.5 * (_MEANS / SPREAD) ** 2
_LOG_PRIOR -= math.log(float(np.exp(_LOG_PRIOR).sum()))


def log_evidence(launches: Sequence[float], scale: float, floor: float) -> float:
    """Natural logarithm of the evidence that the mean of ``launches`` is above ``floor``; 0 where there are none.

    ``scale``: the standard deviation of a launch as all regions have it.
    """
    if len(launches) == 0:
        return 0.0
    above = np.asarray(launches, dtype=np.float64) - floor
    known = CREDIT * max(scale, LEAST_SCALE) ** 2
    at_floor = math.log(known + float(np.square(above).sum()))
    squares = np.square(above[:, None] - _MEANS[None, :]).sum(axis=0)
    likelihood = -0.5 * (CREDIT + len(above)) * (np.log(known + squares) - at_floor)
    terms = likelihood + _LOG_PRIOR
    greatest = float(terms.max())
    return greatest + math.log(float(np.exp(terms - greatest).sum()))


def is_above(launches: Sequence[float], scale: float, floor: float, alpha: float = ALPHA) -> bool:
    """Whether the mean is above ``floor``, with the error ``alpha`` over all looks together."""
    return len(launches) >= FEWEST_LAUNCHES and log_evidence(launches, scale, floor) >= math.log(1.0 / alpha)


def is_below(launches: Sequence[float], scale: float, floor: float, alpha: float) -> bool:
    """The same for a mean below ``floor``."""
    return is_above([-value for value in launches], scale, -floor, alpha)


def low_bound(launches: Sequence[float], scale: float, alpha: float = ALPHA) -> float:
    """The greatest floor that the mean is surely above, of a sequence of bounds that hold all together (1 - alpha).

    Minus infinity where there are too few launches to give one.
    """
    if len(launches) < FEWEST_LAUNCHES:
        return -math.inf
    middle = float(np.mean(launches))
    low, high = middle - 1.0, middle
    while not is_above(launches, scale, low, alpha):
        low -= 2.0 * (middle - low)
        if middle - low > 1e3:
            return -math.inf
    # The evidence falls as the floor rises.
    while high - low > 1e-4:
        half = 0.5 * (low + high)
        low, high = (half, high) if is_above(launches, scale, half, alpha) else (low, half)
    return low


def high_bound(launches: Sequence[float], scale: float, alpha: float = ALPHA) -> float:
    """The least floor that the mean is surely below; infinity where there are too few launches."""
    return -low_bound([-value for value in launches], scale, alpha)


def pooled_scale(regions: Sequence[Sequence[float]], guess: float = 0.1) -> float:
    """The standard deviation of a launch about the mean of its region, of all ``regions`` together.

    ``guess`` counts as one region that was seen in two launches, so that there is a figure from the start.
    """
    squares, freedom = guess**2, 1
    for launches in regions:
        if len(launches) > 1:
            squares += float(np.square(np.asarray(launches) - np.mean(launches)).sum())
            freedom += len(launches) - 1
    return max(math.sqrt(squares / freedom), LEAST_SCALE)
