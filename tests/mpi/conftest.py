"""What tests with an MPI share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Jobs
from live_jobs import Live, live
from namespaces import NamespaceCluster, namespace_cluster, why_not

from colltune.bench.backends.mpich import MpichBackend
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.mpi.installation import Installation
from compiled import shared


@pytest.fixture
def jobs(mpi: Installation, agent: Path, tmp_path: Path) -> Jobs:
    return Jobs(mpi, agent, tmp_path)


@pytest.fixture(scope="session")
def faulty(mpi: Installation) -> str:
    """Collectives of which some end, hang or are wrong."""
    return str(shared("faulty_collectives.c", compiler=mpi.mpicc))


@pytest.fixture(scope="session")
def emitter(mpi: Installation) -> MpichEmitter:
    return MpichBackend.from_library(mpi.libmpi, mpi.version).emitter


@pytest.fixture
def on_either(either: Installation, tmp_path: Path) -> Live:
    """Each MPI with the live selector in front of it."""
    return live(either, tmp_path)


@pytest.fixture(scope="module")
def four_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCluster]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with namespace_cluster(tmp_path_factory.mktemp("nodes"), 4) as cluster:
        yield cluster
