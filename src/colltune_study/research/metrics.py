"""How good a selection is, on recorded times: the metrics of FACT, table II, and three more.

Notations: N scenarios, M choices; ``selected`` (N,): the column of the grid that was chosen at each scenario.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.space import Model
from colltune.store.grid import Floats, Grid

SIGNIFICANT = 0.10  # a choice slower than the best by more than this share is a significant mistake


@dataclass(frozen=True, slots=True)
class Metrics:
    """The quality of one selection. The slowdown of a scenario is the time of its selected choice over the best one.

    ``slowdown``: the mean; ``worst``: the greatest. ``accuracy``: the share of scenarios with the best choice.
    ``mistakes``: the share with a significant mistake. ``regret``: the mean slowdown weighted by the time that an
    application spends at each scenario, less 1; NaN where it calls none of them. ``r2``: of predicted log times against
    recorded ones, both less the mean of their scenario, because models may know ratios only; NaN where predictions
    are not finite. ``p2_slowdown``, ``nonp2_slowdown``: the means over message sizes that are powers of two, and
    over the others; NaN where there are none.
    """

    slowdown: float
    accuracy: float
    mistakes: float
    worst: float
    regret: float
    r2: float
    p2_slowdown: float
    nonp2_slowdown: float


def select(model: Model, grid: Grid) -> tuple[NDArray[np.intp], Floats]:
    """The fastest recorded choice by ``model`` (N,), and its predicted log times (N, M), NaN where not recorded."""
    predicted = np.full(grid.time_s.shape, np.nan)
    predicted[np.isfinite(grid.time_s)] = model.predict(grid.recorded).log_time
    return np.where(np.isnan(predicted), np.inf, predicted).argmin(axis=1), predicted


def slowdowns(selected: NDArray[np.intp], grid: Grid) -> Floats:
    """(N,): time of the selected choice over that of the fastest. One that was not recorded counts as the worst."""
    time_s = grid.time_s[np.arange(len(selected)), selected]
    return np.asarray(np.where(np.isnan(time_s), np.nanmax(grid.time_s, axis=1), time_s) / grid.best_s)


def score(
    selected: NDArray[np.intp],
    grid: Grid,
    predicted: Floats | None = None,
    weights: Floats | None = None,
    significant: float = SIGNIFICANT,
) -> Metrics:
    """The metrics of ``selected``. ``predicted`` (N, M): log times; without them there is no ``r2``.

    ``weights`` (N,): an application's calls per scenario; without them every scenario counts as one call.
    """
    slow = slowdowns(selected, grid)
    odd = np.array([scenario.size_bytes & (scenario.size_bytes - 1) != 0 for scenario in grid.scenarios])
    spent = grid.best_s * (np.ones(len(slow)) if weights is None else weights)
    return Metrics(
        slowdown=float(slow.mean()),
        accuracy=float((slow <= 1.0).mean()),
        mistakes=float((slow > 1.0 + significant).mean()),
        worst=float(slow.max()),
        regret=float((spent * slow).sum() / spent.sum() - 1.0) if spent.sum() > 0 else float("nan"),
        r2=float("nan") if predicted is None else _r2(predicted, np.log(grid.time_s)),
        p2_slowdown=float(slow[~odd].mean()) if (~odd).any() else float("nan"),
        nonp2_slowdown=float(slow[odd].mean()) if odd.any() else float("nan"),
    )


def _r2(predicted: Floats, truth: Floats) -> float:
    both = np.isfinite(predicted) & np.isfinite(truth)
    if not both.any() or np.isinf(predicted).any():
        return float("nan")
    own = [np.where(both, values, np.nan) for values in (predicted, truth)]
    centred = [values - np.nanmean(values, axis=1, keepdims=True) for values in own]
    unexplained = np.nansum((centred[0] - centred[1]) ** 2)
    return float(1.0 - unexplained / max(float(np.nansum(centred[1] ** 2)), 1e-30))
