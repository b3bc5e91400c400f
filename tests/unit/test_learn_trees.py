"""Forests: their shape and their seed, their variance and the stop by it, and their tuned hyperparameters."""

import sys

import numpy as np
import pytest

from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario
from colltune_study.research.learners import trees
from colltune_study.research.learners.published import PublishedSettings, flat
from colltune_study.research.learners.trees import TreeShape, jackknife_variance
from colltune_study.research.learners.tuned_parameters import TunedFactLearner, _folds, _slowdown, tune
from colltune_study.testing import small_space


def rows(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    inputs = np.column_stack([random.integers(0, 6, count), random.integers(0, 18, count)]).astype(np.float32)
    return inputs, np.log1p(inputs[:, 0]) + np.where(inputs[:, 1] > 9, inputs[:, 1], 2.0)


def test_a_tree_keeps_to_its_shape():
    inputs, output = rows()
    for tree in trees.grow(
        inputs, output, 5, 0, shape=trees.TreeShape(max_depth=3, min_samples_leaf=4, max_features=0.5)
    ):
        assert tree.max_depth <= 3
        leaves = tree.children_left == -1
        assert tree.n_node_samples[leaves].min() >= 4


def test_a_tree_is_grown_until_it_knows_every_row_it_was_given():
    inputs = np.arange(30, dtype=np.float32)[:, None]
    output = np.random.default_rng(2).normal(size=30)
    for tree in trees.grow(inputs, output, 5, 3):
        known = np.isclose(tree.predict(inputs)[:, 0], output)
        assert known.mean() > 0.5  # all rows that the bootstrap drew: 63% of them on average


def test_equal_seeds_give_equal_trees_and_hyperparameters_reach_them():
    inputs, output = rows()
    one, other = (trees.predict(trees.grow(inputs, output, 4, 7), inputs) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    flat = trees.predict(trees.grow(inputs, output, 4, 7, shape=trees.TreeShape(max_depth=1)), inputs)
    assert all(len(np.unique(tree)) <= 2 for tree in flat)


def test_the_closed_form_is_the_jackknife_with_every_tree_left_out_once():
    trees = np.random.default_rng(0).normal(size=(20, 6))
    count = len(trees)
    left_out = np.array([np.delete(trees, i, axis=0).mean(axis=0) for i in range(count)])
    by_hand = (count - 1) / count * ((left_out - trees.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(jackknife_variance(trees), by_hand, rtol=1e-12)


def test_flat_needs_all_the_last_changes_to_be_small():
    assert not flat([9.0, 1.0, 1.0], 0.01, 3)
    assert flat([9.0, 1.0, 1.0, 1.0], 0.01, 2)
    assert not flat([9.0, 1.0, 2.0, 2.0], 0.01, 2)


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
