"""Random forests of a few hundred rows, by scikit-learn."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from colltune.learn.scenario_columns import Floats


@dataclass(frozen=True, slots=True)
class TreeShape:
    """How each tree grows, named as in RandomForestRegressor, with its defaults: what FACT tunes (IV.D).

    ``max_depth``: 0 for no bound. ``criterion``: what a split is to make least.
    """

    max_depth: int = 0
    min_samples_split: int = 2
    criterion: str = "squared_error"


FULLY_GROWN = TreeShape()


def grow(inputs: Floats, output: Floats, trees: int, seed: int, shape: TreeShape = FULLY_GROWN) -> list[Any]:
    """``trees`` regression trees of ``inputs`` (n, k) and ``output`` (n,), each of n drawn rows.

    The same trees as of ``RandomForestRegressor(trees, random_state=seed)``, in a third of the time: that class copies
    and checks a whole estimator for each tree.
    """
    import sklearn
    from sklearn.tree import DecisionTreeRegressor

    rows, random = len(output), np.random.RandomState(seed)
    narrow = np.ascontiguousarray(inputs, dtype=np.float32)
    grown = []
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        for _ in range(trees):
            own = random.randint(np.iinfo(np.int32).max)
            drawn = np.random.RandomState(own).randint(0, rows, rows, dtype=np.int32)
            tree = DecisionTreeRegressor(
                max_depth=shape.max_depth or None,
                min_samples_split=shape.min_samples_split,
                criterion=shape.criterion,
                random_state=own,
            )
            tree.fit(narrow, output, sample_weight=np.bincount(drawn, minlength=rows).astype(float), check_input=False)
            grown.append(tree.tree_)
    return grown


def predict(trees: list[Any], inputs: Floats) -> Floats:
    """(t, n): the predictions of t trees for ``inputs`` (n, k)."""
    narrow = np.ascontiguousarray(inputs, dtype=np.float32)
    return np.stack([tree.predict(narrow)[:, 0] for tree in trees])


def jackknife_variance(trees: Floats) -> Floats:
    """(n,): the jackknife variance of the mean over the t trees, which are ``trees`` (t, n).

    With x the mean, and x_i the mean without tree i: (t - 1) / t * sum_i (x_i - x)^2 (Efron and Stein 1981,
    "The jackknife estimate of variance", eq. 1.4). As x_i - x = (x - p_i) / (t - 1), the sum over leave-one-out means
    is sum_i (p_i - x)^2 / (t (t - 1)) and no tree has to be left out.
    """
    count = trees.shape[0]
    return np.asarray(trees.var(axis=0, ddof=1) / count)
