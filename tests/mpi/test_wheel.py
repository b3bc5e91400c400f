"""The wheel with ready-made programs, in an environment without a compiler, for programs that were compiled before."""

import importlib.util
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from jobs import ON_EITHER
from test_intelmpi_real import MPIEXEC as INTEL
from test_profile_real import rows
from test_run_measure import loop_in

from colltune.core import disturbance
from colltune.machine.prebuilt import LIBRARY_PLACE
from colltune.mpi.installation import Installation
from colltune.profile.profile_files import load_profile
from colltune.store.earlier import GAIN, HISTORY
from colltune.store.tuning import load_tuning
from commands import run_to_end
from compiled import program

ROOT = Path(__file__).parents[2]
# What an MPI's own scripts call; nothing among it compiles.
TOOLS = ("sh", "bash", "sed", "env", "basename", "dirname", "expr", "uname", "ldd", "cat", "id", "hostname", "tr",
         "grep")  # fmt: skip
OF_GLIBC = {"libc", "libm", "libdl", "librt", "libpthread", "ld-linux-x86-64"}
INTEL_QUIET = {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_YIELD": "2", "I_MPI_WAIT_MODE": "0"}
QUIET = {**ON_EITHER, **INTEL_QUIET, disturbance.VARIABLE: disturbance.ACCEPT}


@pytest.fixture(scope="module")
def wheel(mpi: Installation, openmpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of COLLTUNE_TEST_WHEEL, or made with programs for the three ABIs by this machine's compiler."""
    if named := os.environ.get("COLLTUNE_TEST_WHEEL"):
        return Path(named).resolve()
    for needed in ("build", "hatchling", "hatch_vcs"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed in this environment")
    place = tmp_path_factory.mktemp("wheel")
    there = {"mpich": mpi, "abi": mpi, "openmpi": openmpi}
    abis = " ".join(f"{abi}={found.mpiexec.parents[1] / 'include'}" for abi, found in there.items())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(ROOT)]
    run_to_end(command, env={**os.environ, "COLLTUNE_ABIS": abis, "CC": "cc"}, timeout=600, check=True)
    (made,) = place.glob("*.whl")
    return made


@dataclass(frozen=True)
class Site:
    """An environment with the wheel, whose PATH has the tools of a system and no compiler."""

    command: Path
    place: Path

    def colltune(self, *words: str | Path) -> str:
        environment = {"PATH": f"{self.place / 'tools'}", "HOME": str(self.place), **QUIET}
        done = run_to_end([self.command, *words], cwd=self.place, env=environment, check=True)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    place = tmp_path_factory.mktemp("site")
    run_to_end([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    pip = [sys.executable, "-m", "pip", "--python", place / "venv" / "bin" / "python", "install", "--quiet"]
    run_to_end([*pip, "--no-compile", "--no-deps", "--no-index", wheel], check=True)
    (packages,) = (place / "venv" / "lib").glob("python*/site-packages")
    (packages / "requirements.pth").write_text(f"{Path(typer.__file__).parents[1]}\n")
    (place / "tools").mkdir()
    for name in TOOLS:
        if (found := shutil.which(name)) is not None:
            (place / "tools" / name).symlink_to(found)
    assert not any(shutil.which(name, path=str(place / "tools")) for name in ("cc", "gcc", "clang", "mpicc", "mpiexec"))
    return Site(place / "venv" / "bin" / "colltune", place)


def copied(mpi: Installation, place: Path, *left_out: str) -> Path:
    """The launcher of a copy of ``mpi``, an MPICH, without headers, compilers and what is ``left_out``."""
    prefix = mpi.mpiexec.parents[1]
    for pattern in ("bin/mpiexec*", "bin/hydra*", "lib/libmpi.so*", "lib/libmpi_abi.so*"):
        for path in prefix.glob(pattern):
            if not path.name.startswith(left_out):
                (place / path.parent.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place / path.parent.name)
    (place / "lib" / "mpich").symlink_to(prefix / "lib" / "mpich")  # what the libraries load
    return place / "bin" / "mpiexec"


@pytest.fixture(params=["mpich", "openmpi", "intelmpi", "abi"])
def case(
    request: pytest.FixtureRequest, mpi: Installation, openmpi: Installation, site: Site, tmp_path: Path
) -> tuple[Path, str, str]:
    """A launcher, a program that was compiled for its MPI, and the library that this loads.

    MPICH is without mpicc, and once with the library of the standard ABI alone; the others have theirs, which calls a
    compiler that is not there.
    """
    if request.param == "intelmpi":
        if not INTEL.with_name("mpicc").is_file():
            pytest.skip("no Intel MPI with its compiler wrapper")
        request.getfixturevalue("monkeypatch").setenv("I_MPI_ROOT", str(INTEL.parents[1]))
        return INTEL, program(INTEL.with_name("mpicc"), "known_calls.c"), "libmpi.so.12"
    if request.param == "openmpi":
        return openmpi.mpiexec, program(openmpi.mpicc, "known_calls.c"), "libmpi.so.40"
    if request.param == "mpich":
        return copied(mpi, tmp_path), program(mpi.mpicc, "known_calls.c"), "libmpi.so.12"
    if not (wrapper := mpi.mpicc.with_name("mpicc_abi")).exists():
        pytest.skip("this MPI has no library of the standard ABI")
    return copied(mpi, tmp_path, "libmpi.so"), program(wrapper, "known_calls.c"), "libmpi_abi.so.1"


def test_an_mpi_is_tuned_and_a_program_profiled(case: tuple[Path, str, str], site: Site, tmp_path: Path) -> None:
    mpiexec, app, library = case
    if library == "libmpi_abi.so.1":
        said = site.colltune("doctor", "--all", "--ppn", "2", "--mpiexec", mpiexec)
        assert f"ready-made in this package, for {library}" in said
    options = ["--ppn", "2", "--sizes", "64", "--budget", "5s", "--mpiexec", mpiexec]
    site.colltune("tune", "allreduce", *options, "--out", tmp_path / "tuned")
    assert "allreduce" in load_tuning(tmp_path / "tuned").rule_sets
    site.colltune("verify", "--results", "--short", tmp_path / "tuned", "--mpiexec", mpiexec)
    site.colltune("profile", "--out", tmp_path / "app.json", "--", mpiexec, "-n", "2", app)
    profile = load_profile(tmp_path / "app.json")
    assert rows(profile)["allreduce", "blocking", 2] == (8, 8 * 2 * 64)
    assert (profile.reporting, profile.lost_calls) == (2, 0)


@pytest.mark.parametrize("name", ["mpich", "openmpi", "abi"])
def test_what_a_tuning_is_worth_is_measured_in_a_program(
    name: str, request: pytest.FixtureRequest, site: Site, tmp_path: Path
) -> None:
    """Also in one of the standard ABI, whose library lies beside the other that was tuned."""
    installation = request.getfixturevalue("openmpi" if name == "openmpi" else "mpi")
    compiler = installation.mpicc.with_name("mpicc_abi") if name == "abi" else installation.mpicc
    if not compiler.exists():
        pytest.skip("this MPI has no library of the standard ABI")
    loop_in(installation, tmp_path)
    app = program(compiler, "switchback_loop.c")
    said = site.colltune(
        "run", "--measure=50%", tmp_path, "--", installation.mpiexec, "-n", "2", app, "2000", "64", "0"
    )
    assert "this run took" in said
    (kept,) = (tmp_path / HISTORY).iterdir()
    (cell,) = json.loads((kept / GAIN).read_text())["cells"]
    assert cell["tuned_calls"] > 0
    assert cell["default_calls"] > 0


def test_the_tag_says_the_glibc_that_the_programs_need_and_they_name_no_mpi(wheel: Path, site: Site) -> None:
    assert (match := re.fullmatch(r".*-py3-none-manylinux_2_(\d+)_\w+\.whl", wheel.name))
    (folder,) = site.place.glob("venv/lib/python*/site-packages/colltune/_native/ready")
    programs = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.parent.name for path in programs} == {"ready", "mpich", "openmpi", "abi"}
    for path in programs:
        asked = run_to_end(["readelf", "--dynamic", "--version-info", path], check=True).stdout
        assert all(int(minor) <= int(match[1]) for minor in re.findall(r"GLIBC_2\.(\d+)", asked))
        needed = set(re.findall(r"NEEDED.*\[([^\]]+)\]", asked))
        assert (LIBRARY_PLACE in needed) == (path.name != "entry.so")
        assert {name.partition(".")[0] for name in needed - {LIBRARY_PLACE}} <= OF_GLIBC
