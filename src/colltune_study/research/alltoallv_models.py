"""Models of the time of a setting of the all-to-all: what they are given, and the one that chooses.

X: (n, d) features, t: (n,) times in seconds; all fit log t. scikit-learn is imported where a model is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.alltoallv.lookup_table import Setting, Shape
from colltune_study.research.alltoallv_cost import work
from colltune_study.research.time_models import regressor, unseen_error

Array = NDArray[np.float64]
_FAMILIES = ("library", "linear", "pairwise", "bruck", "parata", "hieata", "hieata_staggered")
PLAIN = ("ranks", "ppn", "average_bytes", "radix", "batch", *_FAMILIES)
STATISTICS = ("average", "largest", "quartile_1", "quartile_3", "deviation", "skewness", "peers")


@dataclass(frozen=True, slots=True)
class Query:
    """A setting on a job, blocks of ``mean_bytes`` on average; ``statistics`` in the order of STATISTICS, if known."""

    shape: Shape
    setting: Setting
    mean_bytes: float
    statistics: tuple[float, ...] = ()


def plain_features(queries: Sequence[Query]) -> Array:
    """Of PLAIN: the parameters as they are, in powers of two where they are sizes, the algorithm one of seven."""
    rows = []
    for query in queries:
        setting, shape = query.setting, query.shape
        one_of = [float(setting.algorithm == family) for family in _FAMILIES]
        sizes = [shape.ranks, shape.ppn, query.mean_bytes + 1.0, setting.radix + 1, setting.batch + 1]
        rows.append([*np.log2(sizes), *one_of])
    return np.array(rows)


def _trees_of(seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(100, min_samples_leaf=2, random_state=seed)


class CostModel:
    """A family's cost for each message, wait, block and byte, times what trees make of what that misses."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._costs: dict[str, Array] = {}
        self._trees: Any = None

    def fit(self, queries: Sequence[Query], time_s: Array) -> CostModel:
        """Raises ValueError for no rows."""
        from scipy.optimize import nnls

        if not queries:
            raise ValueError("no timings to fit")
        rows, families = _work_rows(queries), [query.setting.algorithm for query in queries]
        for family in set(families):
            mine = np.array([name == family for name in families])
            weighted = rows[mine] / time_s[mine, None]  # relative errors count
            scale = weighted.max(axis=0) + 1e-300
            self._costs[family] = nnls(weighted / scale, np.ones(int(mine.sum())))[0] / scale
        missed = np.log(time_s / self._base(queries))
        self._trees = _trees_of(self._seed).fit(_relative_features(queries), missed)
        return self

    def predict(self, queries: Sequence[Query]) -> Array:
        """(n,) times in seconds; families that were not fitted are infinitely slow."""
        known = [query for query in queries if query.setting.algorithm in self._costs]
        found = np.full(len(queries), np.inf)
        if known:
            at = [i for i, query in enumerate(queries) if query.setting.algorithm in self._costs]
            found[at] = self._base(known) * np.exp(self._trees.predict(_relative_features(known)))
        return found

    def _base(self, queries: Sequence[Query]) -> Array:
        costs = np.array([self._costs[query.setting.algorithm] for query in queries])
        base: Array = np.maximum((_work_rows(queries) * costs).sum(axis=1), 1e-9)
        return base

    def choose(self, shape: Shape, settings: Sequence[Setting], mean_bytes: float) -> Setting:
        """The setting that is predicted to be fastest."""
        predicted = self.predict([Query(shape, setting, mean_bytes) for setting in settings])
        return settings[int(np.argmin(predicted))]


def _work_rows(queries: Sequence[Query]) -> Array:
    return np.array([(*work(query.shape, query.setting, query.mean_bytes).as_row(), 1.0) for query in queries])


def _relative_features(queries: Sequence[Query]) -> Array:
    """What a cost of each does not know: sizes of messages, how many are in flight, what is crowded."""
    rows = _work_rows(queries)
    per_message = rows[:, 3:5].sum(axis=1) / rows[:, 0]
    in_flight = rows[:, 0] / np.maximum(rows[:, 1], 1.0)
    extra = np.column_stack([per_message, in_flight, rows[:, 3] / (rows[:, 0] + 1.0), rows[:, 4] + 1.0])
    plain = plain_features(queries)
    return np.column_stack([np.log2(extra + 1.0), plain[:, 2:]])


def importances(queries: Sequence[Query], time_s: Array, seed: int, rounds: int = 5) -> dict[str, float]:
    """By how much a forest's error (in log time) grows if a statistic of block sizes is shuffled."""
    from sklearn.inspection import permutation_importance

    features = np.column_stack([plain_features(queries)[:, 3:], _statistics(queries)])
    model = regressor("forest", seed).fit(features, np.log(time_s))
    found = permutation_importance(
        model, features, np.log(time_s), n_repeats=rounds, random_state=seed, scoring="neg_mean_absolute_error"
    )
    return dict(zip(STATISTICS, map(float, found.importances_mean[-len(STATISTICS) :]), strict=True))


def reduced_errors(queries: Sequence[Query], time_s: Array, seed: int) -> dict[str, float]:
    """A forest's test error with all statistics of block sizes, and with each one alone."""
    settings, statistics = plain_features(queries)[:, 3:], _statistics(queries)
    found = {"all": unseen_error("forest", np.column_stack([settings, statistics]), time_s, seed)}
    for at, name in enumerate(STATISTICS):
        found[name] = unseen_error("forest", np.column_stack([settings, statistics[:, [at]]]), time_s, seed)
    return found


def _statistics(queries: Sequence[Query]) -> Array:
    return np.array([query.statistics for query in queries])
