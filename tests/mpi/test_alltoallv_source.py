"""Patterns of blocks on a real MPI: what the measuring program exchanges, and with what."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path

import pytest

from colltune.alltoallv.source import AlltoallvSource, Blocks
from colltune.alltoallv.table import FIRST_CALL
from colltune.alltoallv.tune import _first_call
from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.machine.compile import build_parts
from colltune.measure.contract import Effort
from colltune.mpi.installation import Installation
from colltune.search.campaign import Outcome

_RANKS = 4
_SHORT = Effort(relative_width=0.5, box_s=0.0005, fewest=3, most=8, warm_up=1)


@pytest.fixture(scope="module")
def program(mpi: Installation, cache: Path) -> Path:
    return build_parts(mpi.mpicc, ("alltoallv_measure", "alltoallv"), cache)


def source(mpi: Installation, program: Path, *arguments: str, **variables: str) -> AlltoallvSource:
    made = Environment("mpich", "", "", "", 1, _RANKS, "single", {})
    command = [str(mpi.mpiexec), "-n", str(_RANKS), str(program), *arguments]
    return AlltoallvSource(made, command, {**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", **variables})


@pytest.mark.mpi
def test_every_pattern_is_exchanged_rightly_by_every_way(mpi: Installation, program: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text("0 5 0 700\n1 2 3 4\n0 0 0 0\n90 0 90 90\n")
    ways = (DEFAULT, Choice("parata", (("radix", 2),)), Choice("linear"), Choice("tuned"))
    names = ("uniform", "constant", "power", "skewed")
    patterns = [*(Blocks(name, peers) for name in names for peers in (0, 2)), Blocks("counts")]
    points = [Point(Scenario(b.collective, 1, _RANKS, size), ways) for b in patterns for size in (3, 900)]
    measuring = source(mpi, program, str(counts), COLLTUNE_ALLTOALLV=str(tmp_path / "none.json"))
    try:
        found = [sample for _, samples in measuring.measure(points, _SHORT) for sample in samples]
    finally:
        measuring.close()
    assert [sample.status for sample in found] == [Status.OK] * len(points) * len(ways)


@pytest.mark.mpi
def test_setting_a_communicator_up_is_timed_beside_the_exchanges(mpi: Installation, program: Path) -> None:
    measuring = source(mpi, program)
    try:
        first_s = measuring.set_up_s()
        (point,) = measuring.measure([Point(Scenario("alltoallv", 1, _RANKS, 64), (DEFAULT,))], _SHORT)
        again_s = measuring.set_up_s()
    finally:
        measuring.close()
    assert point[1][0].status is Status.OK
    assert 0.0 < again_s < 60.0
    assert 0.0 < first_s < 60.0


def test_what_setting_up_costs_is_little_beside_the_calls_before_it() -> None:
    def outcome(*library_s: float) -> Outcome:
        samples = [
            Sample(Scenario("alltoallv", 1, 4, 4 << at), DEFAULT, Status.OK, (time_s,))
            for at, time_s in enumerate(library_s)
        ]
        return Outcome(tuple(samples), {}, 1.0, False)

    # 2% of 2,500 calls of a millisecond.
    assert _first_call(0.05, outcome(2e-3, 1e-3)) == 2500
    assert _first_call(1e-9, outcome(1e-3)) == FIRST_CALL
    assert _first_call(math.nan, outcome(1e-3)) == FIRST_CALL


@pytest.mark.mpi
def test_a_file_that_is_no_matrix_of_this_job_is_named(mpi: Installation, program: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text("1 2 3\n")
    command = [str(mpi.mpiexec), "-n", "2", str(program), str(counts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode != 0
    assert f"{counts} has no 2 x 2 numbers of bytes" in done.stderr
