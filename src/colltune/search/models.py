"""The models that a campaign leaves, by collective."""

from collections.abc import Mapping

from colltune.core.choice import Choice
from colltune.core.model_answers import Model
from colltune.core.scenario import Scenario
from colltune.learn.contract import Learner
from colltune.learn.measured import MeasuredModel
from colltune.search.campaign import WHOLE, Outcome


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
        enough = grid_alone and (outcome.interrupted or outcome.reasons.get(name) == WHOLE)
        known = any(scenario.collective == name for scenario, _ in medians)
        models[name] = learner.model() if known and not enough else MeasuredModel(medians)
    return models
