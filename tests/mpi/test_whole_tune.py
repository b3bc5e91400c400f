"""A tuning from its first measurement to a job that runs under its files, on two nodes with two ranks each."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_applications import Site
from namespaces import NamespaceCluster, namespace_cluster, why_not

from colltune.core.sample import Status
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import run_to_end

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
NODES, PPN = 2, 2


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCluster]:
    with namespace_cluster(tmp_path_factory.mktemp("nodes"), NODES) as cluster:
        yield cluster


@pytest.mark.parametrize("library", ["mpi", "openmpi"])
def test_a_job_runs_under_what_was_tuned_on_its_nodes(
    request: pytest.FixtureRequest, library: str, two_nodes: NamespaceCluster, tmp_path: Path
) -> None:
    mpi: Installation = request.getfixturevalue(library)
    site = Site.open(two_nodes, mpi, tmp_path / "site", PPN)
    job = ["--mpiexec", str(mpi.mpiexec), "--hostfile", str(two_nodes.host_file(PPN))]
    sizes = ["--min-size", "4KiB", "--max-size", "4KiB"]
    # A busy machine spends a short budget before it measures.
    for budget_s in (8, 45, 135):
        out = tmp_path / f"tuned{budget_s}"
        done = _colltune(two_nodes, "tune", "allreduce", *sizes, "--budget", f"{budget_s}s", *job, "--out", str(out))
        assert done.returncode == 0, done.stdout + done.stderr
        samples = read_journal(out / JOURNAL).samples
        if len({sample.choice for sample in samples}) > 1:
            break
    assert f"{NODES} nodes x {PPN} ranks" in done.stdout
    tuning = load_tuning(out)
    assert (tuning.environment.nodes, tuning.environment.ppn) == (NODES, PPN)
    assert {sample.status for sample in samples} <= {Status.OK, Status.INAPPLICABLE}
    # How far it comes beyond the default and one other depends on how busy the machine is.
    assert {sample.scenario.size_bytes for sample in samples} == {4096}
    assert len({sample.choice for sample in samples}) > 1
    ran = site.run(out, [], [site.program("solver"), "200", "20"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "residual" in ran.stdout


def _colltune(cluster: NamespaceCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **cluster.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = cluster.inside(sys.executable, "-m", "colltune", *arguments)
    return run_to_end(command, env=environment)
