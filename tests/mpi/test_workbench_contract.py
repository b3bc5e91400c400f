"""The MPI of a job keeps the contract of benches, with MPICH and with Open MPI."""

import os

import pytest

from bench_laws import BenchContract
from colltune.bench.contract import Bench
from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.mpi.installation import Installation


class TestWorkbench(BenchContract):
    @pytest.fixture(autouse=True, params=["mpi", "openmpi"])
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._installation: Installation = request.getfixturevalue(request.param)

    def make(self) -> Bench:
        return open_workbench(MachineOptions(str(self._installation.mpiexec), nodes=1, ppn=2), os.environ)
