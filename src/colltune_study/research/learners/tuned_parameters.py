"""FACT with its optional last step: the hyperparameters of the models are tuned once the data are collected (IV.C).

Optuna searches, as DeepHyper did for the authors; the aim is theirs, a small average slowdown, here on measured
scenarios that the models were not given. Needs Optuna.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from colltune.core.extras import extra
from colltune.core.sample import Scenario
from colltune.core.space import Model, Space
from colltune.learn.history import Pair
from colltune.learn.scenario_columns import Floats
from colltune_study.research.learners.fact import FactLearner
from colltune_study.research.learners.published import ModelPerChoice, PublishedSettings
from colltune_study.research.learners.trees import TreeShape

# As many configurations as the authors tried (FACT, table IV); the first is the one without tuning.
TRIALS = 20
_FOLDS = 4
# With fewer scenarios there is nothing to hold back.
_FEWEST_SCENARIOS = 8


class TunedFactLearner(FactLearner):
    """Collects as FACT does; its model is the best of TRIALS configurations of forests, by cross-validation.

    Raises InputError where Optuna is not installed.
    """

    def __init__(
        self, space: Space, seed: int, settings: PublishedSettings | None = None, trials: int = TRIALS
    ) -> None:
        super().__init__(space, seed, settings)
        self._trials = trials
        _optuna()

    def model(self) -> Model:
        pairs, output = self.observed()
        time_s = np.array(list(self._history.times().values()))
        tuned = tune(pairs, time_s, output, self._settings, self._seed, self._trials)
        return ModelPerChoice(pairs, output, tuned, self._seed, self._history)


def tune(
    pairs: Sequence[Pair], time_s: Floats, output: Floats, settings: PublishedSettings, seed: int, trials: int = TRIALS
) -> PublishedSettings:
    """The settings with the least average slowdown on held-back scenarios; ``settings`` itself where none is better.

    ``time_s``, ``output`` (n,): the time of each pair and what of it is learnt.
    """
    optuna = _optuna()
    folds = _folds(pairs, seed)
    if len(folds) < _FOLDS:
        return settings

    def objective(trial: Any) -> float:
        return _slowdown(pairs, time_s, output, suggest(trial, settings), folds, seed)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial(as_tried(settings))
    study.optimize(objective, n_trials=trials)
    better = study.best_value < study.trials[0].value
    return suggest(optuna.trial.FixedTrial(study.best_params), settings) if better else settings


def as_tried(settings: PublishedSettings) -> dict[str, Any]:
    """Its hyperparameters by the names that ``suggest`` has for them."""
    return {"trees": settings.trees, **asdict(settings.shape)}


def suggest(trial: Any, settings: PublishedSettings) -> PublishedSettings:
    """``settings`` with the four hyperparameters that FACT tunes (IV.D) as a trial of Optuna has them."""
    return replace(
        settings,
        trees=trial.suggest_int("trees", 2, 100),
        shape=TreeShape(
            max_depth=trial.suggest_int("max_depth", 0, 20),
            min_samples_split=trial.suggest_int("min_samples_split", 2, 10),
            criterion=trial.suggest_categorical("criterion", ["squared_error", "absolute_error"]),
        ),
    )


def _folds(pairs: Sequence[Pair], seed: int) -> list[set[Scenario]]:
    """The scenarios in _FOLDS parts; none where there are too few."""
    scenarios = sorted({scenario for scenario, _ in pairs})
    if len(scenarios) < _FEWEST_SCENARIOS:
        return []
    order = np.random.default_rng(seed).permutation(len(scenarios))
    return [{scenarios[i] for i in order[first::_FOLDS]} for first in range(_FOLDS)]


def _slowdown(
    pairs: Sequence[Pair],
    time_s: Floats,
    output: Floats,
    settings: PublishedSettings,
    folds: Sequence[set[Scenario]],
    seed: int,
) -> float:
    """The mean over all scenarios of selected over best measured time, each selected without having been learnt."""
    slow = []
    for fold in folds:
        out = np.array([scenario in fold for scenario, _ in pairs])
        known = [pair for pair, held in zip(pairs, out, strict=True) if not held]
        asked = [pair for pair, held in zip(pairs, out, strict=True) if held]
        predicted = ModelPerChoice(known, output[~out], settings, seed, None).predict(asked).log_time
        times: dict[Scenario, list[tuple[float, float]]] = {}
        for (scenario, _), guess, truth in zip(asked, predicted, time_s[out], strict=True):
            times.setdefault(scenario, []).append((float(guess), float(truth)))
        slow += [min(entries)[1] / min(truth for _, truth in entries) for entries in times.values()]
    return float(np.mean(slow))


def _optuna() -> Any:
    optuna = extra("optuna", "tuning hyperparameters", "or use fact without tuning")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
