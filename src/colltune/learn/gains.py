"""What measuring any of many pairs is expected to gain, by a belief: to compare what several learners ask for.

Notations: c pairs, N scenarios. Where c times N is large, only a sample of the scenarios is looked at, beside the own
one of each pair: which point is worth more does not hang on every neighbour.
"""

from __future__ import annotations

import numpy as np

from colltune.learn.belief import Belief
from colltune.learn.gaussian import Floats, Rows
from colltune.learn.selection_uncertainty import Duels, tailed_loss

# Pairs times scenarios that are looked at: a few milliseconds.
_CELLS = 200_000


def expected_gains(belief: Belief, duels: Duels, places: Rows, numbers: Rows, noise: Floats) -> Floats:
    """(c,): the expected fall of the log times of the selected choices, summed over the N scenarios of ``belief``.

    ``places``, ``numbers`` (c,): the scenario and the choice of each pair; ``noise`` (c,): the variance of its result.
    Each pair is taken by itself.
    """
    total = len(belief.mean)
    step = -(-len(places) * total // _CELLS) or 1
    sample = np.arange(total)[step // 2 :: step]
    found = np.zeros(len(places))
    for number in np.unique(numbers):
        mine = np.flatnonzero(numbers == number)
        rows = places[mine]
        shifts, own_shift = belief.shifts_of(int(number), rows, sample, noise[mine])
        crossing = tailed_loss(duels.distance[sample, number][None, :], shifts + 1e-9)
        others = sample[None, :] != rows[:, None]
        crossing = np.where(others & duels.rival[sample, number][None, :], crossing, 0.0).sum(axis=1)
        own = np.where(duels.rival[rows, number], tailed_loss(duels.distance[rows, number], own_shift + 1e-9), 0.0)
        found[mine] = own + crossing * (total - 1) / np.maximum(others.sum(axis=1), 1)
    return found
