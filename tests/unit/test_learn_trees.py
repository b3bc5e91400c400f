"""Forests: their shape and their seed; their variance and the stop by it."""

import numpy as np

from colltune_study.research.learners import trees
from colltune_study.research.learners.published import flat
from colltune_study.research.learners.trees import jackknife_variance


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
