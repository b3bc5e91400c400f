"""What the decision learner believes of any pair, measured or not."""

from collections.abc import Sequence

import numpy as np

from colltune.core.model_answers import Prediction
from colltune.core.sample import Choice
from colltune.learn.belief import Belief, Observations, fit_hyperparameters
from colltune.learn.gaussian import PRIOR_MEAN
from colltune.learn.scenario_columns import scenario_columns
from colltune.learn.told import History, Pair


class DecisionModel:
    """Absolute log times; a choice that failed is infinitely slow."""

    def __init__(
        self,
        number: dict[Choice, int],
        history: History,
        seen: Observations,
        seed: int,
        freedom: float,
        iterations: int,
    ) -> None:
        """``freedom``: see ChoiceProcess; ``iterations`` of the fit of the hyperparameters."""
        self._number, self._history = number, history
        pairs = list(history.times())
        self._row_of = {scenario: row for row, scenario in enumerate(dict.fromkeys(scenario for scenario, _ in pairs))}
        rows = np.array([self._row_of[scenario] for scenario, _ in pairs], dtype=np.intp)
        theta = fit_hyperparameters(PRIOR_MEAN, seen, len(number), seed, iterations)
        self._belief = Belief(
            np.zeros((0, 3)),
            len(number),
            Observations(seen.z, rows, seen.number, seen.log_time, seen.noise),
            theta,
            freedom,
        )

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        columns = scenario_columns([scenario for scenario, _ in pairs])
        rows = np.array([self._row_of.get(scenario, -1) for scenario, _ in pairs], dtype=np.intp)
        numbers = np.array([self._number[choice] for _, choice in pairs], dtype=np.intp)
        log_time, variance = np.zeros(len(pairs)), np.zeros(len(pairs))
        for number in np.unique(numbers):
            own = numbers == number
            log_time[own], variance[own] = self._belief.at(columns[own], rows[own], int(number))
        excluded = np.zeros(len(pairs), dtype=bool)
        if self._history.anything_failed:
            excluded[:] = [self._history.excluded(*pair) for pair in pairs]
        return Prediction(np.where(excluded, np.inf, log_time), np.sqrt(variance))
