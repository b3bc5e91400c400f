"""Pairs that are looked at again, at another moment: how far their looks lie apart tells what a look has of its own.

The repetitions of one look share the machine's state of that moment. Where that moves times by more than they tell
apart, the fastest of many looks is half luck. Notations: N scenarios, M choices.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from colltune.core.sample import Sample
from colltune.learn.gaussian import Floats, Rows
from colltune.learn.posterior import MEASURED_SD, variances_of_medians
from colltune.learn.selection_uncertainty import Mask

# Of so many pairs that are known, one is looked at again, until so many were; then of more.
_ONE_OF, _ENOUGH, _LATER_ONE_OF = 16, 16, 128
# Above so much of its own, as a standard deviation of the log time, a further look tells more than more repetitions do:
# then looks are short, and there are up to so many at a pair.
UNSURE_SD, MOST_LOOKS = 2.0 * MEASURED_SD, 6
# What is known before any pair was looked at twice counts as so many of these. None counts as further apart than that:
# one that met something else altogether does not speak for all.
_WEIGHT, _MOST_APART = 4.0, 0.4


def look_variance(pairs: Sequence[Sequence[Sample]]) -> float:
    """What the repetitions of a look have in common, as a variance of the log time; at least MEASURED_SD**2.

    By the pairs with several samples: how far their medians differ beyond what repetitions do (a one-way analysis of
    variance).
    """
    squares = freedom = 0.0
    for own in (own for own in pairs if len(own) > 1):
        apart = min(float(np.log([sample.time_s for sample in own]).var(ddof=1)), _MOST_APART**2)
        squares += (len(own) - 1) * (apart - float(variances_of_medians([sample.times_s for sample in own]).mean()))
        freedom += len(own) - 1
    return max((_WEIGHT * MEASURED_SD**2 + squares) / (_WEIGHT + freedom), MEASURED_SD**2)


class LooksAgain:
    """``looks`` (N, M): how often each pair was looked at; whoever counts them shares it."""

    def __init__(self, looks: Rows, seed: int) -> None:
        self._looks, self._seed = looks, seed
        self._asked: Mask = np.zeros(looks.shape, dtype=bool)
        self._twice = 0  # how many pairs were asked for or looked at twice, when that was last counted

    def note_asked(self, row: int, number: int) -> None:
        """An answer that is the same to the last bit is no news, so what was asked for counts."""
        self._asked[row, number] |= self._looks[row, number] > 0

    def draw(
        self,
        rows: Rows,
        candidate: Mask,
        weights: Floats,
        cost: Floats,
        plan: Collection[tuple[int, int, int]],
        known: int,
    ) -> tuple[int, int] | None:
        """A pair that was looked at once, where one is due to be looked at again; as its place in ``rows``, its choice.

        The more likely, the greater the weight of its scenario, ``weights`` (N,), beside its ``cost`` (rows, M).
        ``plan``: what is asked for next, first two of each as the result. ``known``: how many pairs are.
        """
        due = min(known // _ONE_OF, _ENOUGH) + known // _LATER_ONE_OF
        if self._twice >= due:  # they grow only: a large space is not looked through in vain
            return None
        twice = self._asked | (self._looks > 1)
        once = (candidate & ~twice & (self._looks > 0))[rows]
        number = self._twice = int(np.count_nonzero(twice))
        for place, choice, _ in plan:
            number += int(once[place, choice])
            once[place, choice] = False
        if number >= due or not once.any():
            return None
        places, choices = np.nonzero(once)
        chance = weights[rows[places]] / cost[places, choices]
        random = np.random.default_rng([self._seed, known, number])
        drawn = random.choice(len(places), p=chance / chance.sum())
        return int(places[drawn]), int(choices[drawn])
