"""Programs in C, Python and Fortran, of the standard ABI and of Intel MPI, end in every mode as without the library."""

import copy
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from guests import guest_in
from jobs import for_mpi4py
from live_jobs import live, sanitized
from test_intelmpi_real import MPIEXEC as INTEL

from colltune.core.errors import InputError
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.profile.parts import part_files
from compiled import NATIVE, compiled, program, shared

SOURCES = ("guest_calls.c", "guest_comms.c", "guest_kinds.c", "guest_process.c")
MODES = {
    "profile": "PROFILE",
    "live": "SELECT",
    "measure": "MEASURE MEASURE_SHARE SELECT",
    "explore": "MEASURE EXPLORE_RISK EXPLORE_KNOWN CANDIDATES SELECT",
    "alltoallv": "ALLTOALLV",
    "prove": "COUNT COUNT_RULES",
    "all": "PROFILE MEASURE MEASURE_SHARE SELECT ALLTOALLV COUNT",
}
# Ways to end that are each a launch of its own.
_ENDS = (
    "abort_by_a_thread",
    "exit_without_finalize",
    "finalize_at_exit",
    "killed",
    "plug_in",
    "quick_exit",
    "sessions_alone",
    "sessions_beside",
    "threads_at_once",
)


class Programs:
    """The programs of one MPI, with rules for the calls of every collective that has any."""

    def __init__(self, mpi: Installation, directory: Path, sources: Sequence[str] = SOURCES) -> None:
        self.guest = guest = guest_in(mpi, directory, "guest_worlds.c", every=True)
        self.ranks = 3 if guest.openmpi else 2  # waiting ranks of MPICH keep the cores from each other
        self.kit = live(mpi, directory)
        self.paths = {source: program(mpi.mpicc, source) for source in sources}
        if SOURCES[-1] in sources:
            self.paths["PLUG_IN"] = str(shared(SOURCES[-1], compiler=mpi.mpicc))
        rules = guest.variables["COLLTUNE_SELECT"]
        none = directory / "none.rules"
        none.write_bytes(self.kit.emit())
        self._variables = {
            **guest.variables,
            "COLLTUNE_MEASURE_SHARE": "50",
            "COLLTUNE_CANDIDATES": rules,
            "COLLTUNE_EXPLORE_RISK": "100000",
            # Of each choice and class of sizes nothing but that earlier runs earned much.
            "COLLTUNE_EXPLORE_KNOWN": ",".join(
                f"{choice}/{bits}/1/{self.ranks}/0/-1/1000/1000/1000/{10**12}/1/100/0"
                for choice in range(16)
                for bits in range(8)
            ),
            "COLLTUNE_COUNT": str(directory / "count"),
            "COLLTUNE_COUNT_RULES": rules,
        }
        self._none = str(none)
        self.runs: dict[tuple[str, ...], tuple[int, list[str], list[str]]] = {}

    def told(self, mode: str, library: Path | None = None) -> dict[str, str]:
        names = [f"COLLTUNE_{name}" for name in MODES[mode].split()]
        told = {"LD_PRELOAD": str(library or self.guest.library), **{name: self._variables[name] for name in names}}
        return {**told, "COLLTUNE_SELECT": self._none} if mode == "explore" else told

    def outcome(self, told: dict[str, str], *command: str) -> tuple[int, list[str], list[str]]:
        """Exit code and both streams: lines in any order, on standard error without numbers, as those of processes."""
        arguments = ["-n", str(self.ranks), *(self.paths.get(word, word) for word in command)]
        done = self.guest.without_profile().launch(arguments, told, wait_s=300.0)
        said = re.sub(r"0x[0-9a-f]+|\d+", "#", done.stderr)
        lines = re.sub(r"PID \d+", "PID #", done.stdout)  # Hydra says on standard output which process was killed
        return done.returncode, sorted(lines.splitlines()), sorted(said.splitlines())

    def without(self, *command: str) -> tuple[int, list[str], list[str]]:
        if command not in self.runs:
            self.runs[command] = self.outcome({}, *command)
        return self.runs[command]

    def ends_as_without(self, mode: str, *command: str) -> list[str]:
        """In ``mode`` too it ends well and says the same: its lines on standard output."""
        code, lines, said = self.without(*command)
        assert code == 0, said
        assert self.outcome(self.told(mode), *command) == (code, lines, said)
        return lines


