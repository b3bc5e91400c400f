"""The posterior of every pair of a grid: means and covariances of log time, updated one measured pair at a time.

A median of a few repetitions is uncertain by itself. Notations: N scenarios, M choices; z (N, 3) as in
``colltune.learn.gaussian``; ``mean`` (N, M).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from colltune.core.sample import Sample
from colltune.learn.gaussian import (
    ChoiceProcess,
    Floats,
    Rows,
    Trend,
    fit_theta,
    kernel,
    kernel_diagonal,
    rough_variance,
)

# The median of many repetitions is uncertain by about this share: launches differ.
MEASURED_SD = 0.02
# The assumed variance of a single repetition's log time, and its weight in repetitions.
_ASSUMED_SD = 0.03
_ASSUMED_WEIGHT = 4.0
# The variance of a median divided by that of a mean, for normal noise.
_MEDIAN = np.pi / 2.0


def log_variances(samples: Sequence[Sequence[Sample]], of_look: float = MEASURED_SD**2) -> Floats:
    """(n,): the variance of the log of each of n medians, which are over the repetitions of ``samples``.

    ``of_look``: what the repetitions of one sample have in common, as a variance.
    """
    times = [[time_s for sample in own for time_s in sample.times_s] for own in samples]
    return of_look / np.array([max(len(own), 1) for own in samples]) + variances_of_medians(times)


def variances_of_medians(times: Sequence[Sequence[float]]) -> Floats:
    """(n,): the variance of the log of the median of each of n lists, by the spread of its repetitions.

    That is shrunk towards the spread of all, because three repetitions determine a spread badly.
    """
    count = np.array([len(own) for own in times], dtype=float)
    spread = np.array([robust_variance(own) for own in times])
    several = count > 2
    weight = np.where(several, count - 1.0, 0.0)
    # The median, because a few pairs can be very noisy (small messages on a loaded machine) where others are not.
    common = max(_ASSUMED_SD**2, float(np.median(spread[several]))) if several.any() else _ASSUMED_SD**2
    shrunk = (weight * spread + _ASSUMED_WEIGHT * common) / (weight + _ASSUMED_WEIGHT)
    # A time without repetitions beside it is a summary of many, as recorded tables hold them.
    return np.where(count > 1, _MEDIAN * shrunk / np.maximum(count, 1.0), 0.0)


def robust_variance(times_s: Sequence[float]) -> float:
    """Of the log time, from the half below the median: disturbances only ever add time."""
    if len(times_s) < 3:
        return 0.0
    in_order = sorted(times_s)
    last = len(in_order) - 1
    low, middle = in_order[round(0.25 * last)], in_order[round(0.5 * last)]
    return float((log(middle / low) / 0.674) ** 2)


# Log seconds assumed for every pair before the first measurement: 50 us.
_UNKNOWN = -10.0
# The most observations of one choice that the fit of the hyperparameters uses: more cost time and change little.
_FIT_ROWS = 16
# The least variance: that of a difference of rounded numbers may be none.
_LEAST = 1e-12


@dataclass(frozen=True)
class Observations:
    """n measured pairs: z (n, 3) of the scenario, its row in the grid (-1 outside), the choice's number, log time.

    ``noise``: the variance with which each log time is known.
    """

    z: Floats
    row: Rows
    number: Rows
    log_time: Floats
    noise: Floats

    @classmethod
    def of(
        cls, z: Floats, row: Sequence[int], number: Sequence[int], time_s: Sequence[float], noise: Floats | None = None
    ) -> Observations:
        """``noise``: MEASURED_SD for all where it is not given."""
        return cls(
            z.reshape(-1, 3),
            np.array(row, dtype=np.intp),
            np.array(number, dtype=np.intp),
            np.log(np.array(time_s, dtype=float)),
            np.full(len(time_s), MEASURED_SD**2) if noise is None else noise,
        )

    def __len__(self) -> int:
        return len(self.log_time)


class Posterior:
    """Independent Gaussian processes, one for each choice, over the rows of a grid."""

    def __init__(self, z: Floats, choices: int, seen: Observations, theta: Floats, freedom: float) -> None:
        """``theta``: the hyperparameters; ``freedom``: see ChoiceProcess."""
        self.theta, self._seen = theta, seen
        self._trend = Trend(seen.z, seen.number, seen.log_time, choices) if len(seen) else None
        residual = seen.log_time - self._trend.at(seen.z) if self._trend else seen.log_time
        self._of_choice = [np.flatnonzero(seen.number == number) for number in range(choices)]
        self._processes = [
            ChoiceProcess(theta, seen.z[rows], residual[rows], seen.noise[rows], freedom) for rows in self._of_choice
        ]
        self._prior = kernel(theta, z, z)
        self._prior[np.diag_indices(len(z))] += rough_variance(theta)
        self.mean = np.empty((len(z), choices))
        self.variance = np.empty((len(z), choices))
        # Of each choice the covariance is scale * prior - root.T @ root: a row more for each measurement, and no (N, N)
        # of its own.
        self._roots: list[Floats] = []
        cross, trend, grid = kernel(theta, seen.z, z), self._trend_at(z), np.arange(len(z))
        for number, process in enumerate(self._processes):
            mean, root, scale = self._posterior(number, cross[self._of_choice[number]], trend, grid)
            self.mean[:, number] = mean
            self._roots.append(math.sqrt(scale) * root)
            known = np.square(self._roots[number]).sum(axis=0)
            self.variance[:, number] = np.maximum(process.scale * np.diag(self._prior) - known, _LEAST)

    def covariance(self, number: int, rows: Rows, at: Rows | None = None) -> Floats:
        """(r, a): of one choice between the scenarios ``rows`` and ``at``; None: all."""
        root = self._roots[number]
        prior = self._prior[rows] if at is None else self._prior[np.ix_(rows, at)]
        return np.asarray(
            self._processes[number].scale * prior - root[:, rows].T @ (root if at is None else root[:, at])
        )

    def covariances(self, rows: Rows, numbers: Rows) -> Floats:
        """(c, N): of each of c choices between its scenario and all."""
        scales = np.array([process.scale for process in self._processes])
        covariances = scales[numbers][:, None] * self._prior[rows]
        for number in np.unique(numbers):
            mine, root = np.flatnonzero(numbers == number), self._roots[number]
            covariances[mine] -= root[:, rows[mine]].T @ root
        return np.asarray(covariances)

    def _trend_at(self, z: Floats) -> Floats:
        return self._trend.at(z) if self._trend else np.full(len(z), _UNKNOWN)

    def _posterior(self, number: int, cross: Floats, trend: Floats, grid_row: Rows) -> tuple[Floats, Floats, float]:
        """Mean, root and scale of one choice at n places; ``grid_row``: the row of the grid of each, -1 for none.

        ``cross`` (k, n): the covariance of the smooth part between its observations and these.
        """
        seen_row = self._seen.row[self._of_choice[number]]
        same = (seen_row[:, None] == grid_row[None, :]) & (grid_row >= 0)[None, :]
        process = self._processes[number]
        mean, root = process.mean_and_root(cross + rough_variance(self.theta) * same)
        return trend + mean, root, process.scale

    def at(self, z: Floats, grid_row: Rows, number: int) -> tuple[Floats, Floats]:
        """Means and variances (n,) of one choice at any ``z`` (n, 3), in the grid or not."""
        cross = kernel(self.theta, self._seen.z[self._of_choice[number]], z)
        mean, root, scale = self._posterior(number, cross, self._trend_at(z), grid_row)
        prior = kernel_diagonal(self.theta, z) + rough_variance(self.theta)
        return mean, np.asarray(np.maximum(scale * (prior - (root * root).sum(axis=0)), 0.0))

    def shifts_of(self, number: int, rows: Rows, at: Rows, noise: Floats) -> tuple[Floats, Floats]:
        """How far a measurement of one choice at each of r rows would move its mean at a scenarios, and at its own.

        (r, a) and (r,): as the standard deviation of the change, before the result is known; ``noise`` (r,): the
        variance of each result.
        """
        own = self.variance[rows, number]
        deviation = np.sqrt(own + noise)
        return np.abs(self.covariance(number, rows, at)) / deviation[:, None], own / deviation

    def update(self, row: int, number: int, log_time: float, noise: float) -> None:
        """Adds one measurement without a new fit."""
        [covariance] = self.covariance(number, np.array([row]))
        deviation = math.sqrt(max(float(covariance[row]), _LEAST) + noise)
        self.mean[:, number] += covariance / deviation**2 * (log_time - self.mean[row, number])
        root = covariance / deviation
        self._roots[number] = np.vstack([self._roots[number], root])
        self.variance[:, number] = np.maximum(self.variance[:, number] - root * root, _LEAST)


def fit_hyperparameters(theta: Floats, seen: Observations, choices: int, seed: int, iterations: int) -> Floats:
    """The hyperparameters that ``seen`` makes likely, ``iterations`` from ``theta`` on."""
    if not iterations or not len(seen):
        return theta
    residual = seen.log_time - Trend(seen.z, seen.number, seen.log_time, choices).at(seen.z)
    random = np.random.default_rng(seed)
    of_choice = (np.flatnonzero(seen.number == number) for number in range(choices))
    some = [rows if len(rows) <= _FIT_ROWS else random.choice(rows, _FIT_ROWS, False) for rows in of_choice]
    groups = [(seen.z[rows], residual[rows], seen.noise[rows]) for rows in some if len(rows)]
    return fit_theta(theta, groups, iterations)
