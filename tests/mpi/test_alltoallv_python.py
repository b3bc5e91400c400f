"""The tuned alltoallv from programs of mpi4py, on the MPI that runs them."""

import os
import sys
from pathlib import Path

import pytest
from test_alltoallv_use import table

from colltune.alltoallv.interposed import with_alltoallv
from colltune.mpi.installation import Installation, Library
from commands import run_to_end

_PROGRAM = Path(__file__).parents[1] / "native" / "alltoallv_python.py"


def _ran(installation: Installation, where: Path, *, preloaded: bool = False, named: str | None = None) -> str:
    pytest.importorskip("mpi4py")
    of_openmpi = installation.library is Library.OPENMPI
    more = ["--allow-run-as-root", "--oversubscribe"] if of_openmpi else []
    command = [str(installation.mpiexec), *more, "-n", "4", sys.executable, str(_PROGRAM)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MPI4PY_MPIABI": "openmpi" if of_openmpi else "mpich",
        "LD_LIBRARY_PATH": str(installation.libmpi.parent),
        "COLLTUNE_MPIEXEC": named or str(installation.mpiexec),
        "COLLTUNE_ALLTOALLV": str(where),
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    }
    if preloaded:
        command, environment = with_alltoallv(command, where, environment)
    done = run_to_end(command, env=environment)
    return done.stdout + done.stderr


@pytest.mark.parametrize("library", ["mpi", "openmpi"])
def test_a_python_program_gets_what_mpi4py_gives(request: pytest.FixtureRequest, tmp_path: Path, library: str) -> None:
    where = table(tmp_path / "table.rules", (0, 99999, "parata", 2))
    assert _ran(request.getfixturevalue(library), where).strip() == "right"


def test_a_preloaded_library_is_used(mpi: Installation, tmp_path: Path) -> None:
    where = table(tmp_path / "table.rules", (0, 99999, "hieata", 2))
    assert _ran(mpi, where, preloaded=True, named="/no/such/mpiexec").strip() == "right"


def test_all_ranks_say_what_is_missing(mpi: Installation, tmp_path: Path) -> None:
    said = _ran(mpi, tmp_path / "none.json", named="/no/such/mpiexec")
    assert "the tuned alltoallv cannot be loaded" in said
    assert "/no/such/mpiexec" in said
