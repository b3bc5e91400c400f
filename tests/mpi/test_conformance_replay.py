"""The replay passes on the library as it is, and finds each of the faults it is there for."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.emit.mpich.defaults import cut_default_trees
from colltune.machine.compile import COMMON, build, source_directory
from colltune.mpi.installation import Installation
from colltune.prove.replay import on_workbench
from colltune.prove.replay.conformance import PROGRAM, ConformanceResult, replay_arguments, run_conformance
from compiled import C_FLAGS, compiled, shared

SELECTION = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
DIES = {"COLLTUNE_TEST_FAULT": "allreduce:28:abort"}


@pytest.fixture(scope="module")
def mpiexec(mpi: Installation) -> Path:
    return mpi.mpiexec


@pytest.fixture(scope="module")
def program(mpiexec: Path) -> Path:
    return build(mpiexec.with_name("mpicc"), PROGRAM)


def replay(
    mpiexec: Path, program: Path, world: int, arguments: Sequence[str], timeout_s: float = 120.0, **variables: str
) -> ConformanceResult:
    command = [str(mpiexec), "-n", str(world), str(program), *arguments]
    return run_conformance(command, {**os.environ, **variables}, timeout_s)


def test_the_library_itself_passes_at_1_to_8_ranks(mpiexec: Path, program: Path) -> None:
    result = replay(mpiexec, program, 8, replay_arguments(range(1, 9), short=True))
    assert result.passed, result.message
    assert result.cases > 1500


def test_collectives_without_a_rule_are_run_at_some_counts_of_ranks(mpiexec: Path, program: Path) -> None:
    ruled = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, None, None, Choice("binomial")),))
    some = replay(mpiexec, program, 6, replay_arguments([1, 5, 6], short=True)).cases
    some += replay(mpiexec, program, 6, replay_arguments([2, 3, 4], short=True, collectives=["bcast"])).cases
    both = replay(mpiexec, program, 6, replay_arguments(range(1, 7), [ruled], short=True))
    assert both.cases == pytest.approx(some, rel=0.03)  # what is drawn differs


def test_the_full_form_passes(mpiexec: Path, program: Path) -> None:
    bounds = RuleSet(
        "allgather", SizeBasis.TOTAL, (Rule(None, None, 600, Choice("ring")), Rule(None, None, None, DEFAULT))
    )
    only = ["allgather", "alltoallv", "gather", "reduce_scatter", "scatter"]
    result = replay(mpiexec, program, 3, replay_arguments([3], [bounds], collectives=only, max_bytes=100_000))
    assert result.passed, result.message
    assert result.skipped == ()


def test_threads_and_single_cases(mpiexec: Path, program: Path) -> None:
    arguments = replay_arguments([3], short=True, thread_level="multiple", collectives=["bcast", "allreduce"])
    result = replay(mpiexec, program, 3, arguments)
    assert result.passed, result.message
    alone = replay(mpiexec, program, 3, [*arguments, "--case", str(result.cases - 1)])
    assert alone.passed, alone.message
    assert 0 < alone.cases < 10


LATE = """#include <mpi.h>
#include <unistd.h>
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rank, code = PMPI_Init_thread(argc, argv, required, provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sleep(rank == 1 ? 3 : 0);
    return code;
}
"""


def test_what_a_rank_that_begins_late_takes_is_not_what_cases_take(
    mpiexec: Path, program: Path, tmp_path: Path
) -> None:
    (tmp_path / "late.c").write_text(LATE)
    late = shared(tmp_path / "late.c", compiler=mpiexec.with_name("mpicc"))
    arguments = replay_arguments([1, 2], short=True, collectives=["bcast"])
    result = replay(mpiexec, program, 2, arguments, LD_PRELOAD=str(late))
    assert result.passed, result.message
    assert result.wall_s > 3.0
    assert result.cases_s < 2.0


def test_an_algorithm_outside_its_preconditions_is_named(mpiexec: Path, program: Path, tmp_path: Path) -> None:
    general = dict(cut_default_trees(mpiexec.parent.parent / "lib" / "libmpi.so.12").general)
    general["collective=allgather"] = {
        "comm_type=intra": {"algorithm=MPIR_Allgather_intra_recursive_doubling": {}},
        "comm_type=inter": {"algorithm=MPIR_Allgather_inter_local_gather_remote_bcast": {}},
    }
    selection = tmp_path / "selection.json"
    selection.write_text(json.dumps(general))
    arguments = replay_arguments([1, 2, 3, 4], short=True)
    result = replay(mpiexec, program, 4, arguments, **{SELECTION: str(selection)})
    assert not result.passed
    assert result.crashed_case is not None
    assert "allgather" in result.crashed_case
    assert "ranks=3" in result.crashed_case
    assert "Assertion failed" in result.detail


def test_a_file_that_does_not_load_is_a_crash_at_the_start(mpiexec: Path, program: Path, tmp_path: Path) -> None:
    selection = tmp_path / "selection.json"
    selection.write_text('{"collective=bcast": {"comm_siez<=4": {')
    result = replay(mpiexec, program, 2, replay_arguments([2], short=True), **{SELECTION: str(selection)})
    assert not result.passed
    assert result.crashed_case == "start-up, before the first case"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("allreduce:28:wrong", "byte 0 of element 0"),
        ("allreduce:28:swap", "op=user_ordered"),
        ("allgather:*:overrun", "after its end"),
        ("bcast:*:gap", "gap byte 5 of element 0"),
        ("barrier:*:leave", "left before"),
    ],
)
def test_a_fault_is_found(mpiexec: Path, program: Path, faulty: str, fault: str, words: str) -> None:
    collective = fault.split(":")[0]
    # Seven bytes or seven elements: allreduce counts in elements of four bytes.
    extra = [] if collective == "barrier" else ["--sizes", f"{collective}=28"]
    arguments = [*replay_arguments([3], collectives=[collective], max_bytes=2000), *extra]
    result = replay(mpiexec, program, 3, arguments, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT=fault)
    assert result.crashed_case is None, result.message
    assert 0 < result.failure_count < result.cases
    assert all(text.split()[1] == collective for text in result.failures)
    assert all(words in text for text in result.failures)


@pytest.mark.parametrize(("fault", "hung"), [("abort", False), ("hang", True)])
def test_the_case_that_ends_or_hangs_is_named(
    mpiexec: Path, program: Path, faulty: str, fault: str, hung: bool
) -> None:
    arguments = [
        *replay_arguments([2], collectives=["allreduce"], short=True, case_limit_s=2),
        "--sizes",
        "allreduce=28",
    ]
    result = replay(mpiexec, program, 2, arguments, LD_PRELOAD=faulty, COLLTUNE_TEST_FAULT=f"allreduce:28:{fault}")
    assert result.hung is hung
    assert result.crashed_case is not None
    assert "allreduce" in result.crashed_case
    assert "count=7" in result.crashed_case


def test_the_program_is_clean_under_sanitizers(mpiexec: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    flags = [*C_FLAGS, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = source_directory(PROGRAM)
    program = compiled(
        mpiexec.with_name("mpicc"), *flags, f"-I{sources.with_name(COMMON)}", *sorted(sources.glob("*.c"))
    )
    # MPICH keeps what it has until the process ends.
    result = replay(
        mpiexec, program, 3, replay_arguments([3], short=True, max_bytes=50_000), ASAN_OPTIONS="detect_leaks=0"
    )
    assert result.passed, result.message


@pytest.mark.parametrize("by_itself", [True, False])
def test_calls_with_which_the_library_ends_the_job_by_itself_are_left_out(
    mpiexec: Path, faulty: str, by_itself: bool
) -> None:
    own = DIES if by_itself else {}
    environ = {**os.environ, "LD_PRELOAD": faulty, **own}
    bench = open_workbench(MachineOptions(mpiexec=str(mpiexec), ppn=2), environ)
    rules = (Rule(None, None, 28, Choice("recursive_doubling")), Rule(None, None, None, DEFAULT))
    rule_sets = {"allreduce": RuleSet("allreduce", SizeBasis.MESSAGE, rules)}
    result = on_workbench.replay(bench, rule_sets, DIES, short=True, counts=(2,))
    assert result.passed is by_itself, result.message
    assert result.left_out == (("allreduce ranks=2",) if by_itself else ())
    assert ("the MPI by itself ends such jobs" in result.message) is by_itself
    if not by_itself:
        assert "count=7" in str(result.crashed_case)


def test_where_the_library_ends_the_job_by_itself_the_collectives_with_rules_are_checked(
    mpiexec: Path, faulty: str
) -> None:
    environ = {**os.environ, "LD_PRELOAD": faulty, **DIES}
    bench = open_workbench(MachineOptions(mpiexec=str(mpiexec), ppn=2), environ)
    rules = (Rule(None, None, 28, Choice("binomial")), Rule(None, None, None, DEFAULT))
    own = RuleSet("allreduce", SizeBasis.MESSAGE, (Rule(None, None, 28, DEFAULT), Rule(None, None, None, DEFAULT)))
    rule_sets = {"allreduce": own, "bcast": RuleSet("bcast", SizeBasis.MESSAGE, rules)}
    result = on_workbench.replay(bench, rule_sets, {}, short=True)
    assert result.passed, result.message
    assert result.left_out == ("the collectives without a rule",)
