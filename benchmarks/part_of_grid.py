"""Some of the scenarios of a recorded table."""

from collections.abc import Sequence
from dataclasses import replace

from colltune.store.grid import Grid


def part_of(grid: Grid, rows: Sequence[int]) -> Grid:
    """The grid of the scenarios in ``rows``."""
    rows = list(rows)
    return replace(
        grid,
        scenarios=tuple(grid.scenarios[row] for row in rows),
        time_s=grid.time_s[rows],
        default_s=grid.default_s[rows],
        cost_s=None if grid.cost_s is None else grid.cost_s[rows],
        spread=None if grid.spread is None else grid.spread[rows],
    )
