"""The live source on a real MPI: what it calls a time is one, and what goes wrong costs little and is named."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from jobs import SHORT, Jobs, measure, point

from colltune.core.errors import LaunchError
from colltune.core.sample import COLLECTIVES, DEFAULT, REDUCTIONS, Choice, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort


def statuses(samples: list[Sample]) -> dict[tuple[str, int, str], Status]:
    return {(s.scenario.collective, s.scenario.size_bytes, s.choice.algorithm): s.status for s in samples}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8])
def test_every_collective_is_measured_at_any_number_of_ranks_in_one_launch(jobs: Jobs, ranks: int) -> None:
    sizes = {name: 4 * ranks if name in REDUCTIONS else 100 for name in COLLECTIVES} | {"barrier": 0}
    parts = sorted({ranks, max(1, ranks - 1), max(1, ranks // 2)})
    points = [point(name, part, sizes[name], "default") for part in parts for name in COLLECTIVES]
    # None of the calls is a long one, also where ranks wait for a core.
    samples = measure(jobs.source(ranks), points, replace(SHORT, box_s=0.01))
    assert [(s.scenario, s.choice, s.status) for s in samples] == [(p.scenario, DEFAULT, Status.OK) for p in points]
    assert jobs.launches == 1
    for sample in samples:
        assert SHORT.fewest <= len(sample.times_s) <= SHORT.most
        assert sample.cost_s > 0.0
        assert sample.back_to_back_s is not None
        assert sample.back_to_back_s > 0.0
        assert sample.osu_mean_s is not None
        # The mean over the ranks cannot be above the mean of the slowest one's times.
        assert sample.osu_mean_s <= sum(sample.times_s) / len(sample.times_s) * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize(
    ("collective", "algorithm", "ranks", "size_bytes"),
    [
        ("allgather", "recursive_doubling", 3, 64),
        ("allgather", "recursive_doubling", 6, 64),
        ("allgatherv", "recursive_doubling", 3, 64),
        ("allreduce", "reduce_scatter_allgather", 4, 8),
        ("alltoall", "pairwise_sendrecv_replace", 2, 64),
        ("alltoall", "pairwise_sendrecv_replace", 4, 64),
        ("reduce", "reduce_scatter_gather", 4, 8),
        ("reduce_scatter_block", "noncommutative", 3, 48),
    ],
)
def test_what_the_library_would_replace_is_inapplicable_and_never_timed(
    jobs: Jobs, collective: str, algorithm: str, ranks: int, size_bytes: int
) -> None:
    fits = {"allgather": "ring", "allgatherv": "ring", "allreduce": "recursive_doubling", "alltoall": "pairwise"}
    fits |= {"reduce": "binomial", "reduce_scatter_block": "pairwise"}
    samples = measure(jobs.source(ranks), [point(collective, ranks, size_bytes, algorithm, fits[collective])])
    assert [sample.status for sample in samples] == [Status.INAPPLICABLE, Status.OK]
    assert samples[0].times_s == ()
    assert samples[0].back_to_back_s is None
    assert samples[0].detail == "refused-by-the-library"
    assert jobs.launches == 1


def test_a_call_that_cannot_be_made_is_inapplicable(jobs: Jobs) -> None:
    points = [point("reduce_scatter_block", 3, 8, "default"), point("bcast", 3, 2**33, "default")]
    samples = measure(jobs.source(3), points)
    assert [sample.status for sample in samples] == [Status.INAPPLICABLE] * 2
    assert "one-element" in samples[0].detail
    assert "no-buffers" in samples[1].detail


def test_a_variable_that_the_library_lacks_makes_a_choice_inapplicable(jobs: Jobs) -> None:
    source = jobs.source(2)
    lacking = (("MPIR_CVAR_NO_SUCH", 1),)
    source._plan = replace(source._plan, settings=lambda _, choice: lacking if choice.parameters else ())
    samples = measure(source, [Point(Scenario("bcast", 1, 2, 8), (DEFAULT, Choice("tree", (("k", 2),))))])
    assert [sample.status for sample in samples] == [Status.OK, Status.INAPPLICABLE]
    assert samples[1].detail == "no-control-variable:MPIR_CVAR_NO_SUCH"


@pytest.mark.parametrize(("collective", "algorithm"), [("bcast", "binomial"), ("allreduce", "recursive_doubling")])
@pytest.mark.parametrize("call", [1, 2])
def test_a_wrong_result_is_wrong_also_where_only_later_calls_give_it(
    jobs: Jobs, faulty: str, collective: str, algorithm: str, call: int
) -> None:
    fault = f"{collective}:64:wrong:{jobs.numbered(collective, algorithm)}:{call}"
    source = jobs.source(2, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT=fault)
    points = [point(collective, 2, size, "default", algorithm, "nb") for size in (32, 64)]
    found = statuses(measure(source, points))
    assert {key for key, status in found.items() if status is not Status.OK} == {(collective, 64, algorithm)}
    assert found[collective, 64, algorithm] is Status.WRONG
    assert jobs.launches == 1


def test_the_rank_with_the_wrong_result_is_named(jobs: Jobs, faulty: str) -> None:
    source = jobs.source(2, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT="bcast:64:wrong")
    (sample,) = measure(source, [point("bcast", 2, 64, "default")])
    assert sample.detail == "wrong-result-on-rank-1"
    assert sample.times_s == ()


@pytest.mark.parametrize(("what", "status"), [("abort", Status.CRASHED), ("exit", None), ("hang", Status.HUNG)])
@pytest.mark.parametrize("algorithm", ["binomial", "nb"])  # in the middle of a point, and its last
def test_an_algorithm_that_ends_or_hangs_the_job_costs_one_relaunch_and_the_rest_is_measured(
    jobs: Jobs, faulty: str, what: str, status: Status | None, algorithm: str
) -> None:
    fault = f"bcast:64:{what}:{jobs.numbered('bcast', algorithm)}"
    source = jobs.source(2, silence_s=6.0, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT=fault)
    points = [point("bcast", 2, size, "default", "binomial", "nb") for size in (32, 64, 128, 256)]
    found = statuses(measure(source, points))
    bad = {key: value for key, value in found.items() if value is not Status.OK}
    assert list(bad) == [("bcast", 64, algorithm)]
    assert bad["bcast", 64, algorithm] in ([status] if status else [Status.CRASHED, Status.HUNG])
    # After its fault is known, the algorithm is left out; all others are measured everywhere.
    others = {(size, name) for size in (32, 64, 128, 256) for name in {"default", "binomial", "nb"} - {algorithm}}
    assert others <= {(size, name) for (_, size, name), value in found.items() if value is Status.OK}
    # The last choice of a point may not be to blame for what happens in the repetitions, so it is tried alone.
    assert jobs.launches == (2 if algorithm == "binomial" else 3)
    assert ("quarantine", "bcast") in [(kind, str(f.get("scenario", ""))[21:26]) for kind, f in jobs.events]


def test_slow_calls_are_no_hang_however_long_all_take_together(jobs: Jobs, faulty: str) -> None:
    source = jobs.source(2, silence_s=4.0, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT="bcast:64:slow")
    slow = Effort(box_s=0.1, fewest=20, most=20)
    start_s = time.monotonic()
    samples = measure(source, [point("bcast", 2, 64, "default", "binomial", "nb", "scatter_ring_allgather")], slow)
    assert time.monotonic() - start_s > 4.0 + 4 * 5.0 * slow.box_s  # what it may be silent for
    assert [sample.status for sample in samples] == [Status.OK] * 4
    assert jobs.launches == 1


def test_of_long_calls_there_are_no_more_than_are_needed(jobs: Jobs, faulty: str) -> None:
    source = jobs.source(2, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT="bcast:64:slow")
    short, long = measure(source, [point("bcast", 2, size, "default") for size in (32, 64)], Effort(box_s=0.004))
    assert short.back_to_back_s is not None
    assert len(short.times_s) >= 10
    assert long.back_to_back_s is None
    assert len(long.times_s) == 3
    assert min(long.times_s) > 0.1
    # The trial, and what was timed.
    assert long.cost_s < 1.5 * 4 * max(long.times_s)
    # A first look at what is longer than its time box is one call and its trial.
    asked = [point("bcast", 2, 32, "default"), replace(point("bcast", 2, 64, "default"), repetitions=3)]
    first_look = measure(source, asked, Effort(box_s=0.05))[-1]
    assert len(first_look.times_s) == 1
    assert first_look.cost_s < 1.5 * 2 * max(first_look.times_s)


def test_an_algorithm_that_fails_everywhere_costs_one_relaunch_in_all(jobs: Jobs, faulty: str) -> None:
    fault = f"bcast:*:abort:{jobs.numbered('bcast', 'binomial')}"
    source = jobs.source(2, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT=fault)
    points = [point("bcast", 2, size, "default", "binomial", "nb") for size in (8, 16, 32, 64)]
    found = statuses(measure(source, points))
    assert [key for key, value in found.items() if value is not Status.OK] == [("bcast", 8, "binomial")]
    assert sum(value is Status.OK for value in found.values()) == 8
    assert jobs.launches == 2


def test_a_fault_in_the_repetitions_is_found_by_measuring_each_alone(jobs: Jobs, faulty: str) -> None:
    fault = f"bcast:64:abort:{jobs.numbered('bcast', 'binomial')}:4"
    source = jobs.source(2, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT=fault)
    found = statuses(measure(source, [point("bcast", 2, 64, "default", "binomial", "nb")]))
    assert found == {
        ("bcast", 64, "default"): Status.OK,
        ("bcast", 64, "binomial"): Status.CRASHED,
        ("bcast", 64, "nb"): Status.OK,
    }
    assert ("lost" in [kind for kind, _ in jobs.events]) is True


def test_a_launcher_that_is_killed_costs_a_relaunch_and_one_choice_of_one_point_at_most(jobs: Jobs) -> None:
    sizes = (8, 16, 32, 64)
    source = jobs.source(2)
    samples, killed = [], False
    for _, found in source.measure((point("bcast", 2, size, "default", "binomial") for size in sizes), SHORT):
        samples += found
        if not killed:
            killed = True
            os.kill(source._agent._process.pid, signal.SIGKILL)
    source.close()
    measured = {(s.scenario.size_bytes, s.choice.algorithm) for s in samples if s.status is Status.OK}
    # From outside, a kill looks as if the choice that was running had done it.
    blamed = [s.choice.algorithm for s in samples if s.status is not Status.OK]
    assert len(blamed) <= 1
    assert len({(size, name) for size in sizes for name in {"default", "binomial"} - set(blamed)} - measured) == 0
    assert 2 <= jobs.launches <= 3
    assert jobs.all_end()


def test_a_job_that_ends_again_and_again_is_an_error_not_an_endless_loop(jobs: Jobs, tmp_path: Path) -> None:
    ready = "ready protocol=1 ranks=2 thread_level=0 nodes=here:2"
    jobs.mpiexec.write_text(f'#!/bin/sh\necho x >> {tmp_path}/launches\necho "{ready}"\nread line\nexit 7\n')
    with pytest.raises(LaunchError, match="ended before they began to measure"):
        measure(jobs.source(2), [point("bcast", 2, 8, "default")])
    assert jobs.launches == 2


def test_closed_input_ends_the_job(jobs: Jobs) -> None:
    source = jobs.source(3)
    source.start()
    process = source._agent._process
    assert len(jobs.processes()) >= 4
    process.stdin.close()
    assert process.wait(100) == 0
    assert jobs.all_end()


@pytest.mark.parametrize("hang", [False, True])
def test_killing_the_source_leaves_no_process_behind(jobs: Jobs, faulty: str, hang: bool) -> None:
    source = jobs.source(3, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT="bcast:64:hang")
    source.start()
    if hang:
        source.begin(point("bcast", 3, 64, "default"), SHORT)
        time.sleep(0.3)
    assert len(jobs.processes()) >= 4
    source.kill()
    assert jobs.all_end()


def test_ranks_that_hang_end_themselves_if_the_host_has_died(jobs: Jobs, faulty: str) -> None:
    """A host that is killed with SIGKILL can end nobody: its input ends, and no rank is there to read that."""
    source = jobs.source(2, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT="bcast:64:hang")
    source.start()
    agent = source._agent
    agent.send("measure id=1 collective=bcast bytes=64 ppn=2 nodes=0 limit_s=1 choice=")
    time.sleep(0.3)
    agent._process.stdin.close()
    assert jobs.all_end()
