"""Intel MPI on several nodes, each a network namespace: a program is profiled, tuned for, and runs under the table."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from namespaces import NamespaceCluster, namespace_cluster, why_not
from test_intelmpi_real import MPIEXEC

from colltune.core.sample import Status
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning

pytestmark = [
    pytest.mark.skipif(not MPIEXEC.is_file(), reason="no Intel MPI"),
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
]
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    static float in[2048], out[2048];
    int length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 200; i++) {
        MPI_Allreduce(in, out, 16, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(in, 1024, MPI_FLOAT, 0, MPI_COMM_WORLD);
    }
    MPI_Get_processor_name(host, &length);
    printf("%s reads %s\n", host, getenv("I_MPI_TUNING_BIN") == NULL ? "none" : getenv("I_MPI_TUNING_BIN"));
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[NamespaceCluster]:
    with namespace_cluster(tmp_path / "nodes", 2) as cluster:
        yield cluster


def test_a_program_is_profiled_tuned_for_and_run_on_two_nodes(two_nodes: NamespaceCluster, tmp_path: Path) -> None:
    source, program, out = tmp_path / "program.c", tmp_path / "program", tmp_path / "tuned"
    source.write_text(PROGRAM)
    root = str(MPIEXEC.parents[1])
    there = [f"PYTHONPATH={os.pathsep.join(sys.path)}", f"I_MPI_ROOT={root}", f"FI_PROVIDER_PATH={root}/lib"]
    mpicc = [str(MPIEXEC.with_name("mpicc")), str(source), "-o", str(program)]
    subprocess.run(mpicc, check=True, env={"PATH": f"{MPIEXEC.parent}:/usr/bin:/bin", "I_MPI_ROOT": root})
    hosts = two_nodes.host_file(2)
    job = [MPIEXEC, "-f", hosts, "-n", "4", "-ppn", "2", program]

    def inside(*words: object) -> str:
        done = two_nodes.run("env", *there, sys.executable, "-m", "colltune", *map(str, words))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    profile = tmp_path / "profile.json"
    inside("profile", "--mpiexec", MPIEXEC, "--out", profile, "--", *job)
    budget = ["--runtime", "100h", "--budget", "60s"]
    machine = ["--mpiexec", MPIEXEC, "--hostfile", hosts]
    assert "2 nodes x 2 ranks" in inside("tune", "--profile", profile, *budget, *machine, "--out", out)
    samples = [sample for sample in read_journal(out / JOURNAL).samples if sample.status is Status.OK]
    assert {(s.scenario.collective, s.scenario.nodes, s.scenario.ppn) for s in samples} <= {
        ("allreduce", 2, 2), ("bcast", 2, 2)
    }  # fmt: skip
    assert samples
    named = load_tuning(out).variables_at(out).get("I_MPI_TUNING_BIN", "none")
    ran = inside("run", out, "--", *job)
    assert sorted(line for line in ran.splitlines() if " reads " in line) == sorted(
        [f"node{number} reads {named}" for number in (0, 1)] * 2
    )
