"""Forests as arrays: saved without pickle, and evaluated by numpy in milliseconds, without scikit-learn.

Notations: t trees, m nodes over all of them, k outputs; rows x (n, d).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.learn.scenario_columns import Floats

FIELDS = ("feature", "threshold", "left", "right", "missing_left", "value", "root")


@dataclass(frozen=True, eq=False)
class Forest:
    """Binary trees in one array. A row goes left where x[feature] <= threshold, a missing value as ``missing_left``.

    ``feature`` (m,): -1 at leaves; ``left``, ``right`` (m,): nodes; ``value`` (m, k): means at leaves;
    ``root`` (t,): where each tree begins.
    """

    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float32]
    root: NDArray[np.int32]

    def predict(self, x: Floats) -> Floats:
        """(t, n, k): what each tree says of each row."""
        # scikit-learn compares single precision, so a value on a threshold must be rounded alike.
        values = x.astype(np.float32)
        at = np.repeat(self.root, len(x))
        row = np.tile(np.arange(len(x)), len(self.root))
        # Only the rows that are at no leaf yet go on: most are at one long before the deepest tree ends.
        going = np.arange(len(at))
        while True:
            node = at[going]
            feature = self.feature[node]
            inner = feature >= 0
            if not inner.all():
                going, node, feature = going[inner], node[inner], feature[inner]
            if not len(going):
                return np.asarray(self.value[at], dtype=float).reshape(len(self.root), len(x), self.value.shape[1])
            own = values[row[going], feature]
            left = np.where(np.isnan(own), self.missing_left[node], own <= self.threshold[node])
            at[going] = np.where(left, self.left[node], self.right[node])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], columns: int) -> "Forest":
        """Raises ValueError for arrays that are no forest over ``columns`` columns: evaluation would not end."""
        forest = cls(*(arrays[name] for name in FIELDS))
        nodes = np.arange(len(forest.feature))
        inner = forest.feature >= 0
        sizes = {len(getattr(forest, name)) for name in FIELDS if name != "root"}
        if len(sizes) != 1 or forest.value.ndim != 2 or not np.isfinite(forest.value).all():
            raise ValueError("arrays of different lengths, or values that are not finite")
        if (forest.feature >= columns).any() or (forest.root < 0).any() or (forest.root >= len(nodes)).any():
            raise ValueError("a column or a root that is not there")
        for child in (forest.left, forest.right):
            # Children come after their parent in every tree that was written here, so a walk always ends.
            if ((child <= nodes) | (child >= len(nodes)))[inner].any():
                raise ValueError("a node that leads nowhere")
        return forest
