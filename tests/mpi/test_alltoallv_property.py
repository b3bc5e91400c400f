"""Every algorithm of the non-uniform all-to-all against the library's own, over random calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from colltune.mpi.installation import Installation

_ROOT = Path(__file__).parents[2]
_SOURCES = [*sorted((_ROOT / "native/alltoallv").glob("*.c")), _ROOT / "tests/native/alltoallv_property.c"]
_INCLUDES = [f"-I{_ROOT / 'native' / name}" for name in ("include", "alltoallv")]
_SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

# Ranks and cases: 10,000 in all, fewer where ranks share the cores.
WHOLE = dict.fromkeys(range(1, 18), 500) | {24: 700, 32: 500, 64: 300}
SLICE = {1: 100, 2: 200, 3: 200, 5: 200, 8: 100, 12: 50}

OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm",
}


def compiled(mpicc: str, directory: Path, *flags: str) -> Path:
    program = directory / "alltoallv_property"
    command = [mpicc, "-std=c11", "-Wall", "-Wextra", "-Werror", *flags, *_INCLUDES, *map(str, _SOURCES), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def run(command: Sequence[str], limit_s: float, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=limit_s, check=False, env=environment, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def mpich_run(
    mpi: Installation, program: Path, ranks: int, cases: int, limit_s: float = 280.0, **variables: str
) -> None:
    command = [str(mpi.mpiexec), "-n", str(ranks), str(program), str(1000 + ranks), str(cases)]
    out = run(command, limit_s, MPIR_CVAR_ENABLE_HEAVY_YIELD="1", **variables)
    assert f"{ranks} ranks, {cases} cases, 0 mismatches" in out


@pytest.fixture(scope="module")
def program(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(str(mpi.mpicc), tmp_path_factory.mktemp("property"), "-O2")


@pytest.fixture(scope="module")
def sanitized(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(str(mpi.mpicc), tmp_path_factory.mktemp("sanitized"), *_SANITIZED)


@pytest.fixture(scope="module")
def open_mpi() -> str:
    found = os.environ.get("COLLTUNE_TEST_OPENMPI") or shutil.which("ompi_info")
    if found is None:
        pytest.skip("no Open MPI: COLLTUNE_TEST_OPENMPI names its bin directory")
    return found if Path(found).is_dir() else str(Path(found).parent)


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "cases"), SLICE.items())
def test_a_slice_of_the_cases_on_mpich(mpi: Installation, program: Path, ranks: int, cases: int) -> None:
    mpich_run(mpi, program, ranks, cases)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_addresses_leaks_and_undefined_behaviour(
    mpi: Installation, sanitized: Path, tmp_path: Path, ranks: int
) -> None:
    # What MPICH and its launcher keep until the end is not ours; anything with a frame of ours is.
    suppressions = tmp_path / "leaks"
    suppressions.write_text("leak:libmpi\nleak:libfabric\nleak:MPI_Init\n")
    options = f"suppressions={suppressions}:print_suppressions=0"
    mpich_run(mpi, sanitized, ranks, 60, ASAN_OPTIONS="detect_leaks=1", LSAN_OPTIONS=options)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(("ranks", "cases"), WHOLE.items())
def test_all_cases_on_mpich(mpi: Installation, program: Path, ranks: int, cases: int) -> None:
    mpich_run(mpi, program, ranks, cases, 1800.0)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(("ranks", "cases"), WHOLE.items())
def test_all_cases_on_open_mpi(open_mpi: str, tmp_path: Path, ranks: int, cases: int) -> None:
    program = compiled(f"{open_mpi}/mpicc", tmp_path, "-O2")
    command = [f"{open_mpi}/mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    out = run([*command, str(program), str(2000 + ranks), str(cases)], 1800.0, **OPEN_MPI)
    assert f"{ranks} ranks, {cases} cases, 0 mismatches" in out
