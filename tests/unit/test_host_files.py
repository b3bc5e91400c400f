"""A large job names its nodes in a file: whoever is given a command finds it written, for its own shape."""

import sys
from pathlib import Path

import pytest

from colltune.bench import workbench
from colltune.bench.backends import recall_backend
from colltune.bench.workbench import Workbench
from colltune.core.errors import LaunchError
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import SizeBasis
from colltune.mpi import host_files
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.mpi.job import Job, Node, Scheduler
from colltune.prove.replay.on_workbench import replay

NODES, PPN = 10_000, 2
# In the place of mpiexec: reads the nodes as it would, says what its program would, and ends.
LAUNCHER = f"""#!{sys.executable}
import sys, pathlib
option = "-f" if "-f" in sys.argv else "--hostfile"
hosts = pathlib.Path(sys.argv[sys.argv.index(option) + 1]).read_text().splitlines()
ranks = int(sys.argv[sys.argv.index("-n") + 1])
assert len(hosts) * {PPN} == ranks, (len(hosts), ranks)
pathlib.Path(sys.argv[0] + ".hosts").write_text(hosts[0] + " " + hosts[-1])
print("case 1 bcast")
print("done cases=1 failures=0")
"""


@pytest.fixture(params=[(Launcher.HYDRA, Library.MPICH), (Launcher.PRRTE, Library.OPENMPI)], ids=["hydra", "prrte"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A job of 10,000 nodes, in a working directory that nothing may be written to."""
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(LAUNCHER)
    mpiexec.chmod(0o755)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    launcher, library = request.param
    version = "5.0.2" if library is Library.MPICH else "5.0.11"
    mpi = Installation(library, version, launcher, mpiexec, Path("mpicc"), Path("libmpi.so"), "0")
    job = Job(Scheduler.PBS, tuple(Node(f"host{number:05}", PPN) for number in range(NODES)))
    environment = Environment(str(library), version, "0", "there", NODES, PPN, "single")
    backend = recall_backend(environment)
    return Workbench(mpi, job, NODES, PPN, "single", backend, Path("agent"), environment, {"PATH": "/usr/bin"})


def seen(bench: Workbench) -> list[str]:
    """The first and the last line of the file that the launcher read."""
    text = Path(f"{bench.installation.mpiexec}.hosts").read_text()
    return text.replace(f" slots={PPN}", f":{PPN}").split()


def test_the_conformance_replay_of_a_large_job_finds_its_nodes(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "build", lambda *_: Path("conformance"))
    result = replay(bench, {"bcast": RuleSet.always("bcast", SizeBasis.NONE)}, {}, short=True)
    assert result.passed, result
    assert result.cases == 1
    assert seen(bench) == ["host00000:2", "host09999:2"]


def test_the_agent_of_a_large_job_finds_its_nodes(bench: Workbench) -> None:
    assert "done cases=1" in bench.said_under({})
    assert seen(bench)[1] == "host09999:2"


def test_each_command_keeps_its_own_nodes_and_the_working_directory_stays_as_it_was(bench: Workbench) -> None:
    commands = [bench.command(["a"], nodes=nodes) for nodes in (NODES, 9000, NODES)]
    files = [Path(command.host_file[0]) for command in commands if command.host_file is not None]
    assert [len(file.read_text().splitlines()) for file in files] == [NODES, 9000, NODES]
    assert all(str(file) in command.argv for file, command in zip(files, commands, strict=True))
    assert not list(Path().iterdir())
    small = bench.command(["a"], nodes=3)
    assert small.host_file is None


def test_no_room_for_the_list_is_said_in_one_line(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        name = "/nowhere/at/all"

    monkeypatch.setattr(host_files, "_directory", Full)
    with pytest.raises(LaunchError, match="cannot write the list of nodes"):
        bench.command(["a"])
