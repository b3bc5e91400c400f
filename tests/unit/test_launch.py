"""The command lines of each launcher, what is one, and the files that name the nodes of a large job."""

import shlex
import sys
from pathlib import Path

import pytest

from colltune.bench import workbench
from colltune.bench.backends import recall_backend
from colltune.bench.workbench import Workbench
from colltune.core.errors import InputError, LaunchError
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment, SizeBasis
from colltune.machine.compile import preload_variables
from colltune.mpi import host_files
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.mpi.job import Job, Node, Scheduler
from colltune.mpi.launch import LaunchRequest, launch
from colltune.mpi.launch_line import job_of_line, other_binding, parse_launch_line
from colltune.mpi.launchers import is_launcher, is_of_mpi, scheduler_launcher
from colltune.prove.replay.on_workbench import replay

LAPTOP = Job(Scheduler.NONE, (Node("localhost", 2),))
SLURM = Job(Scheduler.SLURM, (Node("n1", 8), Node("n2", 8), Node("n3", 4)))


def installed(launcher: Launcher, library: Library = Library.MPICH, program: str = "/opt/bin/mpiexec") -> Installation:
    return Installation(library, "5.0.2", launcher, Path(program), Path("/opt/bin/mpicc"), Path("/opt/lib/x.so"), "0")


def argv(
    launcher: Launcher, job: Job, request: LaunchRequest, library: Library = Library.MPICH, program: str = "L"
) -> str:
    return " ".join(launch(installed(launcher, library, program), job, request).argv)


AGENT = ("./agent", "--box", "1")


def test_on_a_laptop_nothing_is_said_about_hosts() -> None:
    request = LaunchRequest(AGENT, 1, 2)
    assert argv(Launcher.HYDRA, LAPTOP, request) == "L -n 2 ./agent --box 1"
    assert argv(Launcher.GENERIC, LAPTOP, request) == "L -n 2 ./agent --box 1"
    assert argv(Launcher.PRRTE, LAPTOP, request, Library.OPENMPI) == "L -n 2 ./agent --box 1"


def test_open_mpi_is_told_when_ranks_outnumber_cores() -> None:
    assert argv(Launcher.PRRTE, LAPTOP, LaunchRequest(AGENT, 1, 4)) == "L -n 4 --oversubscribe ./agent --box 1"


def test_hydra() -> None:
    request = LaunchRequest(AGENT, 2, 8, {"MPIR_CVAR_X": "a b"})
    command = launch(installed(Launcher.HYDRA), SLURM, request)
    assert command.argv == (
        *("/opt/bin/mpiexec", "-n", "16", "-ppn", "8", "-hosts", "n1:8,n2:8"),
        *("-genv", "MPIR_CVAR_X", "a b", *AGENT),
    )
    assert command.environment == {"MPIR_CVAR_X": "a b"}
    assert command.host_file is None


