"""The posterior of the decision learner for any pair, and what measuring any of many pairs is expected to gain by that.

Notations: c pairs, N scenarios. Where c times N is large, only a sample of the scenarios is looked at, beside the own
one of each pair: which point is worth more does not hang on every neighbour.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from colltune.core.sample import Choice
from colltune.core.space import Prediction
from colltune.learn.gaussian import PRIOR_MEAN, Floats, Rows
from colltune.learn.history import History, Pair
from colltune.learn.posterior import Observations, Posterior, fit_hyperparameters
from colltune.learn.scenario_columns import scenario_columns
from colltune.learn.selection_uncertainty import PairwiseComparisons, tailed_loss

# Where half of the measured times are less sure than this, as a standard deviation of their logarithms, the fastest of
# many is half luck, and a scenario says less of itself than those around it do.
_WEIGHED = 0.15


class DecisionModel:
    """Absolute log times; a choice that failed is infinitely slow."""

    def __init__(
        self, number: dict[Choice, int], history: History, seen: Observations, seed: int, freedom: float, steps: int
    ) -> None:
        """``freedom``: see ChoiceProcess; ``steps`` of the fit of the hyperparameters."""
        noise_sd = float(np.sqrt(np.median(seen.noise)))
        self._measured_sd = noise_sd if noise_sd > _WEIGHED else 0.0
        self._number, self._history = number, history
        pairs = list(history.times())
        self._row_of = {scenario: row for row, scenario in enumerate(dict.fromkeys(scenario for scenario, _ in pairs))}
        rows = np.array([self._row_of[scenario] for scenario, _ in pairs], dtype=np.intp)
        theta = fit_hyperparameters(PRIOR_MEAN, seen, len(number), seed, steps)
        self._posterior = Posterior(np.zeros((0, 3)), len(number), replace(seen, row=rows), theta, freedom)

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        columns = scenario_columns([scenario for scenario, _ in pairs])
        rows = np.array([self._row_of.get(scenario, -1) for scenario, _ in pairs], dtype=np.intp)
        numbers = np.array([self._number[choice] for _, choice in pairs], dtype=np.intp)
        log_time, variance = np.zeros(len(pairs)), np.zeros(len(pairs))
        for number in np.unique(numbers):
            own = numbers == number
            log_time[own], variance[own] = self._posterior.at(columns[own], rows[own], int(number))
        excluded = np.zeros(len(pairs), dtype=bool)
        if self._history.anything_failed:
            excluded[:] = [self._history.excluded(*pair) for pair in pairs]
        return Prediction(np.where(excluded, np.inf, log_time), np.sqrt(variance), self._measured_sd)


# Pairs times scenarios that are looked at: a few milliseconds.
_CELLS = 200_000


def expected_gains(
    posterior: Posterior, pairwise: PairwiseComparisons, places: Rows, numbers: Rows, noise: Floats
) -> Floats:
    """(c,): the expected fall of the log times of the selected choices, summed over the N scenarios by their weights.

    ``places``, ``numbers`` (c,): the scenario and the choice of each pair; ``noise`` (c,): the variance of its result.
    Each pair is taken by itself.
    """
    total = len(posterior.mean)
    step = -(-len(places) * total // _CELLS) or 1
    sample = np.arange(total)[step // 2 :: step]
    gains = np.zeros(len(places))
    for number in np.unique(numbers):
        mine = np.flatnonzero(numbers == number)
        rows = places[mine]
        shifts, shift = posterior.shifts_of(int(number), rows, sample, noise[mine])
        crossing = tailed_loss(pairwise.distance[sample, number][None, :], shifts + 1e-9)
        others = sample[None, :] != rows[:, None]
        crossing = np.where(others & pairwise.rival[sample, number][None, :], crossing, 0.0) @ pairwise.weight[sample]
        own = np.where(pairwise.rival[rows, number], tailed_loss(pairwise.distance[rows, number], shift + 1e-9), 0.0)
        gains[mine] = own * pairwise.weight[rows] + crossing * (total - 1) / np.maximum(others.sum(axis=1), 1)
    return gains


class Shortlist:
    """Candidates that are taken one by one, each as if those before it had come out as expected.

    Such a result moves no mean. It makes the mean of its own choice surer, and so less movable by what follows.
    ``covariance`` (c, N); ``rows``, ``numbers``, ``noise`` (c,) as above; ``worth`` (c,): what each gain counts.
    """

    def __init__(
        self, covariance: Floats, pairwise: PairwiseComparisons, rows: Rows, numbers: Rows, noise: Floats, worth: Floats
    ) -> None:
        self._pairwise, self._rows, self._numbers, self._noise, self._worth = pairwise, rows, numbers, noise, worth
        self._covariance = covariance
        self._score = self._scores(np.arange(len(rows)))

    def _scores(self, some: Rows) -> Floats:
        covariance = self._covariance[some]
        own = np.maximum(covariance[np.arange(len(some)), self._rows[some]], 0.0)
        shifts = np.abs(covariance) / np.sqrt(own + self._noise[some])[:, None]
        return np.asarray(self._pairwise.gains(shifts, self._numbers[some]) * self._worth[some])

    def take(self) -> int | None:
        """The index of the best candidate that is left; None where none is."""
        if not len(self._score) or self._score.max() < 0.0:
            return None
        best = int(self._score.argmax())
        alike = np.flatnonzero((self._numbers == self._numbers[best]) & (self._score >= 0.0))
        known = self._covariance[best].copy()
        shares = self._covariance[alike, self._rows[best]] / (max(known[self._rows[best]], 0.0) + self._noise[best])
        self._covariance[alike] -= shares[:, None] * known
        self._score[alike] = self._scores(alike)
        self._score[best] = -1.0
        return best
