"""Patterns of blocks on a real MPI: what the measuring program exchanges, and with what."""

import math
import os
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jobs import SHORT, measure

from alltoallv_applications import matrices
from colltune.alltoallv.lookup_table import FIRST_CALL, Shape, candidates, choice_of
from colltune.alltoallv.matrices import load_recorded, write_matrices
from colltune.alltoallv.samples import AGENT_PARTS, ALGORITHMS, AlltoallvSource, Blocks
from colltune.alltoallv.tune_table import first_call
from colltune.core.errors import LaunchError
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, Status
from colltune.core.space import Point
from colltune.machine.compile import build, source_directory
from colltune.mpi.installation import Installation

_RANKS = 4
_SHAPE = Shape(1, _RANKS)


@pytest.fixture(scope="module")
def program(mpi: Installation, cache: Path) -> Path:
    return build(mpi.mpicc, AGENT_PARTS, cache)


def source(
    mpi: Installation, program: Path, *arguments: str, shape: Shape = _SHAPE, **variables: str
) -> AlltoallvSource:
    made = Environment("mpich", "", "", "", shape.nodes, shape.ppn, "single", {})
    command = [str(mpi.mpiexec), "-n", str(shape.ranks), str(program), *arguments]
    return AlltoallvSource(made, command, {**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", **variables})


def test_every_pattern_is_exchanged_rightly_by_every_way(mpi: Installation, program: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text("0 5 0 700\n1 2 3 4\n0 0 0 0\n90 0 90 90\n")
    ways = (DEFAULT, Choice("parata", (("radix", 2),)), Choice("linear"), Choice("tuned"))
    names = ("uniform", "constant", "power", "skewed")
    patterns = [*(Blocks(name, peers) for name in names for peers in ("0", "2", "few2")), Blocks("counts0")]
    points = [Point(Scenario(b.collective, 1, _RANKS, size), ways) for b in patterns for size in (3, 900)]
    measuring = source(mpi, program, str(counts), COLLTUNE_ALLTOALLV=str(tmp_path / "none.json"))
    found = measure(measuring, points)
    assert [sample.status for sample in found] == [Status.OK] * len(points) * len(ways)
    header = (source_directory("alltoallv").parent / "include" / "colltune_alltoallv.h").read_text()
    named = re.findall(r"CT_ALLTOALLV_([A-Z]+),? +/\*", header)
    assert tuple(name.lower() for name in named) == ALGORITHMS[:-1]


@pytest.mark.parametrize("name", ["sparse matrix, 100 rows", "graph, 100 edges", "keys, 100"])
def test_patterns_of_applications_are_exchanged_rightly_by_every_way(
    mpi: Installation, program: Path, tmp_path: Path, name: str
) -> None:
    np.save(tmp_path / "counts.npy", matrices(6)[name])
    recorded = load_recorded([tmp_path / "counts.npy"], Shape(3, 2), [1 << power for power in range(2, 12)])
    ways = tuple(map(choice_of, candidates(Shape(3, 2))))
    files = map(str, write_matrices(recorded, tmp_path))
    measuring = source(mpi, program, *files, shape=Shape(3, 2), COLLTUNE_ALLTOALLV_NODE="2")
    found = measure(measuring, [Point(recorded[0].scenario, ways)])
    assert [sample.status for sample in found] == [Status.OK] * len(ways)


def test_parts_of_the_job_are_measured_in_any_order(mpi: Installation, program: Path) -> None:
    ways = (DEFAULT, Choice("parata", (("radix", 2),)), Choice("hieata", (("radix", 2),)))
    parts = [(3, 2), (2, 2), (3, 1), (2, 2), (1, 2), (3, 2)]
    points = [Point(Scenario(Blocks("skewed", "few4").collective, *part, 64), ways) for part in parts]
    measuring = source(mpi, program, shape=Shape(3, 2), COLLTUNE_ALLTOALLV_NODE="2")
    found = measure(measuring, points)
    assert [sample.status for sample in found] == [Status.OK] * len(points) * len(ways)
    assert [(one.scenario.nodes, one.scenario.ppn) for one in found[:: len(ways)]] == parts


@pytest.mark.parametrize("part", [(1, 5), (2, 4)])
def test_a_part_that_the_job_does_not_have_is_not_measured_and_the_launch_goes_on(
    mpi: Installation, program: Path, part: tuple[int, int]
) -> None:
    measuring = source(mpi, program)
    points = [Point(Scenario("alltoallv", *shape, 64), (DEFAULT,)) for shape in (part, (1, _RANKS))]
    refused, measured = measure(measuring, points)
    assert (refused.status, refused.detail) == (Status.UNMEASURED, "no such nodes or ppn in this job")
    assert measured.status is Status.OK


def test_a_job_of_other_ranks_is_not_measured(mpi: Installation, program: Path) -> None:
    measuring = source(mpi, program)
    measuring._environment = replace(measuring.environment, ppn=_RANKS + 1)
    with closing(measuring), pytest.raises(LaunchError, match="4 ranks started in place of 5"):
        measuring.set_up_s()


def test_setting_a_communicator_up_is_timed_beside_the_exchanges(mpi: Installation, program: Path) -> None:
    measuring = source(mpi, program)
    with closing(measuring):
        first_s = measuring.set_up_s()
        (point,) = measuring.measure([Point(Scenario("alltoallv", 1, _RANKS, 64), (DEFAULT,))], SHORT)
        again_s = measuring.set_up_s()
    assert point[1][0].status is Status.OK
    assert 0.0 < again_s < 60.0
    assert 0.0 < first_s < 60.0


def test_what_setting_up_costs_is_little_beside_the_calls_before_it() -> None:
    # 2% of 2,500 calls of a millisecond.
    assert first_call(0.05, [2e-3, 1e-3]) == 2500
    assert first_call(1e-9, [1e-3]) == first_call(math.nan, [1e-3]) == first_call(0.05, []) == FIRST_CALL


@pytest.mark.parametrize("text", ["1 2 3\n", "1 2 3 -4\n", "1 2 3 4 5\n", ""])
def test_a_file_that_is_no_matrix_of_this_job_is_named(
    mpi: Installation, program: Path, tmp_path: Path, text: str
) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text(text)
    measuring = source(mpi, program, str(counts), shape=Shape(1, 2))
    point = Point(Scenario(Blocks("counts0").collective, 1, 2, 64), (DEFAULT,))
    (sample,) = measure(measuring, [point])
    assert (sample.status, sample.detail) == (Status.INAPPLICABLE, f"not-2x2-numbers-of-bytes:{counts}")
