"""A profile of a program with other ranks and threads than the machine would be tuned for, and `tune --profile`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import AS_ROOT

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.mpi.installation import Installation
from colltune.mpi.job import Job, Node, Scheduler
from colltune.profile.profile_files import load_profile
from colltune.session.tuning.options import TuneOptions
from colltune.session.tuning.payoff import for_application, machine_like
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import run_to_end
from compiled import program

COLLTUNE = [sys.executable, "-c", "from colltune.cli import main; main()"]
SOURCE = r"""
#include <mpi.h>
static char data[2048];
int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (int step = 0; step < 60; step++)
        MPI_Bcast(data, 2048, MPI_CHAR, 0, MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


def run(mpi: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    quiet = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    environment = {**os.environ, **quiet, **AS_ROOT, "PATH": f"{mpi.mpiexec.parent}:{os.environ['PATH']}"}
    return run_to_end([*COLLTUNE, *arguments], env=environment)


@pytest.fixture(scope="module", params=["mpi", "openmpi"])
def kit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Installation, Path]:
    """An MPI, and the profile of a program on 1 x 4 ranks with MPI_THREAD_MULTIPLE."""
    mpi: Installation = request.getfixturevalue(request.param)
    place = tmp_path_factory.mktemp("profile")
    (place / "app.c").write_text(SOURCE)
    application = program(mpi.mpicc, place / "app.c")
    out = place / "app.json"
    done = run(mpi, "profile", "--out", str(out), "--", str(mpi.mpiexec), "-n", "4", application)
    assert done.returncode == 0, done.stderr
    return mpi, out


def tune(kit: tuple[Installation, Path], out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    mpi, profile = kit
    of_it = ("--profile", str(profile), "--runtime", "1000h", "--out", str(out))
    return run(mpi, "tune", *of_it, "--mpiexec", str(mpi.mpiexec), *more)


def test_the_job_is_that_of_the_profile(kit: tuple[Installation, Path], tmp_path: Path) -> None:
    mpi, path = kit
    profile = load_profile(path)
    job = Job(Scheduler.NONE, (Node("localhost", 2),))
    machine = machine_like(profile, MachineOptions(mpiexec=str(mpi.mpiexec)), "", job)
    bench = open_workbench(machine, os.environ)
    assert (bench.nodes, bench.ppn, bench.thread_level) == (1, 4, "multiple")
    options = for_application(TuneOptions([]), profile, 1e7, bench.catalogue, (bench.nodes, bench.ppn))
    assert options.collectives == ["bcast"]
    assert options.stakes is not None
    assert {(one.nodes, one.ppn, one.size_bytes) for one in options.stakes.share} == {(1, 4, 2048)}
    for more, told in (
        (("--thread-level", "single"), "MPI_THREAD_MULTIPLE, and --thread-level is single"),
        (("--ppn", "2"), "this job of 1 x 2 ranks cannot form calls of the application that need 1 x 4"),
    ):
        refused = tune(kit, tmp_path / "tuned", *more)
        assert (refused.returncode, len(refused.stderr.strip().splitlines())) == (2, 1), refused.stderr
        assert told in refused.stderr


@pytest.mark.slow
def test_a_profile_is_tuned_for_its_ranks_and_threads(kit: tuple[Installation, Path], tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    done = tune(kit, out, "--budget", "4s", "--gate", "off")
    assert done.returncode == 0, done.stderr + done.stdout
    made = load_tuning(out).environment
    assert (made.nodes, made.ppn, made.thread_level) == (1, 4, "multiple")
    measured = {(s.scenario.collective, s.scenario.ppn) for s in read_journal(out / JOURNAL).samples}
    assert measured == {("bcast", 4)}
    assert "1 of its 1 kinds of calls (collective, shape and size) were measured" in " ".join(done.stdout.split())
