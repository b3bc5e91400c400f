"""`run`, `env` and the API under another MPI, another build, or one that does not read the files: one line, no job."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from jobs import AS_ROOT, ON_EITHER
from one_rule import write_tuning

import commands
from colltune import api
from colltune.core.errors import InputError
from colltune.deploy.applied import numbered_algorithms
from colltune.machine.command_lines import use_command
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.mpi.same import TunedMpi
from colltune.store.tuning import load_tuning, save_tuning
from commands import run_to_end, shell_script
from compiled import program

_FILE = {"mpich": "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "openmpi": "OMPI_MCA_coll_tuned_dynamic_rules_filename"}


@dataclass(frozen=True)
class Kit:
    mpi: Installation
    program: str  # linked with it

    def tuned(self, directory: Path) -> Path:
        """A tuning for this MPI, with one rule."""
        write_tuning(directory, self.mpi)
        assert load_tuning(directory).rule_sets["allreduce"].departs
        return directory

    def job(self) -> list[str]:
        return [str(self.mpi.mpiexec), "-n", "2", str(self.program)]


@pytest.fixture(scope="module")
def kit(either: Installation) -> Kit:
    return Kit(either, program(either.mpicc, "one_sum.c"))


@pytest.fixture(scope="module")
def other(mpi: Installation, openmpi: Installation, kit: Kit) -> Kit:
    """The other of the two MPIs of these tests."""
    mpi = openmpi if kit.mpi.library == "mpich" else mpi
    return Kit(mpi, program(mpi.mpicc, "one_sum.c"))


def colltune(*arguments: object, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    return commands.colltune(*map(str, arguments), environ={**os.environ, **ON_EITHER, "PATH": path})


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    for word in words:
        assert word in line


def upgraded(tuned: Path) -> None:
    """As if the library were another one since."""
    manifest = json.loads((tuned / "tuning.json").read_text())
    manifest["environment"]["mpi_build"] = "0123456789ab" + "0" * 52
    (tuned / "tuning.json").write_text(json.dumps(manifest))


def bin_of(mpi: Installation) -> str:
    return f"{mpi.mpiexec.parent}:/usr/bin:/bin"


def test_the_mpi_that_was_tuned_is_started(kit: Kit, tmp_path: Path) -> None:
    tuned = kit.tuned(tmp_path)
    done = colltune("run", tuned, "--", *kit.job())
    assert (done.returncode, done.stdout, done.stderr) == (0, "sum 1\nsum 1\n", "")
    done = colltune("run", tuned, "--", "env", "ONE=1", *kit.job())
    assert (done.returncode, done.stdout, done.stderr) == (0, "sum 1\nsum 1\n", "")
    done = colltune("env", tuned, path=bin_of(kit.mpi))
    assert (done.returncode, done.stderr) == (0, "")
    assert "export " in done.stdout


def test_another_build_is_refused_everywhere(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = kit.tuned(tmp_path)
    upgraded(tuned)
    told = ("build 0123456789ab", f"build {kit.mpi.build[:12]}", "tune this one")
    refused(colltune("run", tuned, "--", *kit.job()), *told, "loads")
    refused(colltune("run", tuned, "--", "env", "ONE=1", *kit.job()), *told)
    refused(colltune("run", tuned, "--", kit.mpi.mpiexec, "-n", "2", "sh", "-c", "echo started"), *told)
    refused(colltune("run", tuned, "--", kit.program), *told, "loads")  # as srun would start it
    refused(colltune("run", tuned, "--", "sh", "-c", "echo started"), *told)
    refused(colltune("env", tuned, path=bin_of(kit.mpi)), *told)
    refused(colltune("env", tuned, path=""), *told)
    monkeypatch.setenv("PATH", bin_of(kit.mpi))
    with pytest.raises(InputError, match="build 0123456789ab"):
        api.load(tuned).run(kit.job())


def test_the_launcher_of_another_mpi_is_refused(kit: Kit, other: Kit, tmp_path: Path) -> None:
    tuned = kit.tuned(tmp_path / "tuned")
    told = (f"was tuned for {kit.mpi.library} {kit.mpi.version}", f"starts {other.mpi.library} {other.mpi.version}")
    for name in ("mpiexec.openmpi", "mpiexec.hydra", "mpirun", "orterun", "prterun", "mpiexec.mpich"):
        link = tmp_path / "bin" / name
        link.parent.mkdir(exist_ok=True)
        shell_script(link, f'exec {other.mpi.mpiexec} "$@"')
        refused(colltune("run", tuned, "--", link, "-n", "2", kit.program), *told)
    refused(colltune("run", tuned, "--", "env", f"PATH={other.mpi.mpiexec.parent}", "mpiexec", kit.program), *told)
    refused(colltune("env", tuned, path=bin_of(other.mpi)), *told)


@pytest.mark.parametrize("first", ["the other MPI", "none"])
def test_the_printed_line_works_in_a_shell_that_finds_another_mpi(
    kit: Kit, other: Kit, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reader pastes it, and then starts his program by a plain mpiexec."""
    tuned = kit.tuned(tmp_path / "a tuning")
    # A directory of its own: /usr/bin may have an MPI of Debian's.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "sed", "cat", "env", "ldd", "bash", "gcc", "cc"):
        if there := shutil.which(name):
            (tools / name).symlink_to(there)
    path = f"{other.mpi.mpiexec.parent}:{tools}" if first == "the other MPI" else str(tools)
    monkeypatch.setenv("PATH", path)
    line = use_command(tuned, str(kit.mpi.mpiexec))
    assert f"--mpiexec {kit.mpi.mpiexec}" in line
    program, arguments = line.removeprefix('eval "$(').split(" ", 1)
    assert program.endswith("colltune")
    (tools / "grep").symlink_to(shutil.which("grep", path="/usr/bin:/bin") or "")
    filtered = f'env | grep "^{_FILE[kit.mpi.library]}"'
    own = shlex.join([sys.executable, "-m", "colltune"])
    typed = f'eval "$({own} {arguments}; mpiexec -n 2 {kit.program}; {filtered}'
    environment = {**os.environ, **AS_ROOT, "PATH": path}
    done = run_to_end(["/bin/bash", "-c", typed], env=environment, check=True)
    assert done.stderr == ""
    one, two, variable = done.stdout.splitlines()
    assert (one, two) == ("sum 1", "sum 1")
    assert str(tuned) in variable


