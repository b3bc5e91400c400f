"""Programs that walk sizes as the OSU Micro-Benchmarks do, on the real MPICH."""

import os
import subprocess
from pathlib import Path

import pytest

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.errors import LaunchError
from colltune.core.scenario import Scenario
from colltune.measure.osu import OsuBenchmarks
from colltune.mpi.installation import Installation

SOURCE = Path(__file__).parents[1] / "native" / "osu_bcast.c"


@pytest.fixture(scope="module")
def programs(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> OsuBenchmarks:
    place = tmp_path_factory.mktemp("osu") / "c" / "blocking"
    place.mkdir(parents=True)
    subprocess.run([str(mpi.mpicc), str(SOURCE), "-o", str(place / "osu_bcast")], check=True)
    return OsuBenchmarks.find(place.parents[1], ["bcast"], ["-i", "5"])


def test_one_start_measures_a_whole_series_of_sizes(mpi: Installation, programs: OsuBenchmarks, tmp_path: Path) -> None:
    bench = open_workbench(MachineOptions(mpiexec=str(mpi.mpiexec), ppn=2), os.environ)
    scenarios = [Scenario("bcast", 1, 2, size) for size in (4, 64, 8, 16, 3, 6)]
    starts = tmp_path / "starts"
    found = programs.medians(bench.command, {"OSU_STARTS": str(starts)}, bench.process_environment, scenarios)
    assert found.keys() == set(scenarios)
    assert all(0.0 < time_s < 1.0 for time_s in found.values())
    assert sorted(starts.read_text().splitlines()) == [
        "2 ranks, 3:6, 5 calls",
        "2 ranks, 4:16, 5 calls",
        "2 ranks, 64:64, 5 calls",
    ]


def test_a_program_that_fails_is_named(mpi: Installation, programs: OsuBenchmarks) -> None:
    bench = open_workbench(MachineOptions(mpiexec=str(mpi.mpiexec), ppn=2), os.environ)
    broken = OsuBenchmarks({"bcast": programs.programs["bcast"].with_name("osu_nothing")})
    with pytest.raises(LaunchError, match="osu_nothing"):
        broken.medians(bench.command, {}, bench.process_environment, [Scenario("bcast", 1, 2, 8)])
