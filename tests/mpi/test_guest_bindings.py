"""Programs in Fortran, of the standard ABI, and of Intel MPI, under every mode: they end as without the library."""

import copy
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from guests import guest_in
from test_guest_programs import MODES, SOURCES, Programs
from test_intelmpi_real import MPIEXEC as INTEL

from colltune.core.errors import InputError
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.profile.parts import part_files
from compiled import NATIVE, compiled, program

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
    directory = tmp_path_factory.mktemp("fortran")
    made = Programs(guest_in(installation, directory, "guest_worlds.c", every=True), directory, ())
    made.paths["FORTRAN"] = str(compiled(wrapper, "-w", "-fallow-argument-mismatch", "guest_fortran.f90"))
    return made


@pytest.mark.parametrize("mode", MODES)
def test_a_program_in_fortran_ends_as_without_the_library(fortran: Programs, mode: str) -> None:
    """By mpi_f08: what it makes of constants, of functions in Fortran and of parts of arrays comes through."""
    code, lines, said = fortran.without("FORTRAN")
    assert code == 0, said
    assert len(lines) == fortran.ranks * 6
    assert fortran.outcome(fortran.told(mode), "FORTRAN") == (code, lines, said)


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
    directory = tmp_path_factory.mktemp("standard")
    made = Programs(guest_in(mpi, directory, "guest_worlds.c", every=True), directory, ())
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
    directory = tmp_path_factory.mktemp("mpich")
    return Programs(guest_in(mpi, directory, "guest_worlds.c", every=True), directory)


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


@pytest.mark.parametrize("source", SOURCES[1:])
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


@pytest.mark.parametrize("source", SOURCES[1:])
@pytest.mark.parametrize("mode", MODES)
def test_intel_s_library_of_the_standard_abi_is_left_alone(
    standard: Programs, intel: Path, mode: str, source: str
) -> None:
    """Its MPI_Comm_create_group fails by itself, so the first of the programs is left out."""
    _refuses_once(_under(intel, standard), mode, source, "all")
