"""Classifiers on scenario and hardware: PML-MPI's random forest, the one that is shipped, and what they stand beside.

The shipped one is of extremely randomised trees (Geurts, Ernst and Wehenkel 2006): labels are noisy, and thresholds
that are drawn rather than fitted carry over better to more nodes than were trained on.

The paper's figures stand beside ours in what `colltune study train` prints (its tables II and III).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.core.hardware import Hardware
from colltune.predict.columns import COLUMNS, Floats, columns_of
from colltune.predict.splits import Part, Split, parts
from colltune.predict.table import Label

PAPER_MODELS = {
    "allgather": {"forest": 0.888, "boosting": 0.805, "neighbours": 0.641, "svm": 0.673},
    "alltoall": {"forest": 0.899, "boosting": 0.784, "neighbours": 0.619, "svm": 0.604},
}
PAPER_SPLITS = {
    "allgather": {Split.RANDOM: 0.888, Split.CLUSTER: 0.844, Split.NODES: 0.798},
    "alltoall": {Split.RANDOM: 0.899, Split.CLUSTER: 0.827, Split.NODES: 0.867},
}
_TREES = 100
_TOP = 5
_FOLDS = 3

Names = NDArray[np.str_]
MakeModel = Callable[[int], Any]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """x (n, d), the label of each row, and how the columns are named. A channel column is there for each channel."""

    x: Floats
    y: Names
    columns: tuple[str, ...]

    def only(self, names: Sequence[str]) -> LabelledRows:
        """The same rows with some of the columns."""
        places = [self.columns.index(name) for name in names]
        return LabelledRows(self.x[:, places], self.y, tuple(names))


def labelled_rows(labels: Sequence[Label], hardware: dict[str, Hardware], channels: bool = True) -> LabelledRows:
    """Clusters without features have missing ones. ``channels`` False leaves the MPI's transport out."""
    nothing = Hardware()
    x = columns_of([label.scenario for label in labels], [hardware.get(label.cluster, nothing) for label in labels])
    names = sorted({label.channel for label in labels} - {""}) if channels else []
    kinds = np.array([[float(label.channel == name) for name in names] for label in labels]).reshape(len(labels), -1)
    keep = ~np.isnan(x).all(axis=0)
    columns = (*np.array(COLUMNS)[keep], *(f"channel_{name}" for name in names))
    return LabelledRows(np.hstack([x[:, keep], kinds]), np.array([label.algorithm for label in labels]), columns)


def make_forest(seed: int, leaf: int = 2) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    # A third of the columns at each split: most rows differ in few of them.
    return RandomForestClassifier(_TREES, min_samples_leaf=leaf, max_features=0.4, random_state=seed)


def make_trees(seed: int, trees: int = _TREES, leaf: int = 2) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(trees, min_samples_leaf=leaf, max_features=0.6, random_state=seed)


def make_boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, early_stopping=False, random_state=seed)


def make_neighbours(_seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return _scaled(KNeighborsClassifier(n_neighbors=9, weights="distance"))


def make_svm(seed: int) -> Any:
    from sklearn.svm import SVC

    return _scaled(SVC(C=10.0, random_state=seed))


def _scaled(model: Any) -> Any:
    """With the median in place of what is missing, and every column in units of its standard deviation."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler(), model)


MODELS: dict[str, MakeModel] = {
    "extra trees": make_trees,
    "forest": make_forest,
    "boosting": make_boosting,
    "neighbours": make_neighbours,
    "svm": make_svm,
}


def predicted(rows: LabelledRows, held: Sequence[Part], make: MakeModel, seed: int) -> tuple[Names, NDArray[np.bool_]]:
    """What a model says of each row that it was not trained on, and which rows these are."""
    said, tested = rows.y.copy(), np.zeros(len(rows.y), dtype=bool)
    for part in held:
        model = make(seed).fit(rows.x[part.train], rows.y[part.train])
        said[part.test] = model.predict(rows.x[part.test])
        tested[part.test] = True
    return said, tested


def accuracy(rows: LabelledRows, held: Sequence[Part], make: MakeModel, seed: int) -> float:
    """Share of the rows held back that are predicted right; over all clusters where each is held back in turn."""
    said, tested = predicted(rows, held, make, seed)
    return float((said == rows.y)[tested].mean())


def area_under_curve(rows: LabelledRows, make: MakeModel, seed: int) -> float:
    """AUC in cross-validation, each class against the rest; NaN where a class has too few rows for the folds.

    Only the order of a class's scores enters, so a model without probabilities is asked for its distances.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    classes, counts = np.unique(rows.y, return_counts=True)
    if min(counts) < _FOLDS or len(classes) < 2:
        return float("nan")
    found = []
    for train, test in StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(rows.x, rows.y):
        model = make(seed).fit(rows.x[train], rows.y[train])
        scores = np.asarray((getattr(model, "predict_proba", None) or model.decision_function)(rows.x[test]))
        if scores.ndim == 1:
            scores = np.stack([-scores, scores], axis=1)
        found += [roc_auc_score(rows.y[test] == name, scores[:, place]) for place, name in enumerate(model.classes_)]
    return float(np.mean(found))


def importances(rows: LabelledRows, seed: int) -> dict[str, float]:
    """The decrease of the Gini impurity by each column, the greatest first; they sum to 1."""
    weight = make_forest(seed).fit(rows.x, rows.y).feature_importances_
    order = np.argsort(-weight)
    return {rows.columns[place]: float(weight[place]) for place in order}


def top_five(rows: LabelledRows, seed: int) -> LabelledRows:
    """The rows with the five most important columns, to which the paper restricts itself against overfitting."""
    return rows.only(list(importances(rows, seed))[:_TOP])


def split_accuracies(labels: Sequence[Label], rows: LabelledRows, make: MakeModel, seed: int) -> dict[Split, float]:
    """Accuracy under each of the splits that the labels allow."""
    found = {}
    for split in Split:
        try:
            found[split] = accuracy(rows, list(parts(labels, split, seed)), make, seed)
        except ValueError:
            continue  # a single cluster, or a single node count
    return found
