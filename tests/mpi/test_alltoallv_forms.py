"""The non-uniform all-to-all: who carries out each form and what it sends, and random calls by every algorithm."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import ON_EITHER, OPENMPI, QUIET, crowded, for_ranks
from test_alltoallv_use import table

from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation, Library
from colltune.mpi.programs import library_for
from commands import run_to_end
from compiled import C_FLAGS, compiled

_BESIDE = {**ON_EITHER, "OMPI_MCA_mpi_yield_when_idle": "1"}


@dataclass(frozen=True)
class Kit:
    """An MPI with the preloaded library and the test programs."""

    mpi: Installation
    library: Path

    def compiled(self, name: str, compiler: str | None = None, *flags: str) -> Path:
        counter = compiled(self.mpi.mpicc, *C_FLAGS, "-c", "count_calls.c")
        warnings = [] if compiler else C_FLAGS
        return compiled(compiler or self.mpi.mpicc, *warnings, "-rdynamic", *flags, name, counter, "-ldl")

    def ran(self, program: Path, ranks: int, where: Path, *arguments: str) -> list[list[str]]:
        """The words of each line that the program prints."""
        variables = {"LD_PRELOAD": str(self.library), "COLLTUNE_ALLTOALLV": str(where)}
        told = [*crowded(self.mpi), *for_ranks(self.mpi, variables)]
        command = [str(self.mpi.mpiexec), *told, "-n", str(ranks), str(program), *arguments]
        done = run_to_end(command, env={**os.environ, **_BESIDE}, check=True)
        return [line.split() for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def kit(either: Installation, cache: Path) -> Kit:
    return Kit(either, library_for(either, cache))


def _by(tmp_path: Path, algorithm: str, radix: int = 2) -> Path:
    return table(tmp_path / "table.rules", (0, 99999, algorithm, radix))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_who_carries_out_each_form(kit: Kit, tmp_path: Path, ranks: int) -> None:
    lines = kit.ran(kit.compiled("alltoallv_forms.c"), ranks, _by(tmp_path, "parata"))
    ours = {name for name, messages, _ in lines if int(messages) > 0}
    assert [name for name, _, wrong in lines if wrong != "0"] == []
    names = {name for name, *_ in lines}
    assert {"alltoallv", "alltoallv_init"} <= names
    # Rules are proven for blocking calls: persistent ones are the library's.
    stays = {name for name in names if name.endswith(("in_place", "intercomm")) or "init" in name}
    # Two ranks have nothing to forward, and one has nobody.
    assert ours == (names - stays if ranks > 2 else set())


_CALLS, _RANKS = 8, 4  # of alltoallv_guest.c


@pytest.mark.parametrize("algorithm", ["linear", "hieata"])
def test_a_private_communicator_takes_nothing_over(kit: Kit, tmp_path: Path, algorithm: str) -> None:
    """No copy of the program's attribute, and one delete for each rank, when the program frees its communicator."""
    lines = kit.ran(kit.compiled("alltoallv_guest.c"), _RANKS, _by(tmp_path, algorithm), "attributes")
    copies, deletes, inheriting, handled, wrong = map(int, lines[0])
    assert (copies, deletes, inheriting, handled, wrong) == (0, _RANKS, 0, 0, 0)


@pytest.mark.parametrize("size", ["24", "6000"])  # forwarded, and straight
@pytest.mark.parametrize("algorithm", ["linear", "parata", "hieata"])
def test_a_block_that_is_cut_off_is_an_error_of_its_receiver_alone(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, size: str
) -> None:
    monkeypatch.setenv("COLLTUNE_ALLTOALLV_NODE", "2")
    lines = kit.ran(kit.compiled("alltoallv_guest.c"), _RANKS, _by(tmp_path, algorithm), "short", size)
    assert list(map(int, lines[0])) == [_CALLS, 0, 0, 0, 0]


def _calls(kit: Kit, where: Path, *arguments: str, ranks: int = 4) -> list[tuple[int, int, int]]:
    """Messages, collectives and algorithm of each call but the first two, which set up."""
    lines = kit.ran(kit.compiled("alltoallv_repeat.c"), ranks, where, *arguments)
    return [(int(messages), int(collectives), int(choice)) for messages, collectives, choice in lines][2:]


@pytest.mark.parametrize(("algorithm", "blocks"), [("linear", 3), ("library", 0)])
def test_a_repeated_call_sends_its_blocks_alone(kit: Kit, tmp_path: Path, algorithm: str, blocks: int) -> None:
    rules = [(0, 99, algorithm, 2), (100, 999, "parata", 2)] if algorithm != "library" else [(100, 999, "parata", 2)]
    calls = _calls(kit, table(tmp_path / "table.rules", *rules), "300", "24")
    assert {messages for messages, *_ in calls} == {blocks}
    agreed = [collectives for _, collectives, _ in calls]
    assert max(agreed) == 1
    assert sum(agreed) <= 9  # rarer and rarer


def test_an_algorithm_that_carries_the_statistic_sends_nothing_more(kit: Kit, tmp_path: Path) -> None:
    calls = _calls(kit, _by(tmp_path, "parata"), "100", "24")
    assert {(messages, collectives) for messages, collectives, _ in calls} == {(2, 0)}  # log2 of 4 ranks


def test_counts_that_change_cost_one_small_reduction_a_call_at_most(kit: Kit, tmp_path: Path) -> None:
    calls = _calls(kit, table(tmp_path / "table.rules", (0, 99, "linear", 0)), "100", "24", "2000")
    assert max(collectives for _, collectives, _ in calls) == 1
    choices = "".join(str(choice) for *_, choice in calls)
    assert "1" in choices
    assert "0" * 40 in choices  # the library has them then


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
@pytest.mark.parametrize("interface", ["MPIF_H", "MODULE_MPI", "MODULE_F08"])
def test_fortran(cache: Path, tmp_path: Path, name: str, interface: str) -> None:
    mpicc, mpiexec, mpif90 = (shutil.which(f"{tool}.{name}") for tool in ("mpicc", "mpiexec", "mpif90"))
    if mpicc is None or mpiexec is None or mpif90 is None or shutil.which("gfortran") is None:
        pytest.skip(f"no Fortran for {name}")
    found = find_mpi(mpiexec, os.environ)
    kit = Kit(found, library_for(found, cache))
    flags = (f"-D{interface}", "-w", "-fallow-argument-mismatch")
    lines = kit.ran(kit.compiled("alltoallv_fortran.F90", mpif90, *flags), 3, _by(tmp_path, "linear"))
    assert lines == [["alltoallv", "4", "0"], ["alltoallw", "4", "0"], ["alltoallv_in_place", "0", "0"]]


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
    command = [str(either.mpiexec), *crowded(either), "-n", str(ranks), str(program), str(1000 + ranks), str(cases)]
    environment = {**os.environ, **_ENVIRONMENT[either.library], **variables}
    done = run_to_end(command, timeout=limit_s, env=environment, check=True)
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
