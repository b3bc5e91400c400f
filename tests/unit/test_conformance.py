"""What is tried, how the replay's output is read, and that a job which ends or hangs becomes a result."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import LaunchError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.prove.replay.conformance import (
    BEFORE_FIRST_CASE,
    ConformanceResult,
    beyond_the_library,
    boundaries,
    joined,
    parse_output,
    rank_counts,
    replay_arguments,
    run_conformance,
)

RING = Choice("ring")


def rules(collective: str, basis: SizeBasis, *bounds: int) -> RuleSet:
    return RuleSet(
        collective, basis, (*(Rule(None, None, bound, RING) for bound in bounds), Rule(None, None, None, DEFAULT))
    )


def parse(stdout: str, *, stderr: str = "", running: str = "", code: int | None = 0) -> ConformanceResult:
    return parse_output(["mpiexec", "-n", "4", "replay"], stdout, stderr, running, code, 1.5)


@given(st.integers(1, 3000))
def test_rank_counts_hold_what_breaks_algorithms(world: int) -> None:
    counts = rank_counts(world)
    assert counts == sorted(set(counts))
    assert set(range(1, min(world, 16) + 1)) <= set(counts)
    assert counts[-1] == world
    for power in (2**n for n in range(12)):
        beside = {power - 1, power + 1} if power <= 1024 else set()
        assert {power, *beside} & set(range(1, world + 1)) <= set(counts)
    for power in (2**n for n in range(4, 11)):
        if 2 * power <= world:
            assert any(all(count % d for d in range(2, count)) for count in counts if power + 1 < count < 2 * power - 1)
    assert len(counts) <= 16 + 5 * world.bit_length()


@given(st.sets(st.integers(0, 1 << 30), max_size=8))
def test_each_bound_is_tried_from_both_sides(bounds: set[int]) -> None:
    sizes = boundaries(rules("bcast", SizeBasis.MESSAGE, *sorted(bounds)))
    assert list(sizes) == sorted(set(sizes))
    assert set(sizes) == {bound + step for bound in bounds for step in (-1, 0, 1) if bound + step >= 0}


def test_arguments_name_the_bounds_in_the_rules_own_basis() -> None:
    some = [rules("bcast", SizeBasis.MESSAGE, 4096), rules("allgather", SizeBasis.TOTAL, 64)]
    some.append(rules("barrier", SizeBasis.NONE))
    arguments = replay_arguments([1, 2, 3], some, short=True, thread_level="multiple")
    assert arguments[:4] == ["--ranks", "1,2,3", "--thread-level", "multiple"]
    assert "--short" in arguments
    assert arguments[arguments.index("--often") + 1] == "bcast,allgather"
    assert "--often" not in replay_arguments([1, 2, 3], some, short=False)
    assert arguments[-4:] == ["--sizes", "bcast=4095,4096,4097", "--totals", "allgather=63,64,65"]


def test_a_clean_run_passes() -> None:
    said = "skip alltoall ranks=4 bytes=9999\ndone cases=12 failures=0 skipped=1 seconds=0.25 again=0.125\n"
    result = parse(said, running="case 12 scatter")
    assert (result.passed, result.cases, result.cases_s, result.again_s) == (True, 12, 0.25, 0.125)
    assert result.skipped == ("alltoall ranks=4 bytes=9999",)
    assert "12 cases" in result.message
    assert "1 sizes left out" in result.message


def test_failures_are_counted_and_can_be_repeated_alone() -> None:
    result = parse("FAIL 7 allreduce comm=world | rank 2: recvbuf\ndone cases=9 failures=140 skipped=0\n", code=1)
    assert (result.passed, result.failure_count) == (False, 140)
    assert result.failures == ("7 allreduce comm=world | rank 2: recvbuf",)
    assert "140 of 9 cases" in result.message
    assert result.message.endswith("mpiexec -n 4 replay --case 7")


def test_what_the_library_gets_wrong_by_itself_is_not_held_against_a_tuning() -> None:
    default = parse("FAIL 3 reduce comm=inter | rank 0: byte 1\ndone cases=9 failures=1 skipped=0\n", code=1)
    same = parse("FAIL 3 reduce comm=inter | rank 1: byte 8\ndone cases=9 failures=1 skipped=0\n", code=1)
    both = "FAIL 3 reduce comm=inter | rank 1: byte 8\nFAIL 4 reduce comm=dup | rank 0: byte 0\n"
    more = parse(f"{both}done cases=9 failures=2 skipped=0\n", code=1)
    assert beyond_the_library(same, default).passed
    assert "1 fail without the tuning too" in beyond_the_library(same, default).message
    left = beyond_the_library(more, default)
    assert (left.passed, left.failures, left.failure_count) == (False, ("4 reduce comm=dup | rank 0: byte 0",), 1)
    assert "--case 4" in left.message


DONE = "done cases=5 failures=0 skipped=0\n"


@pytest.mark.parametrize(
    ("stdout", "stderr", "running", "code", "crashed", "hung", "says"),
    [
        ("", "\nAssertion failed in file a.c at line 3\n", "case 40 allgather ", 134, "40 allgather", False,
         "Assertion failed in file a.c at line 3"),
        ("", "", "case 40 allgather ", 134, "40 allgather", False, "--case 40"),
        # Without a file of progress the last line tells.
        ("case 1 bcast\ncase 2 gather root=0\n", "", "", 9, "2 gather root=0", False, ""),
        ("", "unknown key comm_siez<=4\n", "", 1, BEFORE_FIRST_CASE, False, "unknown key comm_siez"),
        ("HANG 8 barrier comm=dup\n", "", "case 8 barrier comm=dup", 3, "8 barrier comm=dup", True, ""),
        (DONE, "", "case 5 gather", 139, "the end of the job, after all cases", False, ""),
        ("", "", "", None, BEFORE_FIRST_CASE, True, ""),
        (DONE, "", "case 5 gather", None, "the end of the job, after all cases", True, ""),
        # A wrong result counts although the time was up.
        ("FAIL 2 bcast | rank 1: byte 0\n", "", "case 9 gather", None, None, False, ""),
    ],
)  # fmt: skip
def test_a_job_that_ended_or_hung_is_a_finding_at_its_case(
    stdout: str, stderr: str, running: str, code: int | None, crashed: str | None, hung: bool, says: str
) -> None:
    result = parse(stdout, stderr=stderr, running=running, code=code)
    assert not result.passed
    assert (result.crashed_case, result.hung) == (crashed, hung)
    assert says in result.message


def test_refused_arguments_are_not_a_finding_about_the_tuning() -> None:
    with pytest.raises(LaunchError, match="--ranks asks for 9"):
        parse("", stderr="conformance: --ranks asks for 9, but the job has 4\n", code=2)


def test_a_launcher_that_is_missing_is_named_and_a_job_that_outlasts_its_time_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no-such-launcher"):
        run_conformance(["no-such-launcher"], os.environ, 5.0)
    program = tmp_path / "sleeper"
    program.write_text("for last; do :; done\necho 'case 3 alltoall comm=world  ' > \"$last\"\nexec sleep 3600\n")
    result = run_conformance(["sh", str(program)], os.environ, 3.0)
    assert (result.unfinished, result.passed, result.crashed_case) == (True, False, None)
    assert "3 cases were begun" in result.message
    assert result.wall_s < 3600.0


def test_runs_that_go_on_behind_a_crash_are_a_single_result() -> None:
    first = parse("FAIL 2 bcast | rank 1: byte 0\n", running="case 7 reduce comm=dup ranks=3 count=5 root=1", code=139)
    assert (first.crashed_number, first.crashed_kind) == (7, "reduce ranks=3 root=1")
    last = parse("done cases=5 failures=0 skipped=0\n", running="case 12 gather")
    assert last.crashed_number is None
    both = joined([first, last], ["reduce ranks=3 root=1"])
    assert (both.cases, both.failure_count, both.crashed_case) == (11, 1, None)
    assert both.left_out == ("reduce ranks=3 root=1",)
    making = parse("", running="case 988 make_communicator comm=inter ranks=3", code=139)
    assert making.crashed_kind == "make_communicator comm=inter ranks=3"
    assert joined([first], []) == first
