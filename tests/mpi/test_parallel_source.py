"""Measuring on disjoint nodes at once, in one real launch: nodes are cliques that MPICH is told to see."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from jobs import QUIET, SHORT, Jobs

from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.measure.live import LiveSource
from colltune.mpi.installation import Installation

NODES = {"MPIR_CVAR_NUM_CLIQUES": "4", "MPIR_CVAR_CLIQUES_BY_BLOCK": "1", "MPIR_CVAR_CH4_NETMOD": "ofi"}
NODES |= {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", **QUIET}


@pytest.fixture
def jobs(mpi: Installation, agent: Path, tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(mpi, agent, tmp_path)
    yield jobs
    assert jobs.all_end()


def four_nodes(jobs: Jobs, **variables: str) -> LiveSource:
    return jobs.source(4, **NODES, **variables)


def answers(source: LiveSource) -> list[Sample]:
    samples: list[Sample] = []
    while source._held or source._flying or source._ready:
        samples += source.next_answer().samples
    return samples


def point(collective: str, nodes: int, size_bytes: int, *names: str) -> Point:
    return Point(Scenario(collective, nodes, 1, size_bytes), tuple(Choice(name) for name in names))


def test_disjoint_points_run_at_once_and_rank_0_serves_both(jobs: Jobs) -> None:
    with closing(four_nodes(jobs)) as source:
        slow = replace(SHORT, relative_width=1e-9, box_s=0.5, fewest=50, most=20000)
        first = source.begin(point("bcast", 2, 4096, "default"), slow, (0, 1))
        tickets = [source.begin(point("bcast", 2, 8, "default"), SHORT, (2, 3)) for _ in range(3)]
        order = [source.next_answer().ticket for _ in range(4)]
    # Rank 0 was busy with the first all the time, and passed on requests and answers of the others.
    assert order == [*tickets, first]
    assert jobs.launches == 1


def test_any_nodes_in_any_order_give_right_results(jobs: Jobs) -> None:
    with closing(four_nodes(jobs)) as source:
        for turn in range(40):  # places come and go, so communicators are made anew
            for nodes in ((0, 2), (1, 3)) if turn % 2 else ((0, 3), (1, 2)):
                source.begin(point("allreduce", 2, 64 << turn % 3, "default", "recursive_doubling"), SHORT, nodes)
            if turn % 5 == 0:
                source.begin(point("alltoall", 4, 16, "default", "pairwise"), SHORT)
        samples = answers(source)
    assert len(samples) == 176
    assert {sample.status for sample in samples} == {Status.OK}


def test_points_of_any_shapes_in_a_row_come_in_order_with_right_results(jobs: Jobs) -> None:
    points = [
        point(collective, nodes, 16 << turn, "default")
        for turn in range(8)
        for nodes in (2, 4, 3, 2, 3, 4)
        for collective in ("allreduce", "allgather")
    ]
    with closing(four_nodes(jobs)) as source:
        answered = list(source.measure(points, SHORT))
    assert [one for one, _ in answered] == points
    assert {sample.status for _, samples in answered for sample in samples} == {Status.OK}
    assert jobs.launches == 1


def test_what_shares_a_node_waits(jobs: Jobs) -> None:
    with closing(four_nodes(jobs)) as source:
        tickets = [source.begin(point("bcast", 2, 8, "default"), SHORT, nodes) for nodes in ((1, 2), (2, 3), (0, 3))]
        assert [source.next_answer().ticket for _ in tickets] == tickets


@pytest.mark.parametrize("how", ["abort", "hang"])
def test_the_one_that_ends_the_job_is_found_among_several(jobs: Jobs, faulty: str, how: str) -> None:
    fault = {"LD_PRELOAD": faulty, "COLLTUNE_TEST_FAULT": f"bcast:64:{how}"}
    source = jobs.source(4, silence_s=6.0, **NODES, **fault)
    slow = Effort(relative_width=1e-9, box_s=0.3, fewest=50, most=20000)
    try:
        source.begin(point("allgather", 2, 8, "default"), slow, (0, 1))
        time.sleep(0.2)
        source.begin(Point(Scenario("bcast", 2, 1, 64), (DEFAULT,)), SHORT, (2, 3))
        samples = answers(source)
    finally:
        source.kill()
    status = {sample.scenario.collective: sample.status for sample in samples}
    assert status == {"allgather": Status.OK, "bcast": Status.CRASHED if how == "abort" else Status.HUNG}
