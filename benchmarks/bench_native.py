"""What libcolltune.so adds to a call: ``profile_ns``, the profile, in nanoseconds.

The least time of an MPI_Allreduce of one double on one rank, with the library and without it, in launches by turns; the
median difference. Adds to bench/native.json and prints it. Takes seconds; worth something on an idle machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from colltune.mpi.detect import find_mpi
from colltune.native_build import build_library
from colltune.profile.preload import preload_environment

ROOT = Path(__file__).resolve().parents[1]
LAUNCHES = 7


def main() -> None:
    mpi = find_mpi(None, os.environ, python_bin=Path(sys.executable).parent)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        program, source = place / "many_calls", ROOT / "tests" / "native" / "many_calls.c"
        subprocess.run([str(mpi.mpicc), "-O2", str(source), "-o", str(program)], check=True)
        profiled = preload_environment(build_library(mpi.mpicc, place), place / "app.json", os.environ)
        without, with_it = [], []
        for _ in range(LAUNCHES):
            without.append(call_ns(program, dict(os.environ)))
            with_it.append(call_ns(program, profiled))
    figures = {"profile_ns": round(median(with_it) - median(without), 1), "plain_call_ns": round(median(without), 1)}
    path = Path("bench") / "native.json"
    path.parent.mkdir(exist_ok=True)
    there = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**there, **figures}, indent=2) + "\n")
    print(json.dumps({**there, **figures}, indent=2))


def call_ns(program: Path, environment: dict[str, str]) -> float:
    done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
