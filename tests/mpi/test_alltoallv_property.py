"""Every algorithm of the non-uniform all-to-all, over random calls: what comes out, and what is left over."""

import os
from pathlib import Path

import pytest
from jobs import OPENMPI, QUIET

from colltune.mpi.installation import Installation, Library
from commands import run_to_end
from compiled import C_FLAGS, compiled

_ROOT = Path(__file__).parents[2]
_PARTS = [_ROOT / "native" / name for name in ("alltoallv", "common")]
_SOURCES = ["alltoallv_property.c", *sorted(source for part in _PARTS for source in part.glob("*.c"))]
_INCLUDES = [f"-I{part}" for part in (*_PARTS, _ROOT / "native" / "include")]
_WRAPPED = [f"-Wl,--wrap=PMPI_Comm_{name}" for name in ("create", "split_type", "free")]
_SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

# Ranks and cases: 10,000 in all, fewer where ranks share the cores.
WHOLE = dict.fromkeys(range(1, 18), 500) | {24: 700, 32: 500, 64: 300}
SLICE = {1: 100, 2: 200, 3: 200, 5: 200, 8: 100, 12: 50}
CHECKED = dict.fromkeys(range(1, 9), 300)  # under sanitizers

_ENVIRONMENT = {
    Library.MPICH: QUIET,
    Library.OPENMPI: {**OPENMPI, "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_pml": "ob1"},
}
# What the MPI and its launcher keep until the end is not ours.
_LEAKS = """
leak:libmpi
leak:libfabric
leak:MPI_Init
leak:libopen-pal
leak:libpmix
"""


def run(either: Installation, program: Path, ranks: int, cases: int, limit_s: float, **variables: str) -> None:
    more = ["--oversubscribe", "--bind-to", "none"] if either.library is Library.OPENMPI else []
    command = [str(either.mpiexec), *more, "-n", str(ranks), str(program), str(1000 + ranks), str(cases)]
    environment = {**os.environ, **_ENVIRONMENT[either.library], **variables}
    done = run_to_end(command, timeout=limit_s, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert f"{ranks} ranks, {cases} cases, 0 mismatches" in done.stdout


@pytest.fixture(scope="module")
def program(either: Installation) -> Path:
    return compiled(either.mpicc, *C_FLAGS, *_INCLUDES, *_SOURCES, *_WRAPPED, "-lm", "-ldl")


@pytest.fixture(scope="module")
def sanitized(either: Installation) -> Path:
    return compiled(either.mpicc, *C_FLAGS, *_SANITIZED, *_INCLUDES, *_SOURCES, *_WRAPPED, "-lm", "-ldl")


def run_sanitized(either: Installation, program: Path, directory: Path, ranks: int, cases: int, limit_s: float) -> None:
    suppressions = directory / "leaks"
    suppressions.write_text(_LEAKS)
    options = {
        "ASAN_OPTIONS": "detect_leaks=1:fast_unwind_on_malloc=0",
        "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0",
    }
    run(either, program, ranks, cases, limit_s, **options)


@pytest.mark.parametrize(("ranks", "cases"), SLICE.items())
def test_a_slice_of_the_cases(either: Installation, program: Path, ranks: int, cases: int) -> None:
    run(either, program, ranks, cases, 280.0)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_addresses_leaks_and_undefined_behaviour(
    either: Installation, sanitized: Path, tmp_path: Path, ranks: int
) -> None:
    run_sanitized(either, sanitized, tmp_path, ranks, 60, 280.0)


@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(("ranks", "cases"), CHECKED.items())
def test_more_of_addresses_leaks_and_undefined_behaviour(
    either: Installation, sanitized: Path, tmp_path: Path, ranks: int, cases: int
) -> None:
    run_sanitized(either, sanitized, tmp_path, ranks, cases, 1800.0)


@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(("ranks", "cases"), WHOLE.items())
def test_all_cases(either: Installation, program: Path, ranks: int, cases: int) -> None:
    run(either, program, ranks, cases, 1800.0)
