"""Programs that a wheel brings ready-made: which fits a library, and that a copy of it loads that very library."""

import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from colltune.machine import prebuilt
from colltune.machine.prebuilt import DIRECTORY_PLACE, LIBRARY_PLACE, mpi_library, prebuilt_library, read_symbols
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.mpi.programs import describe_programs, is_brought_for
from compiled import compiled

LINK = (f"-Wl,-rpath,{DIRECTORY_PLACE}", "-Wl,--enable-new-dtags")
CALLS = "int MPI_Init(void); int PMPI_Irecv_c(void); int main(void) { return MPI_Init() CALLED; }"


def made(place: Path, text: str, target: Path, *flags: str | Path) -> Path:
    source = place / f"{target.name}.c"
    source.write_text(text)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(compiled("cc", "-fPIC", source, *flags).read_bytes())
    target.chmod(0o755)
    return target


def fake_mpi(place: Path, name: str, code: int, more: str = "") -> Path:
    """A library under that name whose MPI_Init returns ``code``; ``more``: what else it has."""
    text = f"int MPI_Init(void) {{ return {code}; }} int PMPI_Init(void) {{ return {code}; }} {more}"
    return made(place, text, place / name, "-shared", f"-Wl,-soname,{name}")


LARGE = "int PMPI_Irecv_c(void) { return 0; }"
ASKED = ("MPI_Init", "PMPI_Irecv_c", "MPI_Ibcast_c", "PMIx_Init", "own")


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a wheel brings: agents for two ABIs, of MPICH for an older library too; and what is preloaded."""
    folder, place = tmp_path / "ready", tmp_path / "made"
    place.mkdir()
    stub = made(place, f"int MPI_Init(void) {{ return 0; }} {LARGE}", place / "stub.so", "-shared",
                f"-Wl,-soname,{LIBRARY_PLACE}")  # fmt: skip
    for abi, called in {"mpich": "+ PMPI_Irecv_c()", "mpich-3": "+ 100", "abi": ""}.items():
        made(place, CALLS.replace("CALLED", called), folder / abi / "agent", "-pie", "-Wl,--no-as-needed", stub, *LINK)
        made(place, "int core(void) { return 0; }", folder / abi / "core.so", "-shared", "-Wl,--no-as-needed", stub)
    functions = " ".join(f"int {name}(void) {{ return 0; }}" for name in ASKED)
    made(place, f'char names[] = "{LIBRARY_PLACE}"; {functions}', folder / "entry.so", "-shared")
    monkeypatch.setattr(prebuilt, "ready_made", lambda: folder)
    return folder


def installation(libmpi: Path) -> Installation:
    prefix = libmpi.parent
    return Installation(Library.MPICH, "4.0", Launcher.HYDRA, prefix / "mpiexec", prefix / "mpicc", libmpi, "")


def test_the_newest_that_asks_for_nothing_which_the_library_lacks_runs_with_that_library(
    ready: Path, tmp_path: Path
) -> None:
    """Whatever directory it is in, and whether the file is named as its soname says or stands behind a link."""
    for name, more, code in (
        ("libmpi.so.12", LARGE, 3),
        ("libmpi.so.12", "", 104),
        ("libmpich.so.12", "", 105),
        ("libmpi_cray.so.12", LARGE, 6),
        ("libmpi_abi.so.1", "", 7),
    ):
        place = tmp_path / f"mpi {code}"
        place.mkdir()
        library = fake_mpi(place, name, code % 100, more)
        found = prebuilt.prebuilt(library, ("agent",), tmp_path / "cache")
        assert found is not None
        assert subprocess.run([found], check=False).returncode == code
        assert is_brought_for(library)
        assert name in describe_programs(installation(library))
        assert found == prebuilt.prebuilt(library, ("agent",), tmp_path / "cache")


def test_a_library_of_another_abi_or_without_what_is_asked_for_has_its_programs_compiled(
    ready: Path, tmp_path: Path
) -> None:
    (ready / "mpich-3" / "agent").unlink()
    (tmp_path / "libmpi.so.13").write_bytes(b"\x7fELF\x02\x01")
    long = tmp_path / ("d" * 200) / ("e" * 200) / ("f" * 200) / ("g" * 200) / ("h" * 200)
    long.mkdir(parents=True)
    for library in (
        fake_mpi(tmp_path, "libmpi.so.12", 0),
        fake_mpi(tmp_path, "libmpi.so.40", 0, LARGE),
        fake_mpi(tmp_path, "libmpi_abi.so.0", 0, LARGE),
        fake_mpi(long, "libmpi.so.12", 0, LARGE),
        fake_mpi(tmp_path, "libmpi_abi.so.1", 0, 'const char draft[] = "Intel(R) MPI Library 2021.17";'),
        tmp_path / "libmpi.so.13",
        tmp_path / "nothing",
    ):
        assert prebuilt.prebuilt(library, ("agent",), tmp_path / "cache") is None, library
        assert "compiled here by" in describe_programs(installation(library))
    fits = fake_mpi(tmp_path, "libmpich.so.12", 0, LARGE)
    assert prebuilt.prebuilt(fits, ("agent",), tmp_path / "cache") is not None
    assert prebuilt.prebuilt(fits, ("conformance",), tmp_path / "cache") is None
    (ready / "mpich" / "core.so").unlink()
    assert prebuilt_library(fake_mpi(tmp_path, "libmpi_cray.so.12", 0), tmp_path / "cache") is not None
    (ready / "mpich-3" / "core.so").unlink()
    assert prebuilt_library(fits, tmp_path / "cache") is None


def test_of_the_preloaded_library_only_those_functions_are_seen_that_an_mpi_there_has(
    ready: Path, tmp_path: Path
) -> None:
    """A program asks by a weak reference for the others. The library of the standard ABI beside has a core too."""
    library = fake_mpi(tmp_path, "libmpi.so.12", 0)
    fake_mpi(tmp_path, "libmpi_abi.so.1", 0, LARGE)
    found = prebuilt_library(library, tmp_path / "cache")
    assert found is not None
    weak = "".join(f"extern int {name}(void) __attribute__((weak));\n" for name in ASKED)
    shown = "".join(f"putchar('0' + ({name} != 0));" for name in ASKED)
    asks = made(tmp_path, f"#include <stdio.h>\n{weak} int main(void) {{ {shown} return 0; }}", tmp_path / "asks")
    said = subprocess.run([asks], env={**os.environ, "LD_PRELOAD": str(found)}, capture_output=True, check=True)
    assert said.stdout == b"11001"
    beside = {path.name.removeprefix(found.stem) for path in found.parent.glob(f"{found.stem}.*")}
    assert beside == {".so", ".libmpi.so.12.core.so", ".libmpi_abi.so.1.core.so"}
    assert b"libmpi.so.12\0libmpi_abi.so.1\0\0" in found.read_bytes()


def test_symbols_are_those_that_nm_lists(tmp_path: Path) -> None:
    library = fake_mpi(tmp_path, "libmpi.so.12", 0, "int uses(void); int calls(void) { return uses(); }")
    symbols = read_symbols(library.read_bytes())
    listed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout.splitlines()
    names = {line.split()[-1].partition("@")[0]: line.split()[-2] for line in listed}
    assert set(symbols.places) == {name for name, kind in names.items() if kind not in "Uw"}
    assert symbols.absent - {""} == {name for name, kind in names.items() if kind in "Uw"}
    assert symbols.name == "libmpi.so.12"
    assert mpi_library(library) is not None


def test_of_a_library_only_its_tables_are_read(tmp_path: Path) -> None:
    library = fake_mpi(tmp_path, "libmpi_abi.so.1", 0)
    os.truncate(library, 64 << 20)
    tracemalloc.start()
    try:
        assert mpi_library(library) is not None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_value_that_is_longer_than_its_place_is_not_put_there() -> None:
    assert prebuilt.filled_in(b"<abc>", {"abc": "x"}) == b"<x\0\0>"
    assert prebuilt.filled_in(b"<abc>", {"abc": "xyz"}) is None
