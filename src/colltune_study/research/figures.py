"""Curves of simulated tunings as pictures. matplotlib is imported only here, and only when asked for."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from colltune.core.errors import InputError
from colltune.core.extras import extra
from colltune_study.research.compare import by_strategy
from colltune_study.research.simulate import GOOD_ENOUGH, Run
from colltune_study.research.tunings_summary import METRICS, Axis, Curve, curve, places_on

LABELS = {
    "slowdown": "average slowdown",
    "mistakes": "significant mistakes",
    "accuracy": "classification accuracy",
    "worst": "worst slowdown",
    "regret": "regret, weighted by calls",
    "r2": "R2 of log times",
}
AXIS_LABELS = {Axis.TIME: "collection time / measuring every pair", Axis.PAIRS: "pairs measured / all pairs"}
# Okabe and Ito's palette: told apart with every kind of colour vision. The style of the line says the same again.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), "-", "--")
_DPI = 100
_COLOURS_KEPT = 256


def draw_curves(
    path: Path, runs: Sequence[Run], metric: str = "slowdown", axis: Axis = Axis.TIME, good: float = GOOD_ENOUGH
) -> None:
    """A metric along an axis, one panel per grid, one line with its interval per strategy.

    The format follows the file name. Raises InputError where matplotlib is not installed or the metric has no figure.
    """
    if metric not in METRICS:
        raise InputError(f"there is no figure of {metric!r}", f"Choose one of {', '.join(METRICS)}")
    groups = by_strategy(runs)
    grids = list(dict.fromkeys(grid for grid, _ in groups))
    strategies = list(dict.fromkeys(strategy for _, strategy in groups))
    figure, panels = new_panels(len(grids))
    for panel, grid in zip(panels, grids, strict=True):
        own = [run for run in runs if run.grid == grid]
        places = places_on(axis, own)
        for number, strategy in enumerate(strategies):
            if (grid, strategy) in groups:
                line = curve(groups[grid, strategy], metric, axis, places)
                draw_curve(panel, line, number, f"{strategy} ({line.seeds} seeds)")
        if metric == "slowdown":
            mark_good(panel, good)
        panel.set_xscale("log")
        panel.set_title(grid, fontsize=9)
        panel.grid(alpha=0.25, linewidth=0.5)
        panel.set_xlabel(AXIS_LABELS[axis], fontsize=8)
        panel.set_ylabel(LABELS[metric], fontsize=8)
    panels[0].legend(fontsize=7, frameon=False)
    figure.suptitle(
        f"{LABELS[metric].capitalize()}: median over the seeds and its 95% interval (bootstrap)", fontsize=10
    )
    save(figure, path)


def draw_curve(panel: Any, line: Curve, number: int, label: str) -> None:
    """One line with its interval; ``number`` fixes colour and style."""
    colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    panel.plot(line.places, line.median, label=label, color=colour, linestyle=style, linewidth=1.5)
    panel.fill_between(line.places, line.low, line.high, color=colour, alpha=0.15, linewidth=0)


def mark_good(panel: Any, good: float) -> None:
    """Cuts the axis where slowdowns no longer matter, and marks the one that is good enough."""
    panel.axhline(good, color="grey", linestyle=":", linewidth=1)
    top = max(1.15, min(2.0, panel.get_ylim()[1]))
    panel.set_ylim(1.0 - 0.02 * (top - 1.0), top)


def new_panels(count: int, width: float = 3.8, height: float = 2.9, columns: int = 4) -> tuple[Any, list[Any]]:
    """A figure with ``count`` panels, and these. Raises InputError where matplotlib is not installed."""
    pyplot = pyplot_for_files()
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, panels = pyplot.subplots(rows, columns, figsize=(width * columns, height * rows + 0.4), squeeze=False)
    flat = list(np.asarray(panels).flat)
    for panel in flat[count:]:
        panel.set_visible(False)
    return figure, flat[:count]


def save(figure: Any, path: Path) -> None:
    """Writes the figure in the format of the file name, without a time in it: equal data give equal files."""
    pyplot = pyplot_for_files()
    figure.tight_layout()
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    image = io.BytesIO()
    try:
        with pyplot.rc_context({"svg.hashsalt": "colltune"}):
            figure.savefig(image, format=path.suffix.removeprefix("."), dpi=_DPI, metadata=metadata)
        path.write_bytes(_with_few_colours(image) if path.suffix == ".png" else image.getvalue())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another directory by --out") from error
    finally:
        pyplot.close(figure)


def _with_few_colours(image: io.BytesIO) -> bytes:
    """A third of the size, and no difference to the eye: lines and bands have few colours."""
    from PIL import Image

    with Image.open(image) as picture:
        few = picture.convert("RGB").quantize(_COLOURS_KEPT)
    packed = io.BytesIO()
    few.save(packed, format="PNG", optimize=True)
    return packed.getvalue()


def pyplot_for_files() -> Any:
    """matplotlib's, which draws into files alone. Raises InputError where it is not installed."""
    extra("matplotlib", "drawing", "or give --plots none").use("Agg")
    from matplotlib import pyplot

    return pyplot
