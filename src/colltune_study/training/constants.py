"""The constants of a machine's cost model, from its times.

They are fitted by non-negative least squares of relative errors, repeated with the weights of a robust loss.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import nnls

from colltune.learn.scenario_columns import Floats
from colltune.predict.cost import TERMS, Pair, terms

_ITERATIONS = 8
# Relative errors below this count by their square, beyond it by less.
_ROBUST = 0.05


def fit_constants(times: Mapping[Pair, float]) -> Floats | None:
    """(d,): seconds per unit of each of TERMS on one machine; None where fewer than two of its pairs are described."""
    pairs = list(times)
    rows = terms(pairs)
    seconds = np.array([times[pair] for pair in pairs], dtype=float)
    known = np.isfinite(rows).all(axis=1) & (seconds > 0)
    if known.sum() < 2:
        return None
    shares = rows[known] / seconds[known][:, None]
    scale = np.abs(shares).max(axis=0)
    used = scale > 0
    shares, scale = shares[:, used] / scale[used], scale[used]
    weight = np.ones(len(shares))
    own = np.zeros(int(used.sum()))
    for _ in range(_ITERATIONS):
        own, _ = nnls(shares * weight[:, None], weight)
        said = np.maximum(shares @ own, 1e-6)
        weight = 1.0 / np.sqrt(np.maximum(np.abs(np.log(said)), _ROBUST)) / np.sqrt(np.maximum(said, 0.3))
    values = np.zeros(len(TERMS))
    values[used] = own / scale
    return values


def pooled(constants: Sequence[Floats]) -> Floats:
    """(d,): the geometric mean; a constant that is zero on one machine counts as a ten-thousandth of the mean there."""
    values = np.array(constants)
    floor = 1e-4 * values.mean(axis=0) + 1e-16
    return np.asarray(np.exp(np.log(np.maximum(values, floor)).mean(axis=0)))
