"""Scenarios and choices as numbers.

Notations: n pairs, m distinct choices; ``columns`` (n, 3): log2 nodes, log2 ppn, log2 (size + 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario

Floats = NDArray[np.float64]


def scenario_columns(scenarios: Sequence[Scenario]) -> Floats:
    """(n, 3): what matters spans orders of magnitude, so everything is a base-2 logarithm (ACCLAiM, IV.A)."""
    raw = np.array([(s.nodes, s.ppn, s.size_bytes + 1) for s in scenarios], dtype=float)
    return np.asarray(np.log2(raw.reshape(-1, 3)))


class ChoiceEncoding:
    """A choice, which has no order of its own, as two numbers: its mean output and its slope over the size.

    A split of a regression tree on a nominal variable is best among the splits of its levels ordered by their mean
    output (Breiman, Friedman, Olshen and Stone 1984, section 4.2), so the mean says in one column what a column
    for each choice would; the slope tells apart choices that are equal on average, one good at small sizes and
    one at large. Parameters are part of the choice, so k=2 and k=8 are placed by what was measured of each.
    """

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._index = {choice: i for i, choice in enumerate(choices)}
        self._algorithm = np.array([sorted({c.algorithm for c in choices}).index(c.algorithm) for c in choices])

    def numbers(self, choices: Sequence[Choice]) -> NDArray[np.intp]:
        """(n,): the position of each choice. Raises KeyError for a choice that was not given at the start."""
        return np.array([self._index[choice] for choice in choices], dtype=np.intp)

    def fit(self, numbers: NDArray[np.intp], log2_size: Floats, output: Floats) -> Floats:
        """(m, 2): mean and slope of every choice; one that was not measured takes those of its algorithm, or of all.

        Means are drawn towards the algorithm's by one observation's worth, slopes towards zero, so that a choice
        seen once is not taken at its word.
        """
        m = len(self._index)
        overall = float(output.mean())
        by_algorithm = _shrunk_mean(self._algorithm[numbers], output, len(self._algorithm), np.full(m, overall))
        mean = _shrunk_mean(numbers, output, m, by_algorithm[self._algorithm])
        centred = log2_size - log2_size.mean()
        cross = np.bincount(numbers, weights=centred * (output - mean[numbers]), minlength=m)
        square = np.bincount(numbers, weights=centred * centred, minlength=m)
        return np.stack([mean, cross / (square + 1.0)], axis=1)


def _shrunk_mean(group: NDArray[np.intp], value: Floats, count: int, towards: Floats) -> Floats:
    total = np.bincount(group, weights=value, minlength=count)
    seen = np.bincount(group, minlength=count)
    return np.asarray((total + towards) / (seen + 1.0))
