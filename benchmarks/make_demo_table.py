"""Packs the recorded cluster that `colltune demo` tunes: ``python benchmarks/make_demo_table.py``."""

from __future__ import annotations

from pathlib import Path

from colltune.store.dataset import load_grids
from colltune.store.packed_grids import pack_grids

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "benchmarks" / "data" / "pico_lumi.csv.gz"
PACKED = ROOT / "src" / "colltune" / "research" / "lumi.npz"

if __name__ == "__main__":
    pack_grids(load_grids([TABLE]), PACKED)
    print(f"{PACKED}: {PACKED.stat().st_size} bytes")
