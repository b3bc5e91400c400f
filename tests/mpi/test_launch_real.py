"""The MPI that is found is one that compiles and runs, and the command lines start as many ranks as they say."""

import os
import subprocess
from pathlib import Path

import pytest

from colltune.mpi.installation import Installation
from colltune.mpi.job import Job, Node, Scheduler
from colltune.mpi.launch import Request, launch

pytestmark = pytest.mark.mpi

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size;
    char word[16] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0 && scanf("%15s", word) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const char *value = getenv("COLLTUNE_TEST");
    printf("%d of %d [%s] [%s]\n", rank, size, word, value ? value : "");
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "hello.c").write_text(PROGRAM)
    subprocess.run([mpi.mpicc, directory / "hello.c", "-o", directory / "hello"], check=True)
    return directory / "hello"


JOBS = [
    Job(Scheduler.NONE, (Node("localhost", 2),)),
    Job(Scheduler.HOST_FILE, (Node("localhost", 2),)),
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.scheduler)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_environment_and_input_arrive(mpi: Installation, program: Path, job: Job, ranks: int) -> None:
    command = launch(mpi, job, Request([str(program)], 1, ranks, {"COLLTUNE_TEST": "a, b=c"}))
    run = subprocess.run(
        command.argv,
        env={**os.environ, **command.environment},
        input="word\n",
        text=True,
        capture_output=True,
        timeout=120,
        check=True,
    )
    expected = [f"{rank} of {ranks} [{'word' if rank == 0 else ''}] [a, b=c]" for rank in range(ranks)]
    assert sorted(run.stdout.splitlines()) == expected
