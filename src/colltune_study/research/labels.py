"""PML-MPI's own study on its own kind of data: which algorithm MVAPICH2's tables name, from scenario and hardware.

Data: the tables of MVAPICH2 2.3.7 for 22 machines (mvapich2_labels.csv.gz), with processor and link of each
(mvapich2_machines.csv; what is unknown is missing, and the median of the machines for learners that need a value).
Random forest, gradient boosting, nearest neighbours and a support vector machine, each with the hyperparameters that
have the greatest AUC (one against the rest, by frequency) in three folds of some rows. Accuracy by three
splits as in the paper: 30% of the rows, of whole machines (five folds of machines), and the greatest node counts, about
30% of the rows. ``ceiling_*``: how often two tables of one machine, for two channels, name the same algorithm.
Importances of the random forest: Gini, and by permutation in the rows that were held back at random.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from colltune_study.research.figures import COLOURS, new_panels, save

HARDWARE = ["link_gbits", "sockets", "cores", "clock_ghz", "l3_mib", "memory_gbytes"]
SCENARIO = ["nodes", "ppn", "ranks", "msg_bytes"]
COLUMNS = [*SCENARIO, *HARDWARE]
HELD = 0.3


def learners() -> dict[str, list[Any]]:
    """Candidates of each kind: the one with the greatest AUC is taken."""

    def scaled(last: Any) -> Any:
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), last)

    return {
        "forest": [
            make_pipeline(
                SimpleImputer(strategy="median"), RandomForestClassifier(200, max_features=some, random_state=0)
            )
            for some in ("sqrt", 0.6, 1.0)
        ],
        "boosting": [
            HistGradientBoostingClassifier(max_leaf_nodes=leaves, max_iter=80, random_state=0) for leaves in (15, 63)
        ],
        "neighbours": [scaled(KNeighborsClassifier(k, weights="distance")) for k in (1, 5, 15)],
        "svm": [scaled(SVC(C=c, gamma=gamma)) for c, gamma in ((10, "scale"), (100, 1.0))],
    }


def read(data: Path, collective: str) -> pd.DataFrame:
    """Rows of one collective, sizes and counts as logarithms."""
    labels = pd.read_csv(data / "mvapich2_labels.csv.gz")
    machines = pd.read_csv(data / "mvapich2_machines.csv")
    own = labels[labels.collective == collective].merge(machines, on="machine")
    own = own.assign(nodes=np.maximum(own.ranks / own.ppn, 1.0))
    own[SCENARIO] = np.log2(own[SCENARIO].clip(lower=1.0))
    seen = own.algorithm.map(own.algorithm.value_counts())
    return own[seen >= 20].reset_index(drop=True)


def probabilities(learner: Any, x: pd.DataFrame) -> np.ndarray:
    """Of each class; of a support vector machine, which has none, what orders rows as its decision does."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(x))
    return np.asarray(softmax(learner.decision_function(x), axis=1))


def tuned(name: str, own: pd.DataFrame, rows: int) -> tuple[Any, float]:
    """The candidate with the greatest mean AUC over three folds, and that AUC."""
    some = own.sample(min(rows, len(own)), random_state=0)
    some = some[some.algorithm.map(some.algorithm.value_counts()) >= 6]
    x, y = some[COLUMNS], some.algorithm
    best: tuple[Any, float] = (None, -1.0)
    for candidate in learners()[name]:
        scores = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(x, y):
            said = probabilities(candidate.fit(x.iloc[train], y.iloc[train]), x.iloc[test])
            scores.append(
                roc_auc_score(y.iloc[test], said, multi_class="ovr", average="weighted", labels=candidate.classes_)
            )
        if np.mean(scores) > best[1]:
            best = candidate, float(np.mean(scores))
    return best


def splits(own: pd.DataFrame) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Rows to learn from and rows to be judged by."""
    every = np.arange(len(own))
    at_random = train_test_split(every, test_size=HELD, random_state=0, stratify=own.algorithm)
    counts = np.sort(own.nodes)
    far = (own.nodes >= counts[int((1.0 - HELD) * len(counts))]).to_numpy()
    machines = list(GroupKFold(5).split(every, groups=own.machine))
    return {"random": [tuple(at_random)], "cluster": machines, "node": [(every[~far], every[far])]}


def accuracy(learner: Any, own: pd.DataFrame, parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    right = [
        (learner.fit(own[COLUMNS].iloc[train], own.algorithm.iloc[train]).predict(own[COLUMNS].iloc[test])
         == own.algorithm.iloc[test].to_numpy())
        for train, test in parts
    ]  # fmt: skip
    return float(np.concatenate(right).mean())


def ceiling(own: pd.DataFrame) -> float:
    """How often two channels of one machine agree, where both have the scenario."""
    same = []
    for _, some in own.groupby(["machine", *SCENARIO]):
        by_channel = some.groupby("channel").algorithm.first()
        same += [one == other for one, other in combinations(by_channel, 2)]
    return float(np.mean(same))


def importances(learner: Any, own: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Of the random forest, each five greatest first."""
    [(train, test)] = splits(own)["random"]
    learner.fit(own[COLUMNS].iloc[train], own.algorithm.iloc[train])
    shown = permutation_importance(
        learner, own[COLUMNS].iloc[test], own.algorithm.iloc[test], n_repeats=3, random_state=0
    )
    found = {"gini": learner[-1].feature_importances_, "permutation": shown.importances_mean}
    return {
        kind: {COLUMNS[place]: round(float(values[place]), 4) for place in np.argsort(-values)}
        for kind, values in found.items()
    }


def forest_importances(data: Path, collective: str, rows: int) -> dict[str, dict[str, float]]:
    """Of the random forest with the greatest AUC on at most ``rows`` rows."""
    own = read(data, collective)
    return importances(tuned("forest", own, rows)[0], own)


def draw_importances(found: dict[str, dict[str, float]], title: str, path: Path) -> None:
    """Bars of each kind of importance, a pair for each column."""
    figure, [panel] = new_panels(1, width=6.0, height=3.2)
    columns = list(next(iter(found.values())))
    for number, (kind, values) in enumerate(found.items()):
        places = np.arange(len(columns)) + 0.4 * number
        panel.bar(places, [values[column] for column in columns], 0.4, label=kind, color=COLOURS[number])
    panel.set_xticks(np.arange(len(columns)) + 0.2, columns, rotation=30, fontsize=8)
    panel.set_ylabel("importance", fontsize=8)
    panel.set_title(title, fontsize=9)
    panel.legend(fontsize=8, frameon=False)
    save(figure, path)


def compare_learners(
    data: Path, rows: int, listen: Callable[[str], None]
) -> tuple[dict[str, float], dict[str, dict[str, dict[str, float]]]]:
    """Figures by name, and importances by collective, kind and column. ``rows``: at most, for the hyperparameters."""
    figures: dict[str, float] = {}
    shown: dict[str, dict[str, dict[str, float]]] = {}
    for collective in ("allgather", "alltoall"):
        own = read(data, collective)
        figures[f"ceiling_{collective}"] = ceiling(own)
        for name in learners():
            best, figures[f"auc_{name}_{collective}"] = tuned(name, own, rows)
            for split, parts in splits(own).items():
                figures[f"{split}_{name}_{collective}"] = accuracy(best, own, parts)
            if name == "forest":
                shown[collective] = importances(best, own)
            listen(f"{collective}, {name}: {figures[f'random_{name}_{collective}']:.3f} of rows at random")
    return {name: round(value, 4) for name, value in figures.items()}, shown
