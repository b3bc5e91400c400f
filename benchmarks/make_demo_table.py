"""Packs the recorded cluster that `colltune demo` tunes: ``python benchmarks/make_demo_table.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colltune.core.sample import format_choice
from colltune.store.grid import PARTS, Grid
from colltune_study.recorded.dataset import load_grids

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "benchmarks" / "data" / "pico_lumi.csv.gz"
PACKED = ROOT / "src" / "colltune" / "bench" / "lumi.npz"


def pack_grids(grids: Sequence[Grid], path: Path) -> None:
    """Writes ``grids`` to ``path``, a compressed archive of plain arrays. Raises OSError."""
    arrays: dict[str, np.ndarray] = {"names": np.array([[grid.name, grid.collective] for grid in grids])}
    for number, grid in enumerate(grids):
        shapes = [(scenario.nodes, scenario.ppn, scenario.size_bytes) for scenario in grid.scenarios]
        arrays[f"{number}.scenarios"] = np.array(shapes)
        arrays[f"{number}.choices"] = np.array([format_choice(choice) for choice in grid.choices])
        arrays |= {f"{number}.{part}": getattr(grid, part) for part in PARTS if getattr(grid, part) is not None}
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    pack_grids(load_grids([TABLE]), PACKED)
    print(f"{PACKED}: {PACKED.stat().st_size} bytes")
