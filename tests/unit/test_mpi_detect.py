"""Which MPI is here: on directory trees whose commands print what real ones printed."""

import os
import shutil
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.mpi.detect import CommandOutput, ask_flux, describe_machine, find_library, find_mpi, run_command
from colltune.mpi.installation import Launcher, Library
from commands import shell_script

RECORDED = Path(__file__).parents[1] / "recorded" / "mpi"
CONTENT = {
    "mpich": b"\x7fELF....MPICH Version:      %s\n....",
    "openmpi": b"\x7fELF....Open MPI v%d.%d.%d....",
    "intel": b"\x7fELF....Intel(R) MPI Library 2021....MPICH Version: %s....",
}


def script(path: Path, text: str) -> Path:
    """A program that prints ``text``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return shell_script(path, f"cat <<'END'\n{text.rstrip()}\nEND")


def lay_out(prefix: Path, name: str) -> Path:
    """Installs the recorded MPI ``name`` under ``prefix``: its commands answer as they did, its library is a mark."""
    said = {file.name: file.read_text().replace("@PREFIX@", str(prefix)) for file in (RECORDED / name).iterdir()}
    script(prefix / "bin" / "mpiexec", said["mpiexec--version"])
    if "mpichversion" in said:
        script(prefix / "bin" / "mpichversion", said["mpichversion"])
    version = said.get("mpicc--showme:version", "").strip()
    answers = f'-show) echo "{said["mpicc-show"].strip()}" ;;\n--showme:version) echo "{version}" ;;'
    shell_script(prefix / "bin" / "mpicc", f'case "$1" in\n{answers}\nesac')
    library = prefix / "lib" / ("libmpi.so.40" if "open" in name else "libmpi.so.12")
    library.parent.mkdir(parents=True)
    library.write_bytes(CONTENT[name.partition("-")[0]])
    (prefix / "lib" / "libmpi.so").write_text(f"INPUT({library.name})\n")
    return prefix


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """An environment with a shell, a C compiler, and no MPI."""
    for name in ("sh", "cat", "echo"):
        (tmp_path / "tools").mkdir(exist_ok=True)
        (tmp_path / "tools" / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    script(tmp_path / "tools" / "cc", "")
    return {"PATH": str(tmp_path / "tools")}


def with_path(tools: Mapping[str, str], *prefixes: Path) -> dict[str, str]:
    return {"PATH": ":".join([*(str(prefix / "bin") for prefix in prefixes), tools["PATH"]])}


@pytest.mark.parametrize("name", ["mpich-5.0.2", "mpich-4.0.3", "openmpi-5.0.11"])
def test_what_real_commands_printed_is_understood(tmp_path, tools, name) -> None:
    prefix = lay_out(tmp_path / "mpi", name)
    found = find_mpi(None, with_path(tools, prefix), python_bin=tmp_path / "venv" / "bin")
    assert f"{found.library}-{found.version}" == name
    assert found.launcher is (Launcher.PRRTE if found.library is Library.OPENMPI else Launcher.HYDRA)
    assert (found.mpiexec, found.mpicc) == (prefix / "bin" / "mpiexec", prefix / "bin" / "mpicc")
    assert found.libmpi.parent == prefix / "lib"
    assert found.libmpi.name != "libmpi.so", "the linker script is not the library"
    assert found.build == sha256(found.libmpi.read_bytes()).hexdigest()


def test_the_one_beside_python_goes_before_path(tmp_path, tools) -> None:
    venv = lay_out(tmp_path / "venv", "mpich-5.0.2")
    module = lay_out(tmp_path / "module", "openmpi-5.0.11")
    environment = with_path(tools, module)
    assert find_mpi(None, environment, python_bin=venv / "bin").version == "5.0.2"
    assert find_mpi(None, environment, python_bin=tmp_path / "nothing").version == "5.0.11"
    assert find_mpi("mpiexec", environment, python_bin=venv / "bin").version == "5.0.11"
    assert find_mpi(str(venv / "bin" / "mpiexec"), environment).version == "5.0.2"


def test_links_to_an_installation_are_followed(tmp_path, tools) -> None:
    real = lay_out(tmp_path / "opt" / "mpich", "mpich-5.0.2")
    (tmp_path / "bin").mkdir()
    for name in ("mpiexec", "mpicc"):
        (tmp_path / "bin" / name).symlink_to(real / "bin" / name)
    found = find_mpi(None, with_path(tools, tmp_path), python_bin=tmp_path / "venv")
    assert found.version == "5.0.2"
    shutil.move(tmp_path / "bin" / "mpicc", tmp_path / "gone")
    assert find_mpi(None, with_path(tools, tmp_path), python_bin=tmp_path / "venv").mpicc == real / "bin" / "mpicc"


@pytest.mark.parametrize("other", ["openmpi-5.0.11", "mpich-4.0.3", "mpich-5.0.2"])
def test_an_mpicc_of_another_mpi(tmp_path, tools, other) -> None:
    prefix = lay_out(tmp_path / "one", "mpich-5.0.2")
    (prefix / "bin" / "mpicc").unlink()
    elsewhere = lay_out(tmp_path / "two", other)
    with pytest.raises(InputError, match=r"two/bin/mpicc .* is not of .*one/bin/mpiexec .*Set --mpiexec") as caught:
        find_mpi(None, with_path(tools, prefix, elsewhere), python_bin=tmp_path)
    assert "\n" not in str(caught.value)


FAILS = b"#!/bin/sh\necho I_MPI_ROOT is not set >&2\nexit 1\n"


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("mpi/bin/mpiexec", None, r"no mpiexec: neither beside this Python .* nor on PATH.*pip install mpich"),
        ("mpi/bin/mpiexec", b"\x7fELF broken", "mpiexec does not run"),
        ("mpi/bin/mpicc", None, r"no mpicc beside .*/mpi/bin/mpiexec, nor on PATH"),
        ("mpi/bin/mpicc", FAILS, "mpicc -show fails: I_MPI_ROOT is not set"),
        # Debian's alternatives can be left so: /usr/bin/mpiexec of one MPI and /usr/bin/mpicc of the other.
        ("mpi/bin/mpicc", "openmpi-5.0.11", r"mpicc \(openmpi 5\.0\.11\) is not of .*mpiexec \(mpich 5\.0\.2\)"),
        ("mpi/lib/libmpi.so", None, r"mpicc has no libmpi\.so to link with"),
        ("tools/cc", None, "calls the C compiler cc, which is not on this machine"),
    ],
)
def test_what_is_missing_or_broken_is_named(tmp_path, tools, file, content, says) -> None:
    prefix = lay_out(tmp_path / "mpi", "mpich-5.0.2")
    if content is None:
        (tmp_path / file).unlink()
    elif isinstance(content, str):
        shutil.copy(lay_out(tmp_path / "other", content) / "bin" / "mpicc", tmp_path / file)
    else:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=says):
        find_mpi(None, with_path(tools, prefix), python_bin=tmp_path)
    with pytest.raises(InputError, match=r"--mpiexec /none/mpiexec is not a program"):
        find_mpi("/none/mpiexec", tools)


@pytest.mark.parametrize("lost", ["lib/libmpi.so", "bin/mpicc"])
@pytest.mark.parametrize(
    ("name", "package"), [("mpich-5.0.2", "apt install libmpich-dev"), ("openmpi-5.0.11", "dnf install openmpi-devel")]
)
def test_a_runtime_without_development_files(tmp_path, tools, name, package, lost) -> None:
    prefix = lay_out(tmp_path / "mpi", name)
    (prefix / lost).unlink()
    runtime, environment = next((prefix / "lib").glob("libmpi.so.*")), with_path(tools, prefix)
    says = f"Open MPI v{name[8:]}, package: ..." if "open" in name else f"MPICH Version:      {name[6:]}\n"

    def run(command: Sequence[str], variables: Mapping[str, str]) -> CommandOutput:
        """The library of the tree cannot be loaded, so what a real one says is said for it."""
        return CommandOutput(0, says) if command[-1] == str(runtime) else run_command(command, variables)

    with pytest.raises(InputError, match=f"{runtime} is here without its development files.*{package}"):
        find_mpi(None, environment, python_bin=tmp_path, run=run)
    found = find_mpi(None, environment, python_bin=tmp_path, compiles=False, run=run)
    assert (f"{found.library}-{found.version}", found.libmpi) == (name, runtime)
    assert find_library(prefix / "bin" / "mpiexec", found.library, environment, run=run) == runtime
    says = says.replace("5.0.", "5.0.9")  # one of another version that lies there is not of this launcher
    with pytest.raises(InputError, match=r"no mpicc|no libmpi\.so"):
        find_mpi(None, environment, python_bin=tmp_path, compiles=False, run=run)


def test_intel_mpi_is_told_from_mpich(tmp_path, tools) -> None:
    prefix = lay_out(tmp_path / "mpi", "mpich-4.0.3")
    (prefix / "bin" / "mpichversion").unlink()
    says = "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20260305 (id: 0)\nCopyright 2003-2026"
    script(prefix / "bin" / "mpiexec", says)
    (prefix / "lib" / "libmpi.so.12").write_bytes(CONTENT["intel"])
    found = find_mpi(None, with_path(tools, prefix), python_bin=tmp_path)
    assert (found.library, found.version, found.launcher) == (Library.INTELMPI, "2021.18", Launcher.HYDRA)


@pytest.mark.parametrize("constant", [b"\x005.0.2\x00", b"\x005.0.20\x00", b""])
def test_mpichversion_is_asked_unless_the_library_holds_the_version(tmp_path, tools, constant) -> None:
    prefix = lay_out(tmp_path / "mpi", "mpich-5.0.2")
    library = prefix / "lib" / "libmpi.so.12"
    library.write_bytes(library.read_bytes() + constant)
    asked: list[str] = []

    def run(command, environment):
        asked.append(Path(command[0]).name)
        return run_command(command, environment)

    found = find_mpi(None, with_path(tools, prefix), python_bin=tmp_path, run=run)
    assert found.version == "5.0.2"
    assert ("mpichversion" in asked) is (constant != b"\x005.0.2\x00")


def test_a_scheduler_as_launcher_takes_the_mpicc_on_path(tmp_path, tools) -> None:
    prefix = lay_out(tmp_path / "mpi", "mpich-5.0.2")
    srun = script(tmp_path / "slurm" / "bin" / "srun", "slurm 22.05.8")
    other = lay_out(tmp_path / "system", "openmpi-5.0.11")
    srun.with_name("mpicc").symlink_to(other / "bin" / "mpicc")
    found = find_mpi(str(srun), with_path(tools, prefix, tmp_path / "slurm"))
    assert (found.library, found.version, found.launcher) == (Library.MPICH, "5.0.2", Launcher.SRUN)


def test_a_sites_own_mpiexec_is_taken_as_it_is(tmp_path, tools) -> None:
    prefix = lay_out(tmp_path / "mpi", "mpich-5.0.2")
    script(tmp_path / "site" / "bin" / "mpiexec", "mpiexec version 1.2")
    found = find_mpi(None, with_path(tools, tmp_path / "site", prefix), python_bin=tmp_path)
    assert (found.launcher, found.library) == (Launcher.GENERIC, Library.MPICH)


def test_flux_is_asked_only_inside_of_it(tmp_path, tools) -> None:
    asked: list[Sequence[str]] = []

    def answer(command: Sequence[str], environment: Mapping[str, str]) -> CommandOutput:
        asked.append(command)
        return CommandOutput(0, "n[1-2] rank[0-1]/core[0-3]\n")

    script(tmp_path / "flux" / "bin" / "flux", "")
    environment = with_path(tools, tmp_path / "flux")
    assert ask_flux(environment, run=answer) is None
    assert not asked
    assert ask_flux({**environment, "FLUX_URI": "local:///x"}, run=answer) == "n[1-2] rank[0-1]/core[0-3]"
    assert "--states=up" in asked[0], "a program never starts on nodes that are down"
    assert ask_flux({**tools, "FLUX_URI": "local:///x"}, run=answer) is None
    assert ask_flux({**environment, "FLUX_URI": "x"}, run=lambda *_: CommandOutput(1, "cannot connect")) is None


def test_commands_get_the_environment_and_no_input(tmp_path) -> None:
    command = ["/bin/sh", "-c", "echo $X; cat; echo bad >&2; exit 3"]
    assert run_command(command, {"X": "y", "PATH": os.environ["PATH"]}) == CommandOutput(3, "y\nbad\n")


BLOCK = "processor\t: {n}\nmodel name\t: Some  CPU @ 2.50GHz\nphysical id\t: {p}\ncore id\t: {c}\n"


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("\n".join(BLOCK.format(n=n, p=n % 2, c=n // 2 % 2) for n in range(8)), "Some CPU @ 2.50GHz, 4 cores"),
        ("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n\n", "ARM 0x41 part 0xd40, 1 core"),
        ("processor : 0\ncpu : POWER9, altivec\n\nprocessor : 1\ncpu : POWER9, altivec\n", "POWER9, altivec, 2 cores"),
        ("", "unknown CPU, 0 cores"),
    ],
)
def test_the_machine_in_words(cpuinfo: str, expected: str) -> None:
    assert describe_machine(cpuinfo) == expected
    assert describe_machine().endswith(("core", "cores"))
