"""Tuning the hyperparameters of FACT's forests after the data are collected."""

import sys

import numpy as np
import pytest

from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune_study.research.learners.published import PublishedSettings
from colltune_study.research.learners.trees import TreeShape
from colltune_study.research.learners.tuned_parameters import TunedFactLearner, _folds, _slowdown, tune
from colltune_study.testing import small_space

CHOICES = (Choice("a"), Choice("b"), Choice("c"))


def noisy(count: int) -> tuple[list[tuple[Scenario, Choice]], np.ndarray, np.ndarray]:
    """Which choice is best changes once over the size; noise of 20% makes fully grown trees learn it by heart."""
    random = np.random.default_rng(0)
    scenarios = [Scenario("bcast", n, 1, 2**p) for n in range(2, 9) for p in range(18)][:count]
    pairs, times = [], []
    for scenario in scenarios:
        for number, choice in enumerate(CHOICES):
            base = (1.0 + number) * 1e-6 + scenario.size_bytes * 1e-9 / (1 + number)
            pairs.append((scenario, choice))
            times.append(base * random.lognormal(0, 0.2))
    time_s = np.array(times)
    best = np.repeat(time_s.reshape(-1, 3).min(axis=1), 3)
    return pairs, time_s, np.log(time_s / best)


def test_the_tuned_models_select_no_worse_on_what_they_were_not_given():
    pairs, time_s, output = noisy(60)
    before = PublishedSettings(trees=10, shape=TreeShape(max_depth=1, max_features=0.34))
    after = tune(pairs, time_s, output, before, seed=1, trials=4)
    folds = _folds(pairs, 1)
    assert after != before
    assert _slowdown(pairs, time_s, output, after, folds, 1) <= _slowdown(pairs, time_s, output, before, folds, 1)


def test_with_few_scenarios_nothing_is_tuned():
    settings = PublishedSettings()
    assert tune(*noisy(5), settings, seed=0) is settings


def test_equal_seeds_tune_alike():
    one, other = (tune(*noisy(12), PublishedSettings(trees=2), seed=3, trials=2) for _ in range(2))
    assert one == other


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match="needs optuna"):
        TunedFactLearner(small_space(), 0)