def test_env_names_a_launcher_that_no_path_makes_the_mpiexec(kit: Kit, other: Kit, tmp_path: Path) -> None:
    """As Debian's mpiexec.mpich, beside the mpiexec of another MPI."""
    tuned = kit.tuned(tmp_path / "tuned")
    there = tmp_path / "bin"
    there.mkdir()
    starts = {"mpiexec": other.mpi.mpiexec, "mpiexec.mine": kit.mpi.mpiexec, "mpicc.mine": kit.mpi.mpicc}
    for name, start in starts.items():
        shell_script(there / name, f'exec {start} "$@"')
    path = f"{there}:/usr/bin:/bin"
    done = colltune("env", "--mpiexec", there / "mpiexec.mine", tuned, path=path)
    assert (done.returncode, done.stderr) == (0, "colltune: start your programs by mpiexec.mine\n")
    assert "PATH=" not in done.stdout
    refused(colltune("env", "--mpiexec", there / "mpiexec", tuned, path=path), "was tuned for", "starts")
    refused(colltune("env", "--mpiexec", there / "none", tuned, path=path), "is not a program")


def test_a_program_of_another_mpi_is_refused(kit: Kit, other: Kit, tmp_path: Path) -> None:
    tuned = kit.tuned(tmp_path)
    refused(colltune("run", tuned, "--", kit.mpi.mpiexec, "-n", "2", other.program), "loads", other.mpi.build[:12])


def test_a_variable_that_the_library_does_not_know_is_refused(kit: Kit, tmp_path: Path) -> None:
    tuned = kit.tuned(tmp_path)
    made = load_tuning(tuned)
    known = next(name for name in made.variables if name.lower().endswith(("filename", "json_file")))
    wrong = known.removeprefix("OMPI_MCA_") + "X"
    asked = TunedMpi(str(tuned), made.environment, {known + "X": str(tuned / "file")}, os.environ)
    with pytest.raises(InputError, match=f"does not know {wrong}"):
        asked.check_command(kit.job())


