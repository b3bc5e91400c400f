"""The models that a campaign leaves, by collective."""

from collections.abc import Mapping, Sequence

import numpy as np

from colltune.core.model_answers import Model, Prediction
from colltune.core.sample import Choice, Scenario
from colltune.core.summary import StopReason
from colltune.learn.contract import Learner
from colltune.search.campaign import Outcome


class MeasuredModel:
    """Answers with the measured medians (seconds); what was not measured is infinitely slow, and so never chosen."""

    def __init__(self, medians: Mapping[tuple[Scenario, Choice], float]) -> None:
        self._medians = medians

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """``std`` is 0 where there is a measurement, infinite elsewhere."""
        times = np.array([self._medians.get(pair, np.inf) for pair in pairs], dtype=np.float64)
        return Prediction(np.log(times), np.where(np.isfinite(times), 0.0, np.inf))


def models_of(
    learners: Mapping[str, Learner],
    outcome: Outcome,
    medians: Mapping[tuple[Scenario, Choice], float],
    *,
    grid_alone: bool,
) -> dict[str, Model]:
    """What is decided by, per collective: what was measured, and where that is not all, the learner's model.

    ``grid_alone``: rules do not reach beyond the grid, so that a whole grid needs no model. Nor is there time for one
    where the job is being ended.
    """
    models: dict[str, Model] = {}
    for name, learner in learners.items():
        enough = grid_alone and (outcome.interrupted or outcome.reasons.get(name) == StopReason.WHOLE)
        known = any(scenario.collective == name for scenario, _ in medians)
        models[name] = learner.model() if known and not enough else MeasuredModel(medians)
    return models