@pytest.fixture(scope="module")
def programs(either: Installation, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(either, tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_a_program_ends_as_without_the_library(programs: Programs, mode: str, source: str) -> None:
    assert len(programs.ends_as_without(mode, source, "all")) >= programs.ranks * 3


@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("mode", ["profile", "alltoallv"])
def test_a_program_that_ends_in_its_own_way_does_so(programs: Programs, mode: str, end: str) -> None:
    command = ("guest_process.c", end, "PLUG_IN")
    assert programs.outcome(programs.told(mode), *command) == programs.without(*command)


@pytest.mark.parametrize("mode", MODES)
def test_a_program_in_python_ends_as_without_the_library(
    programs: Programs, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By mpi4py, which finds the MPI by its name when it is imported."""
    for name, value in for_mpi4py(programs.guest.bench.installation).items():
        monkeypatch.setenv(name, value)
    lines = programs.ends_as_without(mode, sys.executable, str(NATIVE / "guest_python.py"))
    assert len(lines) >= programs.ranks * 3


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", ["all", "explore", "prove"])
def test_the_library_is_clean_under_sanitizers(
    programs: Programs, mode: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    code, lines, _ = programs.without(source, "all")
    told = programs.told(mode, sanitized(programs.kit).preload)
    assert programs.outcome(told, source, "all")[:2] == (code, lines)


_REFUSED = "was compiled for another MPI"
ABI_PYTHON = Path(__file__).parents[2] / ".venv-abi" / "bin" / "python"


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def fortran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The program that was compiled by the system's own wrapper: those of PyPI have no Fortran."""
    wrapper = shutil.which(f"mpif90.{request.param}")
    if wrapper is None or shutil.which("gfortran") is None:
        pytest.skip(f"no Fortran for {request.param} (Debian: gfortran, lib{request.param}-dev)")
    try:
        installation = find_mpi(f"mpiexec.{request.param}", os.environ)
    except InputError as error:
        pytest.skip(str(error))
    made = Programs(installation, tmp_path_factory.mktemp("fortran"), ())
    made.paths["FORTRAN"] = str(compiled(wrapper, "-w", "-fallow-argument-mismatch", "guest_fortran.f90"))
    return made


@pytest.mark.parametrize("mode", MODES)
def test_a_program_in_fortran_ends_as_without_the_library(fortran: Programs, mode: str) -> None:
    """By mpi_f08: what it makes of constants, of functions in Fortran and of parts of arrays comes through."""
    assert len(fortran.ends_as_without(mode, "FORTRAN")) == fortran.ranks * 6


def _refuses_once(programs: Programs, mode: str, *command: str) -> None:
    code, lines, said = programs.without(*command)
    assert code == 0, said
    assert lines
    ended = programs.outcome(programs.told(mode), *command)
    ours = [line for line in ended[2] if line.startswith("colltune: ")]
    assert (ended[0], ended[1], [line for line in ended[2] if line not in ours]) == (code, lines, said)
    assert len(ours) == 1
    assert _REFUSED in ours[0]


@pytest.fixture(scope="module")
def standard(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    wrapper = mpi.mpicc.with_name("mpicc_abi")
    if not wrapper.exists():
        pytest.skip("this MPI has no library of the standard ABI")
    made = Programs(mpi, tmp_path_factory.mktemp("standard"), ())
    made.paths |= {source: program(wrapper, source) for source in SOURCES}
    return made


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_a_program_of_the_standard_abi_ends_as_without_the_library(standard: Programs, mode: str, source: str) -> None:
    _refuses_once(standard, mode, source, "all")


@pytest.mark.parametrize("mode", MODES)
def test_mpi4py_of_the_standard_abi_ends_as_without_the_library(
    standard: Programs, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No wheel is: MPICC=mpicc_abi pip install --no-binary mpi4py mpi4py, in .venv-abi beside .venv."""
    if not ABI_PYTHON.exists():
        pytest.skip("no mpi4py of the standard ABI in .venv-abi")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(standard.guest.bench.installation.libmpi.parent))
    _refuses_once(standard, mode, str(ABI_PYTHON), str(NATIVE / "guest_python.py"))


@pytest.fixture(scope="module")
def mpich(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(mpi, tmp_path_factory.mktemp("mpich"))


@pytest.fixture
def intel(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its launcher; programs that were compiled for MPICH, or by the standard ABI, meet its libraries."""
    if not INTEL.is_file():
        pytest.skip("no Intel MPI: python -m venv .venv-intelmpi, and there pip install impi-rt")
    monkeypatch.setenv("I_MPI_ROOT", str(INTEL.parents[1]))
    monkeypatch.setenv("I_MPI_FABRICS", "shm")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(INTEL.parents[1] / "lib"))
    return INTEL


def _under(launcher: Path, programs: Programs) -> Programs:
    moved = copy.copy(programs)
    moved.guest, moved.runs = replace(programs.guest, mpiexec=launcher), {}
    return moved


@pytest.mark.parametrize("source", SOURCES[2:])
@pytest.mark.parametrize("mode", MODES)
def test_intel_s_library_of_mpich_s_name_runs_as_without_the_library(
    mpich: Programs, intel: Path, mode: str, source: str
) -> None:
    programs = _under(intel, mpich)
    code, lines, said = programs.without(source, "all")
    assert code == 0, said
    ended = programs.outcome(programs.told(mode), source, "all")
    assert (ended[:2], [line for line in ended[2] if not line.startswith("colltune: ")]) == ((code, lines), said)
    assert part_files(programs.guest.profile) or mode not in ("profile", "all")


@pytest.mark.parametrize("source", SOURCES[2:])
@pytest.mark.parametrize("mode", MODES)
def test_intel_s_library_of_the_standard_abi_is_left_alone(
    standard: Programs, intel: Path, mode: str, source: str
) -> None:
    """Its MPI_Comm_create_group fails by itself, so the first two programs are left out."""
    _refuses_once(_under(intel, standard), mode, source, "all")