def test_an_algorithm_that_the_library_does_not_have_is_refused(kit: Kit, tmp_path: Path) -> None:
    """In a file whose hash is right: an unknown name, or an unknown number. Lint says it, and the library by itself."""
    tuned = kit.tuned(tmp_path / "tuned")
    made = load_tuning(tuned)
    if kit.mpi.library == "mpich":
        known, wrong = b"MPIR_Allreduce_intra_recursive_doubling", b"MPIR_Allreduce_intra_of_tomorrow"
        changed = {name: data.replace(known, wrong) for name, data in made.files.items()}
        words = "ends a job at the files"
    else:
        changed = {name: data.replace(b"0 3 0 0", b"0 99 0 0") for name, data in made.files.items()}
        words = "coll_tuned_allreduce_algorithm=99, which the files name, so these rules would not be followed"
    assert changed != made.files
    save_tuning(tuned, replace(made, files=changed))
    made = load_tuning(tuned)
    values = numbered_algorithms(made)
    asked = TunedMpi(str(tuned), made.environment, made.variables_at(tuned), os.environ, values)
    with pytest.raises(InputError, match=words):
        asked.check_command(kit.job())
    refused(colltune("run", tuned, "--", *kit.job()), "Nothing was run")
    refused(colltune("env", tuned, path=bin_of(kit.mpi)), "Nothing was run")


def test_the_question_is_asked_once_for_each_build(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLTUNE_CACHE", str(tmp_path / "cache"))
    tuned = kit.tuned(tmp_path / "tuned")
    for _ in range(2):
        assert colltune("env", tuned, path=bin_of(kit.mpi)).returncode == 0
        assert len(list((tmp_path / "cache").glob("known-*"))) == 1


def test_the_example_module_is_not_loaded_after_an_upgrade(mpi: Installation, tmp_path: Path) -> None:
    """The check of the module file, by the shell command that it runs."""
    tuned = Kit(mpi, tmp_path).tuned(tmp_path / "a tuning")
    own = f'PYTHONPATH="{os.pathsep.join(sys.path)}" exec {sys.executable} -m colltune "$@"'
    script = shell_script(tmp_path / "colltune", own)
    module = (Path(__file__).parents[2] / "packaging" / "modulefiles" / "colltune-tuned.lua").read_text()
    (check,) = re.findall(r"^local check = (.*)$", module, re.MULTILINE)
    names = {"mpi": str(mpi.mpiexec.parent.parent), "colltune": str(script), "tuned": str(tuned)}
    words = [names[word] if word in names else word.strip('"') for word in check.split(" .. ")]

    def said() -> str:
        return run_to_end(["sh", "-c", "".join(words)]).stdout

    assert said() == ""
    upgraded(tuned)
    assert "build 0123456789ab" in said()
    assert said().endswith("refused\n")


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def debian(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    launcher = shutil.which(f"mpiexec.{request.param}", path="/usr/bin")
    if launcher is None or shutil.which(f"mpicc.{request.param}", path="/usr/bin") is None:
        pytest.skip(f"no {request.param} of the system (Debian: {request.param}, lib{request.param}-dev)")
    mpi = find_mpi(launcher, os.environ)
    return Kit(mpi, program(mpi.mpicc, "one_sum.c"))


def test_an_older_mpi_of_the_system_is_refused_under_a_newer_ones_tuning(
    mpi: Installation, openmpi: Installation, debian: Kit, tmp_path: Path
) -> None:
    newer = Kit(mpi if debian.mpi.library == "mpich" else openmpi, debian.program)
    tuned = newer.tuned(tmp_path)
    if debian.mpi.build == newer.mpi.build:
        pytest.skip("the MPI of the tests is that of the system")
    refused(colltune("run", tuned, "--", *debian.job()), newer.mpi.version, debian.mpi.version)
    # The right launcher, and a program that loads another library.
    refused(colltune("run", tuned, "--", newer.mpi.mpiexec, "-n", "2", debian.program), "loads", debian.mpi.build[:12])


def test_an_mpi_of_the_system_is_run_under_its_own_tuning(debian: Kit, tmp_path: Path) -> None:
    tuned = debian.tuned(tmp_path)
    done = colltune("run", tuned, "--", *debian.job())
    assert (done.returncode, done.stdout) == (0, "sum 1\nsum 1\n"), done.stderr
    upgraded(tuned)
    refused(colltune("run", tuned, "--", *debian.job()), "build 0123456789ab")
