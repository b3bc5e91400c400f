"""Patterns of blocks on a real MPI: what the measuring program exchanges, and with what."""

import math
import os
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from colltune.alltoallv.lookup_table import FIRST_CALL, Shape, candidates, choice_of
from colltune.alltoallv.matrices import load_recorded, write_matrices
from colltune.alltoallv.samples import AGENT_PARTS, ALGORITHMS, AlltoallvSource, Blocks
from colltune.alltoallv.tune_table import first_call
from colltune.core.errors import LaunchError
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, Status
from colltune.core.space import Point
from colltune.machine.compile import build, source_directory
from colltune.measure.contract import Effort
from colltune.mpi.installation import Installation

_RANKS = 4
_SHAPE = Shape(1, _RANKS)
Counts = NDArray[np.int64]
_SHORT = Effort(relative_width=0.5, box_s=0.0005, fewest=3, most=8, warm_up=1)


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
    try:
        found = [sample for _, samples in measuring.measure(points, _SHORT) for sample in samples]
    finally:
        measuring.close()
    assert [sample.status for sample in found] == [Status.OK] * len(points) * len(ways)
    header = (source_directory("alltoallv").parent / "include" / "colltune_alltoallv.h").read_text()
    named = re.findall(r"CT_ALLTOALLV_([A-Z]+),? +/\*", header)
    assert tuple(name.lower() for name in named) == ALGORITHMS[:-1]


def sparse_products(ranks: int) -> Counts:
    """Of a product of sparse matrices: neighbours along a band get much, a few others a little."""
    distance = np.abs(np.subtract.outer(np.arange(ranks), np.arange(ranks)))
    random = np.random.default_rng(1).random((ranks, ranks)) < 0.15
    return np.where(distance <= 1, 400, np.where(random, 16, 0))


def graph_exchange(ranks: int) -> Counts:
    """Of a graph with a power law of degrees: a few pairs exchange most, half of them nothing."""
    draw = np.random.default_rng(2).random((ranks, ranks))
    return np.where(draw < 0.5, 0, (8 / np.sqrt(1.0001 - draw)).astype(np.int64))


def sorted_keys(ranks: int) -> Counts:
    """Of a sample sort whose input is nearly sorted: each rank keeps most, sends to the next, and to one far away."""
    found = np.diag(np.full(ranks, 3000))
    for rank in range(ranks):
        found[rank, (rank + 1) % ranks] += 200
        found[rank, (rank * 3) % ranks] += 24
    return found


@pytest.mark.parametrize("made", [sparse_products, graph_exchange, sorted_keys])
def test_patterns_of_applications_are_exchanged_rightly_by_every_way(
    mpi: Installation, program: Path, tmp_path: Path, made: Callable[[int], Counts]
) -> None:
    np.save(tmp_path / "counts.npy", made(6))
    recorded = load_recorded([tmp_path / "counts.npy"], Shape(3, 2), [1 << power for power in range(2, 12)])
    ways = tuple(map(choice_of, candidates(Shape(3, 2))))
    files = map(str, write_matrices(recorded, tmp_path))
    measuring = source(mpi, program, *files, shape=Shape(3, 2), COLLTUNE_ALLTOALLV_NODE="2")
    try:
        ((_, found),) = measuring.measure([Point(recorded[0].scenario, ways)], _SHORT)
    finally:
        measuring.close()
    assert [sample.status for sample in found] == [Status.OK] * len(ways)


def test_parts_of_the_job_are_measured_in_any_order(mpi: Installation, program: Path) -> None:
    ways = (DEFAULT, Choice("parata", (("radix", 2),)), Choice("hieata", (("radix", 2),)))
    parts = [(3, 2), (2, 2), (3, 1), (2, 2), (1, 2), (3, 2)]
    points = [Point(Scenario(Blocks("skewed", "few4").collective, *part, 64), ways) for part in parts]
    measuring = source(mpi, program, shape=Shape(3, 2), COLLTUNE_ALLTOALLV_NODE="2")
    try:
        found = [sample for _, samples in measuring.measure(points, _SHORT) for sample in samples]
    finally:
        measuring.close()
    assert [sample.status for sample in found] == [Status.OK] * len(points) * len(ways)
    assert [(one.scenario.nodes, one.scenario.ppn) for one in found[:: len(ways)]] == parts


@pytest.mark.parametrize("part", [(1, 5), (2, 4)])
def test_a_part_that_the_job_does_not_have_is_not_measured_and_the_launch_goes_on(
    mpi: Installation, program: Path, part: tuple[int, int]
) -> None:
    measuring = source(mpi, program)
    try:
        points = [Point(Scenario("alltoallv", *shape, 64), (DEFAULT,)) for shape in (part, (1, _RANKS))]
        (_, (refused,)), (_, (measured,)) = measuring.measure(points, _SHORT)
    finally:
        measuring.close()
    assert (refused.status, refused.detail) == (Status.UNMEASURED, "no such nodes or ppn in this job")
    assert measured.status is Status.OK


def test_a_job_of_other_ranks_is_not_measured(mpi: Installation, program: Path) -> None:
    measuring = source(mpi, program)
    measuring._environment = replace(measuring.environment, ppn=_RANKS + 1)
    with closing(measuring), pytest.raises(LaunchError, match="4 ranks started in place of 5"):
        measuring.set_up_s()


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
    try:
        point = Point(Scenario(Blocks("counts0").collective, 1, 2, 64), (DEFAULT,))
        ((_, (sample,)),) = measuring.measure([point], _SHORT)
    finally:
        measuring.close()
    assert (sample.status, sample.detail) == (Status.INAPPLICABLE, f"not-2x2-numbers-of-bytes:{counts}")
