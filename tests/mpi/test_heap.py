"""Calls that ask for memory each time, in both states of the heap, on either MPI."""

import os
import platform
from pathlib import Path

import pytest
from jobs import ON_EITHER, crowded

from colltune.machine.compile import build
from colltune.measure.agent_process import parse_fields
from colltune.mpi.installation import Installation
from commands import run_to_end
from compiled import shared

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no other C library has these thresholds")
KEPT = {"MALLOC_MMAP_THRESHOLD_": "268435456", "MALLOC_TRIM_THRESHOLD_": "268435456"}


Answers = tuple[dict[int, dict[str, str]], list[list[int]]]


def allreduces(mpi: Installation, cache: Path, where: Path, **variables: str) -> Answers:
    """What the agent says of allreduce by its bytes, under a library that allocates in each call.

    And what this library says of each rank: its large calls that met page faults, and those that did not.
    """
    library = shared("hungry_allreduce.c", compiler=mpi.mpicc)
    sizes = [1024, 262144, 1048576, 262144]
    lines = [
        f"measure id={number} collective=allreduce bytes={size} ppn=2 nodes=0 fewest=8 most=8 box_us=5000000"
        f" width_ppm=50000 skew_us=20 seed=3 choice="
        for number, size in enumerate(sizes)
    ]
    done = run_to_end(
        [mpi.mpiexec, *crowded(mpi), "-n", "2", "env", f"LD_PRELOAD={library}", build(mpi.mpicc, "agent", cache)],
        input="\n".join([*lines, "quit", ""]),
        env={**os.environ, **ON_EITHER, **variables},
    )
    found = [parse_fields(line) for line in done.stdout.splitlines() if line.startswith("result ")]
    assert [one["status"] for one in found] == ["ok"] * len(sizes), done.stderr[-2000:]
    said = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("hungry ")]
    return {sizes[int(one["id"])]: one for one in found}, [list(map(int, words)) for words in said]


def test_a_call_that_asks_for_large_blocks_is_timed_in_both_states_of_the_heap(
    either: Installation, cache: Path, tmp_path: Path
) -> None:
    found, ranks = allreduces(either, cache, tmp_path)
    assert "faults" not in found[1024]
    assert "kept_us" not in found[1024]
    for size in (262144, 1048576):
        # Two blocks of this size, but for the pad that stays at the end of the heap.
        assert float(found[size]["faults"]) > (2 * size - 3 * 131072) / 4096
        assert float(found[size]["kept_us"]) > 0.0
        assert float(found[size]["untouched_us"]) > 0.0
    assert len(ranks) == 2
    for faulting, keeping in ranks:
        assert faulting >= 3 * 8  # three requests, of eight calls each and those beside them
        assert keeping >= 3 * 5


def test_where_the_environment_sets_the_thresholds_its_state_is_the_only_one(
    either: Installation, cache: Path, tmp_path: Path
) -> None:
    found, ranks = allreduces(either, cache, tmp_path, **KEPT)
    assert all("kept_us" not in one and float(one.get("faults", 0.0)) < 10.0 for one in found.values())
    assert all(faulting < 0.2 * keeping for faulting, keeping in ranks)
