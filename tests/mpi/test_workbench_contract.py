"""The MPI of a job keeps the contract of benches: MPICH, Open MPI, Intel MPI, and MPICH measured by launches."""

import os
from dataclasses import replace

import pytest

from bench_laws import BenchContract
from colltune.bench.backends.mpich import MpichBackend
from colltune.bench.contract import Bench
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.sample import DEFAULT, Scenario, Status
from colltune.core.space import Point
from colltune.mpi.installation import Installation
from source_laws import EFFORT


class TestWorkbench(BenchContract):
    @pytest.fixture(autouse=True, params=["mpi", "openmpi", "intelmpi"])
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._installation: Installation = request.getfixturevalue(request.param)

    def make(self) -> Bench:
        return open_workbench(MachineOptions(str(self._installation.mpiexec), nodes=1, ppn=2), os.environ)


class ByLaunches(MpichBackend):
    """MPICH as if it took algorithms at its start alone: by the files that its emitter writes."""

    steered = False


class TestWorkbenchByLaunches(BenchContract):
    @pytest.fixture(autouse=True)
    def _use(self, mpi: Installation) -> None:
        self._mpi = mpi

    def make(self) -> Workbench:
        bench = open_workbench(MachineOptions(str(self._mpi.mpiexec), nodes=1, ppn=2), os.environ)
        return replace(bench, backend=ByLaunches.from_library(self._mpi.libmpi, self._mpi.version))

    def test_its_files_are_what_a_launch_runs_under_and_are_gone_after_it(self) -> None:
        bench = self.make()
        scenario = Scenario(self.collective, 1, 2, 4096)
        choices = [choice for choice in bench.legal(scenario) if choice.algorithm in ("binomial", "nb")]
        before = set(bench.agent.parent.iterdir())
        launch = bench.launch(1)
        try:
            ((_, samples),) = launch.measure([Point(scenario, (DEFAULT, *choices))], EFFORT)
        finally:
            launch.close()
        assert {sample.choice: sample.status for sample in samples} == dict.fromkeys([DEFAULT, *choices], Status.OK)
        assert launch.launches == 1 + len(choices)
        assert not [path for path in set(bench.agent.parent.iterdir()) - before if path.name.startswith("launch-")]
