"""The preloaded library: the sequence of an experiment, and the tables of which its wrappers are made."""

import shutil
from pathlib import Path

import pytest

from commands import run_to_end
from compiled import program

_NATIVE = Path(__file__).resolve().parents[2] / "native"
_SHIM = _NATIVE / "shim"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
_SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def ranks() -> Path:
    """The program that follows the sequence on many ranks, without an MPI."""
    return Path(program("cc", "switchback_ranks.c", _SHIM / "switchback.c", "-O2", *_SANITIZED, f"-I{_SHIM}"))


def figures(ranks: Path, *arguments: str) -> dict[str, int]:
    done = run_to_end([ranks, *arguments], check=True)
    return {name: int(value) for name, value in (item.split("=") for item in done.stdout.split())}


def test_all_ranks_run_one_sequence(ranks: Path) -> None:
    """2,000 communicators of 1 to 64 ranks, with up to five cells each and calls in random order."""
    found = figures(ranks, "11", "2000")
    assert found["calls"] == 2000 * 3000
    assert found["differing"] == 0
    assert found["misplaced"] == 0
    assert found["off"] > 100  # of the cells whose rule takes 1.5 times as long
    assert found["rounds"] > 10_000
    assert 0.05 * found["calls"] < found["by_default"] < 0.5 * found["calls"]
    assert abs(found["default_first"] / found["rounds"] - 0.47) < 0.05  # half of the rounds but the first of a cell


def test_a_program_that_repeats_itself_does_not_switch_a_rule_off(ranks: Path) -> None:
    """At most 1 of 1,000 rules that are not slower may be off, also where two rounds differ in their order alone."""
    found = figures(ranks, "11", "4000", "periodic")
    assert found["off"] <= 10
    assert abs(found["default_first"] / found["rounds"] - 0.5) < 0.02


def test_ranks_that_go_by_their_own_times_would_differ(ranks: Path) -> None:
    """So the test above can fail: lengths and verdicts by own times differ between ranks."""
    assert figures(ranks, "11", "100", "own")["differing"] > 50


@pytest.mark.parametrize(("percent", "calls"), [("105", 50_000), ("110", 20_000), ("120", 6000), ("150", 600)])
def test_a_slower_rule_is_off_after_few_calls(ranks: Path, percent: str, calls: int) -> None:
    """Of 100,000 beside noise, on average over the rules: half of the calls run by default while it is in doubt."""
    found = figures(ranks, "7", "100", "keep", percent)
    assert found["tuned"] < 100 * calls
    assert found["off"] > 75


def test_a_rule_that_is_no_slower_stays_and_runs_by_default_seldom(ranks: Path) -> None:
    found = figures(ranks, "7", "100", "keep", "100")
    assert found["off"] <= 1
    assert found["by_default"] < 0.09 * found["calls"]


@pytest.mark.parametrize("percent", ["50", "100", "102", "150", "400"])
def test_trying_a_candidate_costs_no_more_than_it_may(ranks: Path, percent: str) -> None:
    """With a risk of 1 in 1,000; what is slower is given up, and what is faster is tried in one of twenty calls."""
    found = figures(ranks, "5", "4", "try", percent)
    assert (found["misplaced"], found["calls"]) == (0, 8_000_000)
    assert found["cost"] <= 1000
    assert found["off"] == (4 if float(percent) > 101 else 0)
    assert 0 < found["tuned"] <= 0.05 * found["calls"]


def test_most_of_a_run_tries_nothing_that_is_twice_as_slow(ranks: Path) -> None:
    assert figures(ranks, "3", "4", "try", "200")["tuned"] < 2000


_ASK = """#include "collectives.h"
#define NAME(NAME, UPPER, SIGNATURE, FORM, COUNT, DISPL, LARGE) NAME FORM CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL);
CT_EACH_FUNCTION(NAME)
"""


@pytest.fixture(scope="module")
def functions() -> dict[str, str]:
    """By name, the form and the parameters of each function, as the preprocessor makes them."""
    command = ["cc", "-E", "-P", "-x", "c", f"-I{_NATIVE / 'common'}", "-"]
    text = run_to_end(command, input=_ASK, check=True).stdout
    lines = (" ".join(line.split()) for line in text.split(";") if line.strip())
    return dict(line.split(" ", 1) for line in lines)


def test_every_form_of_every_collective_is_there(functions: dict[str, str]) -> None:
    # 17 collectives and 5 neighbourhood ones, in 3 forms and, but for the barrier, 2 widths.
    assert len(functions) == 3 * (2 * 22 - 1)
    assert functions.keys() >= {"Alltoallv", "Alltoallw_c", "Ialltoallv_c", "Alltoallv_init_c", "Ineighbor_alltoallw"}


def test_parameters_are_those_of_the_standard(functions: dict[str, str]) -> None:
    assert functions["Ibarrier"] == "NONBLOCKING ( MPI_Comm comm , MPI_Request *request)"
    assert functions["Bcast_init_c"] == (
        "PERSISTENT (void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm , MPI_Info info, "
        "MPI_Request *request)"
    )
    assert functions["Neighbor_alltoallw"] == (
        "BLOCKING (const void *send, const int send_counts[], const MPI_Aint send_displs[], "
        "const MPI_Datatype send_types[], void *recv, const int recv_counts[], const MPI_Aint recv_displs[], "
        "const MPI_Datatype recv_types[], MPI_Comm comm )"
    )
