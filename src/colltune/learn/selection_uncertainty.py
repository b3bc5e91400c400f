"""The uncertainty of a selection: each choice is compared with the one that it would have to beat.

Notations: N scenarios, M choices; ``mean``, ``variance`` (N, M) of log time; ``legal`` (N, M): the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from colltune.learn.gaussian import Floats, Rows

Mask = NDArray[np.bool_]
# An extrapolated posterior is sometimes wrong by more than its deviation.
SURPRISE, TAIL = 0.05, 4.0
NEVER = 1e3  # log seconds of what cannot be selected


@dataclass(frozen=True)
class PairwiseComparisons:
    """For each pair (N, M): whether there is a choice to compare with, the distance of the means, and its deviation.

    The selected choice is compared with the runner-up, every other one with the selected. ``first``, ``weight`` (N,):
    what a loss in each scenario counts.
    """

    first: Rows
    rival: Mask
    distance: Floats
    deviation: Floats
    weight: Floats

    @classmethod
    def of(cls, mean: Floats, variance: Floats, legal: Mask, weight: Floats | None = None) -> PairwiseComparisons:
        every = np.arange(len(mean))
        usable = np.where(legal, mean, NEVER)
        first = usable.argmin(axis=1)
        usable[every, first] = 2.0 * NEVER
        second = usable.argmin(axis=1)
        selected, runner_up = (every, first), (every, second)
        rival = legal & legal[selected][:, None]
        rival[selected] &= legal[runner_up] & (first != second)
        distance, deviation = np.abs(mean - mean[selected][:, None]), np.sqrt(variance + variance[selected][:, None])
        distance[selected] = np.abs(mean[selected] - mean[runner_up])
        deviation[selected] = np.sqrt(variance[selected] + variance[runner_up])
        distance[~rival] = 0.0
        return cls(first, rival, distance, deviation, np.ones(len(mean)) if weight is None else weight)

    @cached_property
    def losses(self) -> Floats:
        """(N, M): the expected loss, in log time by the scenario's weight, of not switching to each choice."""
        losses = np.zeros(self.rival.shape)
        losses[self.rival] = tailed_loss(self.distance[self.rival], self.deviation[self.rival])
        return losses * self.weight[:, None]

    def gains(self, shifts: Floats, numbers: Rows) -> Floats:
        """(c,): what measuring each of c pairs is expected to save, summed over the scenarios, in units of log time.

        ``shifts`` (c, N): by how much each would move the mean of its choice, ``numbers`` (c,), at every scenario.
        """
        crossing = tailed_loss(self.distance[:, numbers].T, shifts + 1e-9)
        return np.asarray(np.where(self.rival[:, numbers].T, crossing, 0.0) @ self.weight)

    def is_sure(self, open_pairs: Mask, loss: float, margin: float, mistakes: float) -> bool:
        """Whether the expected mean log of selected over best time is ``loss`` at most, and few are above ``margin``.

        ``mistakes``: in which share of the scenarios they may be expected to. Only pairs with an open measurement
        count: of two measured choices with a small difference, either will do.
        """
        selected = np.arange(len(self.first)), self.first
        rival = self.rival & (open_pairs | open_pairs[selected][:, None])
        rival[selected] = False
        if np.where(rival, self.losses, 0.0).sum() / self.weight.sum() > loss:
            return False
        mistake = np.zeros(rival.shape)
        mistake[rival] = ndtr(-(self.distance[rival] + np.log1p(margin)) / self.deviation[rival])
        return bool(np.average(np.minimum(mistake.sum(axis=1), 1.0), weights=self.weight) <= mistakes)


def tailed_loss(distance: Floats, deviation: Floats) -> Floats:
    """As normal_loss, where a share SURPRISE of all posteriors is TAIL times as uncertain as it looks.

    Looked up: it is asked for millions of times. The error is below 1e-3 of the deviation.
    """
    place = (distance / deviation * _PER_UNIT).astype(np.intp)
    return np.asarray(deviation * _TAILED[np.minimum(place, len(_TAILED) - 1)])


def normal_loss(distance: Floats, deviation: Floats) -> Floats:
    """E[max(0, X)] for X normal with mean -``distance`` <= 0 and ``deviation``: the expected loss of not switching."""
    ratio = np.minimum(distance / deviation, 8.0)
    density = np.exp(-0.5 * ratio * ratio) / np.sqrt(2.0 * np.pi)
    return np.asarray(np.maximum(deviation * density - distance * ndtr(-ratio), 0.0))


_PER_UNIT = 256
_MIDDLES: Floats = (np.arange(8 * int(TAIL) * _PER_UNIT) + 0.5) / _PER_UNIT
_TAILED: Floats = np.append(
    normal_loss(_MIDDLES, np.ones_like(_MIDDLES)) + SURPRISE * normal_loss(_MIDDLES, np.full_like(_MIDDLES, TAIL)), 0.0
)


def far_ends(columns: Floats) -> Rows:
    """The rows of the largest size on the smallest shape and of the smallest size on the largest."""
    if not len(columns):
        return np.zeros(0, dtype=np.intp)
    low, high = columns.min(axis=0), columns.max(axis=0)
    unit = (columns - low) / np.where(high > low, high - low, 1.0)
    ends = []
    for shape, size in ((0.0, 1.0), (1.0, 0.0)):
        away = np.abs(unit[:, :2] - shape).sum(axis=1)
        rows = np.flatnonzero(away <= away.min() + 1e-9)
        ends.append(rows[np.argmax(unit[rows, 2]) if size else np.argmin(unit[rows, 2])])
    return np.unique(np.array(ends, dtype=np.intp))


def nearest(columns: Floats, shares: Floats) -> Rows:
    """The row nearest to each of ``shares`` (k, 3) of the way from the least to the greatest of each column."""
    if not len(columns):
        return np.zeros(0, dtype=np.intp)
    low, high = columns.min(axis=0), columns.max(axis=0)
    unit = (columns - low) / np.where(high > low, high - low, 1.0)
    return np.array([np.abs(unit - share).sum(axis=1).argmin() for share in shares], dtype=np.intp)
