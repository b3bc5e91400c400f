"""Whether what is predicted to happen with a probability happens as often: a table by bins of it, and its picture."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colltune_study.research.figures import new_panels, save

BINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
# Choices of a table in a bin, of which fewer say little.
_FEWEST = 20


def reliability(tables: Mapping[str, tuple[NDArray[np.float64], NDArray[np.bool_]]]) -> list[dict[str, float]]:
    """By bins of the predicted probability: its mean, the share that it happened to over tables of equal weight, and
    the greatest of any table.

    ``tables``: of each, (n,) the probabilities, and whether it happened.
    """
    rows = []
    for low, high in pairwise(BINS):
        inside = {name: (said > low) & (said <= high) for name, (said, _) in tables.items()}
        held = {name: mine for name, mine in inside.items() if mine.sum() >= _FEWEST}
        if held:
            shares = [float(tables[name][1][mine].mean()) for name, mine in held.items()]
            rows.append(
                {
                    "predicted": float(np.mean([tables[name][0][mine].mean() for name, mine in held.items()])),
                    "observed": float(np.mean(shares)),
                    "worst": max(shares),
                    "tables": float(len(held)),
                    "choices": float(sum(mine.sum() for mine in held.values())),
                }
            )
    return rows


def draw_reliability(rows: Sequence[Mapping[str, float]], what: str, path: Path) -> None:
    """``what``: happens to the choices, such as "a loss"."""
    figure, [panel] = new_panels(1, width=4.5, height=4.0)
    panel.plot([0.0, 0.5], [0.0, 0.5], color="0.6", linewidth=1)
    for key, label in (("observed", "mean of the tables"), ("worst", "table with most")):
        panel.plot([row["predicted"] for row in rows], [row[key] for row in rows], "o-", label=label)
    panel.set(xlim=(0.0, 0.5), ylim=(0.0, 0.5))
    panel.set_xlabel(f"predicted probability of {what}")
    panel.set_ylabel("share of the choices")
    panel.legend(frameon=False)
    save(figure, path)
