"""Grids in one small file that numpy alone reads: a recorded cluster that comes with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import format_choice, parse_choice
from colltune.core.scenario import Scenario
from colltune.store.grid import Grid

_PARTS = ("time_s", "default_s", "cost_s", "spread")


def pack_grids(grids: Sequence[Grid], path: Path) -> None:
    """Writes ``grids`` to ``path``, a compressed archive of plain arrays. Raises OSError."""
    arrays: dict[str, NDArray[np.generic]] = {"names": np.array([[grid.name, grid.collective] for grid in grids])}
    for number, grid in enumerate(grids):
        shapes = [(scenario.nodes, scenario.ppn, scenario.size_bytes) for scenario in grid.scenarios]
        arrays[f"{number}.scenarios"] = np.array(shapes)
        arrays[f"{number}.choices"] = np.array([format_choice(choice) for choice in grid.choices])
        arrays |= {f"{number}.{part}": getattr(grid, part) for part in _PARTS if getattr(grid, part) is not None}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def unpack_grids(path: Path) -> list[Grid]:
    """What `pack_grids` wrote; for files of this package, which it does not check."""
    with np.load(path, allow_pickle=False) as arrays:
        return [
            _unpacked(str(name), str(collective), {part: arrays[part] for part in arrays.files}, f"{number}.")
            for number, (name, collective) in enumerate(arrays["names"])
        ]


def _unpacked(name: str, collective: str, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Grid:
    scenarios = tuple(Scenario(collective, *map(int, shape)) for shape in arrays[prefix + "scenarios"])
    choices = tuple(parse_choice(str(text)) for text in arrays[prefix + "choices"])
    parts = {part: arrays[prefix + part] for part in _PARTS if prefix + part in arrays}
    return Grid(name, collective, scenarios, choices, **parts)  # type: ignore[arg-type]
