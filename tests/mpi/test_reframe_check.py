"""The ReFrame check in examples/: it passes where the tuning is faster, and fails where it has become slower."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from jobs import QUIET
from test_run_measure import loop_in

from colltune.core.sample import DEFAULT, Sample, Scenario, Status
from colltune.mpi.installation import Installation
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, load_tuning, save_tuning
from commands import run_to_end, shell_script
from compiled import compiled
from pip_environment import environment_with

CHECK = Path(__file__).parents[2] / "examples/reframe/colltune_check.py"


@pytest.fixture(scope="module")
def reframe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The one on PATH, or one in an environment of its own, installed as the example says."""
    if found := shutil.which("reframe"):
        return found
    place = tmp_path_factory.mktemp("reframe") / "venv"
    return str(environment_with(place, "--requirement", str(CHECK.with_name("requirements.txt"))) / "reframe")


# Broadcasts are delayed in launches with a selection file, or in those without one.
SLOW = """
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if ((getenv("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE") != NULL) == SLOW_WITH_FILE)
        usleep(40000);
    return PMPI_Bcast(buffer, count, type, root, comm);
}
"""


def slow_mpi(mpi: Installation, place: Path, with_file: bool) -> Path:
    """The launcher of an MPI whose broadcasts are slow with a file, or without."""
    (place / "slow.c").write_text(SLOW)
    slow = compiled(mpi.mpicc, f"-DSLOW_WITH_FILE={int(with_file)}", "-shared", "-fPIC", place / "slow.c")
    shell_script(place / "mpicc", f'exec {mpi.mpicc} "$@"')
    return shell_script(place / "mpiexec", f'exec {mpi.mpiexec} -genv LD_PRELOAD {slow} "$@"')


@pytest.mark.parametrize(("tuned_is_slow", "code"), [(False, 0), (True, 1)])
def test_the_check_fails_on_a_regression(
    mpi: Installation, tmp_path: Path, reframe: str, tuned_is_slow: bool, code: int
) -> None:
    made = loop_in(mpi, tmp_path)
    bench = made.mpi.bench
    rules = load_tuning(made.out.parent).live
    assert rules is not None
    save_tuning(tmp_path / "tuned", bench.tuning(rules))
    at = [Scenario("bcast", 1, 2, size) for size in (64, 1024)]
    with Journal.begin(tmp_path / "tuned" / JOURNAL, bench.environment, resume=False) as journal:
        journal.append([Sample(one, DEFAULT, Status.OK, (1e-6,)) for one in at])  # what was tuned is verified
    mpiexec = slow_mpi(mpi, tmp_path, tuned_is_slow)
    settings = {"tuned": tmp_path / "tuned", "launches": 8, "mpiexec": mpiexec, "ppn": 2}
    command = [reframe, "-c", str(CHECK), "-r", "--prefix", str(tmp_path / "reframe")]
    command += [word for name, value in settings.items() for word in ("-S", f"{name}={value}")]
    environment = {**os.environ, **QUIET, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = run_to_end(command, env=environment, cwd=tmp_path)
    said = done.stdout + done.stderr
    (answer,) = (tmp_path / "reframe").rglob("rfm_job.out")
    assert "0 faster, 0 same, 0 slower" not in answer.read_text()
    assert done.returncode == code, said
    assert ("a size is slower with the tuning" in said) == tuned_is_slow, said
