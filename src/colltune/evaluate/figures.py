"""The figures of the papers, drawn from simulated runs. matplotlib is imported only here, and only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from colltune.core.errors import InputError
from colltune.evaluate.compare import curve
from colltune.evaluate.simulate import GOOD_ENOUGH, Run

_AXIS = [float(cost) for cost in np.geomspace(1e-4, 1.0, 60)]
_LABELS = {
    "slowdown": "average slowdown",
    "mistakes": "share of significant mistakes",
    "accuracy": "classification accuracy",
    "worst": "worst slowdown",
    "regret": "regret",
    "r2": "R2",
}


def draw_curves(path: Path, runs: Sequence[Run], metric: str = "slowdown") -> None:
    """A metric against the share of the collection time, one panel per grid, one line with its band per strategy.

    Raises InputError where matplotlib is not installed or the metric has no figure.
    """
    if metric not in _LABELS:
        raise InputError(f"there is no figure of {metric!r}", f"Choose one of {', '.join(_LABELS)}")
    pyplot = _pyplot()
    grids = sorted({run.grid for run in runs})
    columns = min(4, len(grids))
    rows = -(-len(grids) // columns)
    figure, panels = pyplot.subplots(rows, columns, figsize=(4.0 * columns, 3.0 * rows), squeeze=False)
    for panel, grid in zip(panels.flat, grids, strict=False):
        for strategy in sorted({run.strategy for run in runs if run.grid == grid}):
            own = [run for run in runs if (run.grid, run.strategy) == (grid, strategy)]
            points = curve(own, metric, _AXIS)
            costs = [cost for cost, _ in points]
            panel.plot(costs, [value.median for _, value in points], label=strategy)
            panel.fill_between(costs, [v.low for _, v in points], [v.high for _, v in points], alpha=0.2)
        if metric == "slowdown":
            panel.axhline(GOOD_ENOUGH, color="grey", linestyle=":", linewidth=1)
            panel.set_ylim(0.98, 1.6)
        panel.set_xscale("log")
        panel.set_title(grid, fontsize=8)
    for panel in list(panels.flat)[len(grids) :]:
        panel.set_visible(False)
    panels[-1][0].set_xlabel("collection time / measuring everything")
    panels[0][0].set_ylabel(_LABELS[metric])
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("matplotlib is not installed", "Install colltune[evaluate]") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
