"""Where an application's time goes, as a figure. Needs matplotlib (the extra `evaluate`)."""

from collections.abc import Sequence
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.extras import extra

_MOST_BARS = 20


def draw_profile(bars: Sequence[tuple[str, float, float]], whole_s: float, path: Path) -> None:
    """``bars``: label, own time and waiting in s over all ranks, longest first. ``whole_s``: the run's time over all.

    Raises InputError where matplotlib is missing or ``path`` cannot be written.
    """
    shown = list(bars)[:_MOST_BARS][::-1]
    figure = extra("matplotlib.figure", "a plot").Figure(figsize=(8.0, 1.2 + 0.32 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    whole_s = max(whole_s, 1e-12)
    own = [100.0 * time_s / whole_s for _, time_s, _ in shown]
    late = [100.0 * waiting_s / whole_s for _, _, waiting_s in shown]
    places = range(len(shown))
    axes.barh(places, own, color="#2b6cb0", label="the collective itself")
    axes.barh(places, late, left=own, color="#cbd5e0", label="waiting for the last rank")
    axes.set_yticks(list(places), [label for label, _, _ in shown])
    axes.set_xlabel("share of the run's time (%)")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the plot {path}: {error}", "Give a file that ends in .svg or .png") from error
