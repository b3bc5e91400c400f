"""An MPICH in which one algorithm of MPI_Bcast is known to be much faster, whatever the machine does beside."""

import os
import subprocess
import sys
from pathlib import Path

from jobs import QUIET, Jobs

from colltune.core.sample import Choice
from colltune.mpi.installation import Installation
from commands import shell_script
from compiled import shared

FAST = "scatter_ring_allgather"
FILE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"


def make_slow_mpi(mpi: Installation, agent: Path, place: Path) -> Path:
    """The launcher of an MPI whose default is slow."""
    settings = dict(Jobs(mpi, agent, place).resolver()("bcast", Choice(FAST)))
    fast = settings["MPIR_CVAR_BCAST_INTRA_ALGORITHM"]
    library = shared("slow_default.c", compiler=mpi.mpicc)
    return shell_script(place / "mpiexec", f'exec {mpi.mpiexec} -genv LD_PRELOAD {library} -genv CT_FAST {fast} "$@"')


def start(*arguments: str, mpiexec: Path | None = None) -> subprocess.Popen[str]:
    """The command, with ``mpiexec`` the first on PATH."""
    environment = {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    if mpiexec is not None:
        environment["PATH"] = f"{mpiexec.parent}{os.pathsep}{environment['PATH']}"
    return subprocess.Popen(
        [sys.executable, "-m", "colltune", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def colltune(*arguments: str, code: int = 0, mpiexec: Path | None = None) -> subprocess.CompletedProcess[str]:
    process = start(*arguments, mpiexec=mpiexec)
    said, errors = process.communicate(timeout=240)
    assert process.returncode == code, said + errors
    return subprocess.CompletedProcess(arguments, code, said, errors)
