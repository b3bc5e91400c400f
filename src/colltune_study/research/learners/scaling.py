"""Output scalings of the published tuners (FACT, section IV.A): what a model learns in place of the time itself.

Notations: n observations; ``time_s`` (n,) in seconds; ``best_s`` (n,) the fastest time known at each one's scenario.
"""

from enum import StrEnum

import numpy as np

from colltune.learn.scenario_columns import Floats


class Scaling(StrEnum):
    """None of them changes which choice of a scenario comes first, except by what the model makes of it."""

    NONE = "none"  # seconds
    LOG = "log"  # the logarithm of the seconds
    STANDARDISED = "standardised"  # mean 0 and standard deviation 1 over all observations
    NORMALISED = "normalised"  # 0 to 1 over all observations
    ALGORITHM = "algorithm"  # time over the best one of the scenario
    LOG_ALGORITHM = "log-algorithm"  # its logarithm


def scale(time_s: Floats, best_s: Floats, scaling: Scaling) -> Floats:
    """(n,): the output to learn."""
    if scaling is Scaling.LOG:
        return np.asarray(np.log(time_s))
    if scaling is Scaling.STANDARDISED:
        return np.asarray((time_s - time_s.mean()) / max(float(time_s.std()), 1e-30))
    if scaling is Scaling.NORMALISED:
        return np.asarray((time_s - time_s.min()) / max(float(np.ptp(time_s)), 1e-30))
    if scaling is Scaling.ALGORITHM:
        return time_s / best_s
    if scaling is Scaling.LOG_ALGORITHM:
        return np.asarray(np.log(time_s / best_s))
    return time_s


def as_log_time(output: Floats, scaling: Scaling) -> Floats:
    """(n,): numbers in the order of ``output``, that differ by the logarithm of the ratio of times where it is known.

    Standardised and normalised outputs have lost the zero of time, so only their order is kept.
    """
    if scaling in (Scaling.NONE, Scaling.ALGORITHM):
        return np.asarray(np.log(np.maximum(output, 1e-12)))
    return output
