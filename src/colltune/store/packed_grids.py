"""Grids in one small file that numpy alone reads: a recorded cluster that comes with the package."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Scenario, parse_choice
from colltune.store.grid import Grid

PARTS = ("time_s", "default_s", "cost_s", "spread")


def unpack_grids(path: Path) -> list[Grid]:
    """What `benchmarks/make_demo_table.py` wrote; a file of this package, which it does not check."""
    with np.load(path, allow_pickle=False) as arrays:
        return [
            _unpacked(str(name), str(collective), {part: arrays[part] for part in arrays.files}, f"{number}.")
            for number, (name, collective) in enumerate(arrays["names"])
        ]


def _unpacked(name: str, collective: str, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Grid:
    scenarios = tuple(Scenario(collective, *map(int, shape)) for shape in arrays[prefix + "scenarios"])
    choices = tuple(parse_choice(str(text)) for text in arrays[prefix + "choices"])
    parts = {part: arrays[prefix + part] for part in PARTS if prefix + part in arrays}
    return Grid(name, collective, scenarios, choices, **parts)  # type: ignore[arg-type]
