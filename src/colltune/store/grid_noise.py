"""Simulated single repetitions of a recorded measurement.

A table holds medians. Where it also holds quantiles of its repetitions (min_us, p10_us, p25_us, p75_us, p90_us and
mean_us), repetitions are drawn from them: linear between the quantiles, with the maximum that gives the recorded mean.
Where it does not, they are drawn from the quantiles STATED, which are wider than those of the tables that record them:
there half of all repetitions lie within 0.5 to 1.5% of their median, and one in ten is more than 2 to 5% above it.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PROBABILITIES: Floats = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
STATED: Floats = np.array([0.93, 0.96, 0.98, 1.0, 1.02, 1.06, 1.8])
_WIDEST = 20.0  # no repetition is drawn slower than this many medians


def quantiles(minimum: float, p10: float, p25: float, median: float, p75: float, p90: float, mean: float) -> Floats:
    """(7,): over the median, at PROBABILITIES; NaN where any is missing."""
    known = np.maximum.accumulate(np.array([minimum, p10, p25, median, p75, p90]) / median)
    below = float((np.diff(PROBABILITIES[:6]) * 0.5 * (known[1:] + known[:-1])).sum())
    highest = 2.0 * (mean / median - below) / (1.0 - PROBABILITIES[5]) - known[5]
    return np.append(known, np.clip(highest, known[5], max(_WIDEST, known[5])))


def drawn(median_s: float, spread: Floats | None, count: int, seed: tuple[int, ...]) -> Floats:
    """(count,): seconds. ``spread`` (7,): as of ``quantiles``; STATED where it is None or not known.

    Equal seeds give equal repetitions, whoever asks.
    """
    shape = STATED if spread is None or np.isnan(spread).any() else spread
    shares = np.random.default_rng(seed).uniform(size=count)
    return np.asarray(median_s * np.interp(shares, PROBABILITIES, shape))
