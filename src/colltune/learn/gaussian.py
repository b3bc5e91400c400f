"""Gaussian processes of the logarithm of times: one for each choice, with common hyperparameters.

Notations: z (n, 3): log2 nodes, log2 ppn, log2 (size + 1) of n scenarios; M choices; ``theta`` (7,): logarithms of the
hyperparameters in the order of HYPERPARAMETERS.

The time of a choice at z is exp(pooled(z) + f(z) + e): ``pooled`` is a trend that all choices share, f a Gaussian
process with a constant, a linear and a Matern-5/2 part, and e what no smooth function explains (switches of protocol,
a mapping that happens to fit). e is not noise: measuring a pair reveals it there, and nowhere else. Background:
Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", chapters 2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Name, median and spread (standard deviation of the logarithm) of the prior. Amplitudes are in units of log time,
# lengths in doublings. The medians are about those of what fits recorded and simulated tables best, one table at a
# time (benchmarks/history/learning-trials.md).
HYPERPARAMETERS = (
    ("constant", 0.25, 0.7),
    ("linear", 0.12, 0.7),
    ("smooth", 0.7, 0.7),
    ("size_length", 6.0, 0.5),
    ("nodes_length", 3.6, 0.5),
    ("ppn_length", 2.5, 0.5),
    ("rough", 0.06, 0.7),
)
PRIOR_MEAN: Floats = np.array([np.log(median) for _, median, _ in HYPERPARAMETERS])
PRIOR_SD: Floats = np.array([spread for _, _, spread in HYPERPARAMETERS])

_LENGTHS = [4, 5, 3]  # the places of the lengths in theta, in the order of the columns of z
_LINEAR_CENTRE: Floats = np.array([3.0, 2.0, 10.0])
_LINEAR_SCALE = 4.0
_KNOTS = (6.0, 10.0, 14.0, 18.0)  # where the trend over log2 size may bend: from latency to bandwidth


def rough_variance(theta: Floats) -> float:
    return float(np.exp(2.0 * theta[6]))


def kernel(theta: Floats, z: Floats, other: Floats) -> Floats:
    """(n, k): the covariance of f between ``z`` (n, 3) and ``other`` (k, 3)."""
    return _parts(theta, z, other)[0]


def kernel_diagonal(theta: Floats, z: Floats) -> Floats:
    """(n,): the variance of f at ``z`` (n, 3)."""
    amplitude = np.exp(2.0 * theta[:3])
    linear = (((z - _LINEAR_CENTRE) / _LINEAR_SCALE) ** 2).sum(axis=1)
    return np.asarray(amplitude[0] + amplitude[1] * linear + amplitude[2])


def _parts(theta: Floats, z: Floats, other: Floats) -> tuple[Floats, Floats, Floats, list[Floats], Floats, Floats]:
    """The kernel, its linear and Matern parts without amplitude, the squared distances by column, radius and decay."""
    amplitude, lengths = np.exp(2.0 * theta[:3]), np.exp(theta[_LENGTHS])
    squared = [((z[..., :, None, at] - other[..., None, :, at]) / lengths[at]) ** 2 for at in range(3)]
    radius = np.sqrt(5.0 * (squared[0] + squared[1] + squared[2]))
    decay = np.exp(-radius)
    matern = (1.0 + radius + radius * radius / 3.0) * decay
    linear = ((z - _LINEAR_CENTRE) / _LINEAR_SCALE) @ ((other - _LINEAR_CENTRE) / _LINEAR_SCALE).swapaxes(-1, -2)
    return amplitude[0] + amplitude[1] * linear + amplitude[2] * matern, linear, matern, squared, radius, decay


# The z (r, 3), residuals (r,) and variances of the noise (r,) of one choice's observations.
Group = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class _Stack:
    """Observations of g choices, filled up to r each to be worked on at once: z (g, r, 3); y, noise, real (g, r)."""

    z: Floats
    y: Floats
    noise: Floats
    real: NDArray[np.bool_]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> _Stack:
        longest = max(len(y) for _, y, _ in groups)
        z, y, noise = (np.zeros((len(groups), longest, *more)) for more in ((3,), (), ()))
        real = np.zeros((len(groups), longest), dtype=bool)
        for place, (own_z, own_y, own_noise) in enumerate(groups):
            rows = slice(len(own_y))
            z[place, rows], y[place, rows], noise[place, rows], real[place, rows] = own_z, own_y, own_noise, True
        return cls(z, y, noise, real)


def _objective(theta: Floats, stack: _Stack) -> tuple[float, Floats]:
    """Negative logarithm of marginal likelihood times prior, and its gradient (ibid., eqs. 5.8 and 5.9).

    Padding rows are independent of all others, with variance 1 and value 0: they add nothing to either.
    """
    off = (theta - PRIOR_MEAN) / PRIOR_SD
    amplitude, rough = np.exp(2.0 * theta[:3]), rough_variance(theta)
    covariance, linear, matern, squared, radius, decay = _parts(theta, stack.z, stack.z)
    both = stack.real[:, :, None] & stack.real[:, None, :]
    covariance = np.where(both, covariance, 0.0)
    diagonal = np.arange(stack.y.shape[1])
    covariance[:, diagonal, diagonal] += np.where(stack.real, rough + stack.noise, 1.0)
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return 1e12, np.zeros_like(theta)
    inverse = np.linalg.inv(covariance)
    alpha = np.einsum("gij,gj->gi", inverse, stack.y)
    value = 0.5 * float(off @ off) + 0.5 * float((stack.y * alpha).sum())
    value += float(np.log(lower[:, diagonal, diagonal]).sum())
    weight = np.where(both, inverse - alpha[:, :, None] * alpha[:, None, :], 0.0)
    stretched = weight * (amplitude[2] * (5.0 / 3.0) * (1.0 + radius) * decay)
    gradient = off / PRIOR_SD + np.array(
        [
            amplitude[0] * weight.sum(),
            amplitude[1] * (weight * linear).sum(),
            amplitude[2] * (weight * matern).sum(),
            *(0.5 * (stretched * squared[column]).sum() for column in (2, 0, 1)),
            rough * weight[:, diagonal, diagonal].sum(),
        ]
    )
    return value, gradient


def fit_theta(start: Floats, groups: Sequence[Group], iterations: int) -> Floats:
    """The hyperparameters that explain ``groups`` best, one for each choice."""
    result = minimize(
        _objective,
        start,
        args=(_Stack.of(groups),),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(PRIOR_MEAN - 4.0 * PRIOR_SD, PRIOR_MEAN + 4.0 * PRIOR_SD, strict=True)),
        options={"maxiter": iterations},
    )
    return np.asarray(result.x, dtype=float)


def _trend_columns(z: Floats) -> Floats:
    bends = [np.maximum(0.0, z[:, 2] - knot) for knot in _KNOTS]
    return np.stack([np.ones(len(z)), *(z - _LINEAR_CENTRE).T, *bends], axis=1)


# How strongly each coefficient of the trend is shrunk to zero; the constant is free.
_TREND_RIDGE: Floats = 0.3 * np.array([1e-6, 0.05, 0.05, 0.05, *(0.5 for _ in _KNOTS)])
_OFFSET_RIDGE = 0.3


class Trend:
    """The part of log time that all choices share: linear in z, with bends over the size. Ridge regression."""

    def __init__(self, z: Floats, number: Rows, y: Floats, choices: int) -> None:
        offsets = np.eye(choices)[number]
        design = np.hstack([_trend_columns(z), offsets])
        ridge = np.diag(np.concatenate([_TREND_RIDGE, np.full(choices, _OFFSET_RIDGE)]))
        weights = np.linalg.solve(design.T @ design + ridge, design.T @ y)
        self._weights: Floats = np.asarray(weights[: len(_TREND_RIDGE)], dtype=float)

    def at(self, z: Floats) -> Floats:
        return np.asarray(_trend_columns(z) @ self._weights)


class ChoiceProcess:
    """The process of one choice, given its observations.

    Its covariance is scaled by how far its observations are from the expected ones: a choice that behaves unlike the
    others is predicted with less certainty away from its measurements (as in a Student-t process; Shah, Wilson and
    Ghahramani 2014). ``freedom``: the weight of the common scale, in observations. The scale is at least 1.
    """

    def __init__(self, theta: Floats, z: Floats, residual: Floats, noise: Floats, freedom: float) -> None:
        self.scale = 1.0
        if len(z):
            covariance = kernel(theta, z, z)
            covariance[np.diag_indices(len(z))] += rough_variance(theta) + noise
            self._lower: Floats = np.asarray(np.linalg.cholesky(covariance), dtype=float)
            self._white: Floats = np.asarray(solve_triangular(self._lower, residual, lower=True), dtype=float)
            self.scale = max(1.0, (freedom + float(self._white @ self._white)) / (freedom + len(z)))

    def mean_and_root(self, cross: Floats) -> tuple[Floats, Floats]:
        """The mean of f + e at n places, and V (k, n): the k observations reduce the covariance by V.T @ V.

        ``cross`` (k, n): the covariance of f + e between the observations and the places.
        """
        if not len(cross):
            return np.zeros(cross.shape[1]), np.zeros(cross.shape)
        root = np.asarray(solve_triangular(self._lower, cross, lower=True))
        return np.asarray(root.T @ self._white), root
