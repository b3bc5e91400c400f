"""What a file of many rules adds to MPI_Init: MPICH beside this Python, two ranks on this machine.

``init_ms``: the median of 20 launches under a file of at most 256 rules of broadcasts, those that a job of 2,048 x 12
gains most from, less that of as many without a file, by turns. ``init_file_kb``: the size of its files. Needs two idle
cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from colltune.bench.backends import open_backend
from colltune.core.rules import RuleSet
from colltune.mpi.detect import find_mpi
from colltune.store.tuning import write_files

LAUNCHES, RANKS, RULES = 20, 2, 256
SOURCE = Path(__file__).parent / "native" / "init_time.c"


def scale_start(rules: RuleSet) -> dict[str, float]:
    mpi = find_mpi(None, os.environ, python_bin=Path(sys.executable).parent)
    emitter = open_backend(mpi).emitter
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        program = place / "init_time"
        subprocess.run([str(mpi.mpicc), "-O2", str(SOURCE), "-o", str(program)], check=True)
        files = emitter.emit([rules])
        write_files(place, files, durable=False)
        named = {n: path for n, path in emitter.environment(place).items() if Path(path).name in files}
        command = [str(mpi.mpiexec), "-n", str(RANKS), str(program)]
        took: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(2 * LAUNCHES):
            with_file = bool(turn % 2)
            environment = {**os.environ, **(named if with_file else {})}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            took[with_file].append(float(done.stdout))
    return {
        "init_ms": round(median(took[True]) - median(took[False]), 2),
        "init_plain_ms": round(median(took[False]), 2),
        "init_file_kb": round(sum(map(len, files.values())) / 1024, 1),
    }
