"""The MPI that is found is one that compiles and runs, and the command lines start as many ranks as they say."""

import os

import pytest

from colltune.mpi.installation import Installation
from colltune.mpi.job import Job, Node, Scheduler
from colltune.mpi.launch import LaunchRequest, launch
from commands import run_to_end
from compiled import program


@pytest.fixture(scope="module")
def who(mpi: Installation) -> str:
    return program(mpi.mpicc, "who_and_where.c")


JOBS = [Job(Scheduler.NONE, (Node("localhost", 2),)), Job(Scheduler.HOST_FILE, (Node("localhost", 2),))]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.scheduler)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_environment_and_input_arrive(mpi: Installation, who: str, job: Job, ranks: int) -> None:
    command = launch(mpi, job, LaunchRequest([who], 1, ranks, {"COLLTUNE_TEST": "a, b=c"}))
    run = run_to_end(command.argv, env={**os.environ, **command.environment}, input="word\n", check=True)
    expected = [f"{rank} of {ranks} on - [{'word' if rank == 0 else ''}] [a, b=c]" for rank in range(ranks)]
    assert sorted(run.stdout.splitlines()) == expected
