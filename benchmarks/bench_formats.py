"""What each format loses against a selection without limits, on recorded tables.

    python benchmarks/bench_formats.py [TABLE ...]     # unless given: those in tests/recorded

Writes bench/formats.json and prints it. A figure is the geometric mean, over the scenarios of a table, of the time of
the best choices that the format can name over the time of the best choice of each scenario. ``all``: ppn, ranks and
size (MPICH's files, the live selector): 1 by its meaning. ``ranks_size``: no ppn (Open MPI). ``size``: one
set of sizes for all rank counts (Intel MPI). ``ranks``: no size (gather, scatter and allgather on Open MPI). ``one``: a
single choice. ``default``: the library's own, for comparison, where it was recorded.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np

from colltune.core.scenario import Scenario
from colltune.store.dataset import load_grids
from colltune.store.grid import Grid

ROOT = Path(__file__).parents[1]
FORMATS: dict[str, Callable[[Scenario], Hashable]] = {
    "all": lambda s: s,
    "ranks_size": lambda s: (s.ranks, s.size_bytes),
    "size": lambda s: s.size_bytes,
    "ranks": lambda s: s.ranks,
    "one": lambda _s: 0,
}


def loss(grid: Grid, tells_apart: Callable[[Scenario], Hashable]) -> float:
    """The best that can be done where scenarios with one key must share a choice that was recorded in all of them."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, scenario in enumerate(grid.scenarios):
        groups[tells_apart(scenario)].append(row)
    logs = np.log(grid.time_s / np.nanmin(grid.time_s, axis=1, keepdims=True))
    total = 0.0
    for rows in groups.values():
        sums = logs[rows].sum(axis=0)
        # Where no choice was recorded everywhere, the group cannot be had at all; its best rows stand for it.
        total += (
            float(np.nanmin(sums))
            if np.isfinite(sums).any()
            else float(np.nanmin(np.nanmean(logs[rows], axis=0)) * len(rows))
        )
    return float(np.exp(total / len(grid.scenarios)))


def main(paths: list[Path]) -> None:
    figures: dict[str, float] = {}
    for grid in load_grids(paths or sorted((ROOT / "tests" / "recorded").glob("*.csv.gz"))):
        name = grid.name.replace("/", "_")
        for format_name, tells_apart in FORMATS.items():
            figures[f"{name}_{format_name}"] = round(loss(grid, tells_apart), 3)
        known = np.isfinite(grid.default_s)
        if known.any():
            ratios = grid.default_s[known] / grid.best_s[known]
            figures[f"{name}_default"] = round(float(np.exp(np.log(ratios).mean())), 3)
    target = Path("bench/formats.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main([Path(text) for text in sys.argv[1:]])