def test_open_mpi() -> None:
    for launcher in (Launcher.PRRTE, Launcher.ORTE):
        command = launch(installed(launcher, Library.OPENMPI), SLURM, LaunchRequest(AGENT, 3, 8, {"OMPI_MCA_a": "1,2"}))
        assert command.argv == (
            *("/opt/bin/mpiexec", "-n", "24", "--host", "n1:8,n2:8,n3:8", "--map-by", "ppr:8:node"),
            *("--oversubscribe", "-x", "OMPI_MCA_a=1,2", *AGENT),
        )
        assert command.environment["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
        assert command.environment["OMPI_MCA_a"] == "1,2"


def test_srun() -> None:
    command = launch(installed(Launcher.SRUN, program="srun"), SLURM, LaunchRequest(AGENT, 2, 8, {"A": "1,2"}))
    assert " ".join(command.argv) == (
        "srun --mpi=pmi2 --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block --input=0 "
        "--kill-on-bad-exit=1 --nodelist=n[1-2] ./agent --box 1"
    )
    assert command.environment == {"A": "1,2"}
    line = argv(Launcher.SRUN, SLURM, LaunchRequest(AGENT, 3, 8), Library.OPENMPI)
    assert "--mpi=pmix" in line
    assert "--overcommit" in line


def test_flux() -> None:
    assert argv(Launcher.FLUX, SLURM, LaunchRequest(AGENT, 3, 4, {"A": "b"}), program="flux") == (
        "flux run --nodes=3 --tasks-per-node=4 --exclusive --input=0 --unbuffered --env=A=b ./agent --box 1"
    )
    assert "--requires=hosts:n[1-2]" in argv(Launcher.FLUX, SLURM, LaunchRequest(AGENT, 2, 4))


def test_jsrun() -> None:
    assert argv(Launcher.JSRUN, SLURM, LaunchRequest(AGENT, 2, 4, {"A": "b"}), program="jsrun") == (
        "jsrun --nrs 2 --rs_per_host 1 --tasks_per_rs 4 --cpu_per_rs 4 --launch_distribution packed "
        "--env A=b ./agent --box 1"
    )


@pytest.mark.parametrize(
    ("launcher", "option", "line"),
    [(Launcher.HYDRA, "-f", "host00000:2"), (Launcher.PRRTE, "--hostfile", "host00000 slots=2")],
)
def test_a_long_list_of_hosts_goes_through_a_file(launcher: Launcher, option: str, line: str) -> None:
    many = Job(Scheduler.PBS, tuple(Node(f"host{n:05}", 2) for n in range(10_000)))
    command = launch(installed(launcher), many, LaunchRequest(AGENT, 10_000, 2, host_file="tuned/hosts"))
    assert command.argv[command.argv.index(option) + 1] == "tuned/hosts"
    assert command.host_file is not None
    path, content = command.host_file
    assert path == "tuned/hosts"
    assert content.splitlines()[0] == line
    assert len(content.splitlines()) == 10_000
    assert max(map(len, command.argv)) < 128 * 1024


@pytest.mark.parametrize("launcher", Launcher)
def test_every_launcher_ends_with_the_program_and_starts_nothing(launcher: Launcher) -> None:
    command = launch(installed(launcher, program="/nonexistent/launcher"), SLURM, LaunchRequest(AGENT, 1, 1))
    assert command.argv[0] == "/nonexistent/launcher"
    assert command.argv[-3:] == AGENT


@pytest.mark.parametrize(
    "request_",
    [LaunchRequest(AGENT, 4, 1), LaunchRequest(AGENT, 0, 1), LaunchRequest(AGENT, 1, 0), LaunchRequest((), 1, 1)],
)
def test_what_the_job_cannot_hold_is_refused(request_: LaunchRequest) -> None:
    with pytest.raises(InputError):
        launch(installed(Launcher.HYDRA), SLURM, request_)


@pytest.mark.parametrize(
    "name", ["mpiexec", "mpirun", "prterun", "orterun", "/opt/x/bin/mpiexec.hydra", "mpirun.openmpi", "mpiexec-mpich"]
)
def test_launchers_of_an_mpi_are_known_by_name_in_any_directory(name: str) -> None:
    assert is_launcher(name)
    assert scheduler_launcher(Path(name)) is None


@pytest.mark.parametrize("name", ["srun", "/usr/bin/flux", "jsrun", "aprun"])
def test_launchers_of_a_scheduler_are_of_no_mpi(name: str) -> None:
    assert not is_launcher(name)
    launcher = scheduler_launcher(Path(name))
    assert launcher is not None
    assert not is_of_mpi(launcher)


def test_a_launcher_that_only_starts_ranks_does_not_say_its_mpi() -> None:
    assert not is_of_mpi(Launcher.GENERIC)
    assert all(is_of_mpi(one) for one in (Launcher.HYDRA, Launcher.PRRTE, Launcher.ORTE))


ALONE = {"PATH": "/usr/bin:/bin"}
IN_SLURM = {**ALONE, "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_TASKS_PER_NODE": "8(x4)"}


@pytest.mark.parametrize(
    ("given", "environ", "wrappers", "shape"),
    [
        ("srun --cpu-bind=cores --mpi pmix env sh ./app -x", IN_SLURM, ("env", "sh", "./app", "-x"), (4, 8)),
        ("srun -N2 --ntasks-per-node=4 -l nice", IN_SLURM, ("nice",), (2, 4)),
        ("srun -n 16 python3 app.py", IN_SLURM, (), (2, 8)),
        ("env X=1 mpiexec -n 6 -bind-to core nice python3 app.py", ALONE, ("nice",), (1, 6)),
        ("mpirun --host a,b -np 4 --map-by ppr:2:node --bind-to core", ALONE, (), (2, 2)),
        ("mpiexec -hosts a:2,b:2 -ppn 2 -n 4 numactl", ALONE, None, None),
        ("aprun -n 8 -N 4 -cc depth -d 2", IN_SLURM, (), (2, 4)),
        ("flux run -N2 -n8 -o cpu-affinity=per-task", IN_SLURM, (), (2, 4)),
    ],
)
def test_a_launch_line_ends_where_its_program_begins_and_says_the_ranks(
    given: str, environ: dict[str, str], wrappers: tuple[str, ...] | None, shape: tuple[int, int] | None
) -> None:
    if wrappers is None:
        with pytest.raises(InputError, match="which is no program here"):
            parse_launch_line(shlex.split(given), environ)
        return
    line = parse_launch_line(shlex.split(given), environ)
    assert line.words[line.wrappers :] == wrappers
    job, nodes, ppn = job_of_line(line, environ)
    assert (nodes, ppn) == shape
    assert len(job.nodes) >= nodes
    command = line.command(["/opt/agent", "--it"], "mpich", {"X": "a, b"})
    assert command.argv[-2:] == ("/opt/agent", "--it")
    assert [word for word in command.argv if word in line.words] == list(line.words)
    assert command.environment["X"] == "a, b"
    assert ("--input=0" in command.argv) == (line.launcher in ("srun", "flux"))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("./app", "begins with no launcher"),
        ("", "begins with no launcher"),
        ("srun -n 2 ./not-here", "'./not-here', which is no program here"),
        ("mpiexec -n 2 nice : -n 2 nice", "several programs"),
        ("srun -n 9 nice", "does not say how many ranks all nodes get alike"),
        ("mpiexec --host a,b nice", "does not say how many ranks"),
    ],
)
def test_what_is_no_launch_line_is_refused_with_what_to_write(given: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        job_of_line(parse_launch_line(shlex.split(given), IN_SLURM), IN_SLURM)


def test_a_line_that_binds_otherwise_is_told_and_nothing_else() -> None:
    tuned = "srun -n 4 --cpu-bind=cores nice"
    same = ["srun -n 8 -N2 --label --cpu-bind cores nice", "srun --cpu_bind=cores nice"]
    assert [other_binding(tuned, shlex.split(line), IN_SLURM) for line in same] == ["", ""]
    assert other_binding("", shlex.split("srun --cpu-bind=none nice"), IN_SLURM) == ""
    found = other_binding(tuned, shlex.split("srun -n 4 --cpu-bind=threads nice"), IN_SLURM)
    around = "--cpu-bind=cores nice around the program"
    assert found == f"tuned with {around}, and this line has --cpu-bind=threads nice: times may differ"
    assert "this line has nothing" in other_binding(tuned, ["mpiexec", "-n", "4"], IN_SLURM)


@pytest.mark.parametrize("name", ["mpiexecutor", "mpicc", "app", "xmpirun", "sruns"])
def test_other_programs_are_no_launchers(name: str) -> None:
    assert not is_launcher(name)
    assert scheduler_launcher(Path(name)) is None


@pytest.mark.parametrize(
    ("already", "wanted"),
    [
        ("", "/l.so"),
        ("/a.so:/b.so", "/a.so:/b.so:/l.so"),
        ("/a.so:/l.so", "/a.so:/l.so"),
        ("/a.so /opt/libmpi.so.12", "/a.so:/l.so:/opt/libmpi.so.12"),
        ("/opt/libmpi.so:/a.so", "/l.so:/opt/libmpi.so:/a.so"),
        ("/opt/libmpiP.so:/opt/libmpi_abi.so.1", "/opt/libmpiP.so:/l.so:/opt/libmpi_abi.so.1"),
    ],
)
def test_a_library_is_preloaded_once_and_what_is_there_stays(already: str, wanted: str) -> None:
    assert preload_variables(Path("/l.so"), {"LD_PRELOAD": already}) == {"LD_PRELOAD": wanted}
    assert preload_variables("/l.so", {}) == {"LD_PRELOAD": "/l.so"}


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
