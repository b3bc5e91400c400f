"""Six models of times, as the slides on autotuning the non-uniform all-to-all compare them (slides 58 and 68).

Of the rows 70% train, 10% choose each model's hyperparameters, 20% test. X: (n, d) features, t: (n,) times in seconds;
all fit log t. scikit-learn is imported where a model is made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_TRAIN, _VALIDATE = 0.7, 0.1
# By model, the hyperparameters that are tried; the first are scikit-learn's own, or nearly.
GRIDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "linear": ({},),
    "ridge": tuple({"alpha": alpha} for alpha in (1.0, 0.01, 0.1, 10.0)),
    "lasso": tuple({"alpha": alpha} for alpha in (0.01, 0.0001, 0.001, 0.1)),
    "tree": tuple({"max_depth": depth, "min_samples_leaf": leaf} for depth in (None, 12, 8) for leaf in (1, 2, 4)),
    "forest": tuple({"max_features": share, "min_samples_leaf": leaf} for share in (1.0, 0.5) for leaf in (1, 2)),
    "mlp": tuple(
        {"hidden_layer_sizes": layers, "alpha": alpha} for layers in ((64, 64), (128, 64)) for alpha in (1e-4, 1e-2)
    ),
}
COMPARED = tuple(GRIDS)


def regressor(name: str, seed: int, settings: Mapping[str, Any] | None = None) -> Any:
    """A fresh one of COMPARED, behind a scaling of the features where it needs one; by default with its first grid."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Lasso, LinearRegression, Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    given = dict(GRIDS[name][0] if settings is None else settings)
    if name == "linear":
        return LinearRegression(**given)
    if name == "tree":
        return DecisionTreeRegressor(random_state=seed, **given)
    if name == "forest":
        return RandomForestRegressor(100, random_state=seed, **given)
    scaled = {
        "ridge": lambda: Ridge(**given),
        "lasso": lambda: Lasso(**given),
        "mlp": lambda: MLPRegressor(max_iter=1000, random_state=seed, **given),
    }
    return make_pipeline(StandardScaler(), scaled[name]())


def unseen_error(name: str, features: Array, time_s: Array, seed: int) -> float:
    """Mean of |predicted - measured| / measured on rows that neither trained the model nor tuned it."""
    order = np.random.default_rng(seed).permutation(len(time_s))
    cuts = [int(len(order) * share) for share in (_TRAIN, _TRAIN + _VALIDATE)]
    train, validate, test = np.split(order, cuts)

    def error(model: Any, rows: NDArray[np.intp]) -> float:
        predicted = np.exp(model.predict(features[rows]))
        return float(np.mean(np.abs(predicted - time_s[rows]) / time_s[rows]))

    tried = [regressor(name, seed, some).fit(features[train], np.log(time_s[train])) for some in GRIDS[name]]
    best = min(tried, key=lambda model: error(model, validate)) if len(tried) > 1 else tried[0]
    return error(best, test)
