"""The posterior of every pair of a grid: means and covariances of log time, updated one measured pair at a time.

Notations: N scenarios, M choices; z (N, 3) as in ``colltune.learn.gaussian``; ``mean`` (N, M).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colltune.learn.gaussian import (
    PRIOR_MEAN,
    ChoiceProcess,
    Floats,
    Rows,
    Trend,
    fit_theta,
    kernel,
    kernel_diagonal,
    rough_variance,
)
from colltune.learn.noise import MEASURED_SD

# The most observations of one choice that the fit of the hyperparameters uses: more cost time and change little.
_FIT_ROWS = 16
# Log seconds assumed for every pair before the first measurement: 50 us.
_UNKNOWN = -10.0


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

    def __len__(self) -> int:
        return len(self.log_time)


class Belief:
    """Independent Gaussian processes, one for each choice, over the rows of a grid."""

    def __init__(
        self,
        z: Floats,
        choices: int,
        seen: Observations,
        theta: Floats | None,
        freedom: float,
        iterations: int,
        seed: int,
    ) -> None:
        """``theta``: hyperparameters to start from; they are fitted where ``iterations`` is above zero."""
        self._z, self._choices = z, choices
        self._seen = seen
        self.theta = PRIOR_MEAN if theta is None else theta
        self._trend = Trend(seen.z, seen.number, seen.log_time, choices) if len(seen) else None
        residual = seen.log_time - self._trend.at(seen.z) if self._trend else seen.log_time
        of_choice = [np.flatnonzero(seen.number == number) for number in range(choices)]
        if iterations and len(seen):
            random = np.random.default_rng(seed)
            some = [rows if len(rows) <= _FIT_ROWS else random.choice(rows, _FIT_ROWS, False) for rows in of_choice]
            groups = [(seen.z[rows], residual[rows], seen.noise[rows]) for rows in some if len(rows)]
            self.theta = fit_theta(self.theta, groups, iterations)
        self._of_choice = of_choice
        self._processes = [
            ChoiceProcess(self.theta, seen.z[rows], residual[rows], seen.noise[rows], freedom) for rows in of_choice
        ]
        prior = kernel(self.theta, z, z)
        prior[np.diag_indices(len(z))] += rough_variance(self.theta)
        self.mean = np.empty((len(z), choices))
        self._covariance: list[Floats] = []
        for number in range(choices):
            mean, root, scale = self._posterior(number, z, np.arange(len(z)))
            self.mean[:, number] = mean
            self._covariance.append(scale * (prior - root.T @ root))
        self.variance = np.empty((len(z), choices))  # (N, M)
        for number in range(choices):
            self._note_variance(number)

    def _note_variance(self, number: int) -> None:
        self.variance[:, number] = np.maximum(np.diag(self._covariance[number]), 1e-12)

    def _posterior(self, number: int, z: Floats, grid_row: Rows) -> tuple[Floats, Floats, float]:
        """Mean, root and scale of one choice at ``z``; ``grid_row``: the row of the grid of each, -1 for none."""
        seen_row = self._seen.row[self._of_choice[number]]
        same = (seen_row[:, None] == grid_row[None, :]) & (grid_row >= 0)[None, :]
        process = self._processes[number]
        mean, root = process.mean_and_root(z, same)
        trend = self._trend.at(z) if self._trend else np.full(len(z), _UNKNOWN)
        return trend + mean, root, process.scale

    def at(self, z: Floats, grid_row: Rows, number: int) -> tuple[Floats, Floats]:
        """Means and variances (n,) of one choice at any ``z`` (n, 3), in the grid or not."""
        mean, root, scale = self._posterior(number, z, grid_row)
        prior = kernel_diagonal(self.theta, z) + rough_variance(self.theta)
        return mean, np.asarray(np.maximum(scale * (prior - (root * root).sum(axis=0)), 0.0))

    def shifts(self, rows: Rows, numbers: Rows, noise: Floats) -> Floats:
        """(c, N): how far a measurement of each of c pairs would move the mean of its choice at every scenario.

        As the standard deviation of the change, before the result is known; ``noise`` (c,): the variance of each
        result.
        """
        moved = np.stack([self._covariance[number][row] for row, number in zip(rows, numbers, strict=True)])
        own = moved[np.arange(len(rows)), rows]
        return np.asarray(np.abs(moved) / np.sqrt(np.maximum(own, 1e-12) + noise)[:, None])

    def shifts_of(self, number: int, rows: Rows, at: Rows, noise: Floats) -> tuple[Floats, Floats]:
        """The same of one choice: (r, a) at the scenarios ``at``, and (r,) at the measured one, of each of r rows."""
        covariance = self._covariance[number]
        own = np.maximum(covariance[rows, rows], 1e-12)
        deviation = np.sqrt(own + noise)
        return np.abs(covariance[np.ix_(rows, at)]) / deviation[:, None], own / deviation

    def update(self, row: int, number: int, log_time: float | None, noise: float) -> None:
        """Adds one measurement without a new fit. None: it is pending, and taken to equal the posterior mean."""
        covariance = self._covariance[number]
        gain = covariance[row] / (covariance[row, row] + noise)
        if log_time is not None:
            self.mean[:, number] += gain * (log_time - self.mean[row, number])
        self._covariance[number] = covariance - np.outer(gain, covariance[row])
        self._note_variance(number)

    def copy(self) -> Belief:
        """A copy whose updates do not change this one."""
        other = object.__new__(Belief)
        other.__dict__.update(self.__dict__)
        other.mean, other.variance = self.mean.copy(), self.variance.copy()
        other._covariance = list(self._covariance)
        return other


def observations(
    z: Floats, row: Sequence[int], number: Sequence[int], time_s: Sequence[float], noise: Floats | None = None
) -> Observations:
    """``noise``: MEASURED_SD for all where it is not given."""
    return Observations(
        z.reshape(-1, 3),
        np.array(row, dtype=np.intp),
        np.array(number, dtype=np.intp),
        np.log(np.array(time_s, dtype=float)),
        np.full(len(time_s), MEASURED_SD**2) if noise is None else noise,
    )
