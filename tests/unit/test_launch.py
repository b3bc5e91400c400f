"""The command lines of each launcher, what is one, and the files that name the nodes of a large job."""

import shlex
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from colltune.bench import workbench
from colltune.bench.backends import recall_backend
from colltune.bench.workbench import Workbench
from colltune.core.errors import InputError, LaunchError
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment, SizeBasis
from colltune.machine.compile import preload_variables
from colltune.mpi import launch as launching
from colltune.mpi.installation import Installation, Launcher, Library, is_launcher, is_of_mpi, scheduler_launcher
from colltune.mpi.job import Job, Node, Scheduler
from colltune.mpi.launch import LaunchRequest, launch
from colltune.mpi.launch_line import job_of_line, other_binding, parse_launch_line
from colltune.prove.replay.on_workbench import replay

LAPTOP = Job(Scheduler.NONE, (Node("localhost", 2),))
SLURM = Job(Scheduler.SLURM, (Node("n1", 8), Node("n2", 8), Node("n3", 4)))


def installed(launcher: Launcher, library: Library = Library.MPICH, program: str = "/opt/bin/mpiexec") -> Installation:
    return Installation(library, "5.0.2", launcher, Path(program), Path("/opt/bin/mpicc"), Path("/opt/lib/x.so"), "0")


MPICH, OPENMPI = Library.MPICH, Library.OPENMPI
OF_OPENMPI = "L -n 24 --host n1:8,n2:8,n3:8 --map-by ppr:8:node --oversubscribe -x OMPI_MCA_a=1,2 P"
SRUN = "L --mpi={} --nodes={} --ntasks={} --ntasks-per-node=8 --distribution=block --input=0 --kill-on-bad-exit=1 "
FLUX = "L run --nodes={} --tasks-per-node=4 --exclusive --input=0 --unbuffered "
# The command line of so many nodes and ranks per node with variables; L is the launcher and P the program.
LINES = [
    *((launcher, LAPTOP, library, (1, 2), {}, "L -n 2 P")
      for launcher, library in ((Launcher.HYDRA, MPICH), (Launcher.GENERIC, MPICH), (Launcher.PRRTE, OPENMPI))),
    (Launcher.PRRTE, LAPTOP, OPENMPI, (1, 4), {}, "L -n 4 --oversubscribe P"),  # more ranks than cores
    (Launcher.HYDRA, SLURM, MPICH, (2, 8), {"X": "a b"}, "L -n 16 -ppn 8 -hosts n1:8,n2:8 -genv X a b P"),
    (Launcher.PRRTE, SLURM, OPENMPI, (3, 8), {"OMPI_MCA_a": "1,2"}, OF_OPENMPI),
    (Launcher.ORTE, SLURM, OPENMPI, (3, 8), {"OMPI_MCA_a": "1,2"}, OF_OPENMPI),
    (Launcher.SRUN, SLURM, MPICH, (2, 8), {"A": "1,2"}, SRUN.format("pmi2", 2, 16) + "--nodelist=n[1-2] P"),
    (Launcher.SRUN, SLURM, OPENMPI, (3, 8), {}, SRUN.format("pmix", 3, 24) + "--nodelist=n[1-3] --overcommit P"),
    (Launcher.FLUX, SLURM, MPICH, (3, 4), {"A": "b"}, FLUX.format(3) + "--env=A=b P"),
    (Launcher.FLUX, SLURM, MPICH, (2, 4), {}, FLUX.format(2) + "--requires=hosts:n[1-2] P"),
    (Launcher.JSRUN, SLURM, MPICH, (2, 4), {"A": "b"},
     "L --nrs 2 --rs_per_host 1 --tasks_per_rs 4 --cpu_per_rs 4 --launch_distribution packed --env A=b P"),
    (Launcher.GENERIC, SLURM, MPICH, (2, 4), {"A": "b"}, "L -n 8 -ppn 4 P"),
    (Launcher.GENERIC, SLURM, MPICH, (2, 4), {}, "aprun -n 8 -N 4 P"),  # has an option of its own
]  # fmt: skip


@pytest.mark.parametrize(("launcher", "job", "library", "shape", "variables", "line"), LINES)
def test_the_command_line_of_each_launcher(
    launcher: Launcher, job: Job, library: Library, shape: tuple[int, int], variables: dict[str, str], line: str
) -> None:
    command = launch(installed(launcher, library, line.split()[0]), job, LaunchRequest(("P",), *shape, variables))
    assert " ".join(command.argv) == line
    root = {name for name in command.environment if name.endswith(("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"))}
    assert {name: value for name, value in command.environment.items() if name not in root} == variables
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in root) == (launcher in (Launcher.PRRTE, Launcher.ORTE))


@pytest.mark.parametrize("asked", [(("P",), 4, 1), (("P",), 0, 1), (("P",), 1, 0), ((), 1, 1)])
def test_what_the_job_cannot_hold_is_refused(asked: tuple[tuple[str, ...], int, int]) -> None:
    with pytest.raises(InputError):
        launch(installed(Launcher.HYDRA), SLURM, LaunchRequest(*asked))


@pytest.mark.parametrize(
    ("names", "of_mpi", "of_scheduler"),
    [
        ("mpiexec mpirun prterun orterun /opt/x/bin/mpiexec.hydra mpirun.openmpi mpiexec-mpich", True, False),
        ("srun /usr/bin/flux jsrun aprun", False, True),
        ("mpiexecutor mpicc app xmpirun sruns", False, False),
    ],
)
def test_launchers_are_known_by_name_in_any_directory(names: str, of_mpi: bool, of_scheduler: bool) -> None:
    for name in names.split():
        launcher = scheduler_launcher(Path(name))
        assert (is_launcher(name), launcher is not None) == (of_mpi, of_scheduler), name
        assert launcher is None or not is_of_mpi(launcher)
    assert not is_of_mpi(Launcher.GENERIC)  # which only starts ranks
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
pathlib.Path(sys.argv[0] + ".hosts").write_text(hosts[0] + ";" + hosts[-1])
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


def require_nodes_were_seen(bench: Workbench) -> None:
    """That the launcher read a list of hosts from the first to the last, each as it is written for it."""
    host = "host{}:2" if bench.installation.launcher is Launcher.HYDRA else "host{} slots=2"
    lines = Path(f"{bench.installation.mpiexec}.hosts").read_text().split(";")
    assert lines == [host.format("00000"), host.format("09999")]


def test_the_check_of_results_and_the_agent_of_a_large_job_find_its_nodes(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "program_for", lambda *_: Path("conformance"))
    result = replay(bench, {"bcast": RuleSet.always("bcast", SizeBasis.NONE)}, {}, short=True)
    assert (result.passed, result.cases) == (True, 1), result
    require_nodes_were_seen(bench)
    Path(f"{bench.installation.mpiexec}.hosts").unlink()
    assert "done cases=1" in bench.output_under({})
    require_nodes_were_seen(bench)


def test_a_job_that_grants_each_node_one_rank_says_how_to_tune_for_more(bench: Workbench) -> None:
    for (scheduler, ppn), said in {("pbs", 1): 1, ("slurm", 1): 1, ("pbs", 2): 0, ("flux", 1): 0}.items():
        one = replace(bench, job=replace(bench.job, scheduler=Scheduler(scheduler)), ppn=ppn)
        assert sum("one rank" in text and "--ppn" in text for text in one.warnings) == said
    assert replace(bench, job=replace(bench.job, part="a part of it")).warnings == ["a part of it"]


def test_a_job_that_grants_some_nodes_more_ranks_than_others_says_what_each_gets(bench: Workbench) -> None:
    job = Job(Scheduler.LSF, (Node("a", 4), Node("b", 2), Node("c", 4)))
    (text,) = replace(bench, job=job, nodes=3, ppn=2).warnings
    assert text.startswith("lsf grants 2 to 4 ranks a node; each gets 2 here")
    assert replace(bench, job=job, nodes=3, ppn=1).warnings == [], "what was asked for is no surprise"
    assert replace(bench, job=job, nodes=1, ppn=2).warnings == []


def test_each_command_keeps_its_own_nodes_and_the_working_directory_stays_as_it_was(bench: Workbench) -> None:
    commands = [bench.command(["a"], nodes=nodes) for nodes in (NODES, 9000, NODES)]
    options = ("-f", "--hostfile")
    files = [Path(after) for command in commands for word, after in pairwise(command.argv) if word in options]
    assert [len(file.read_text().splitlines()) for file in files] == [NODES, 9000, NODES]
    assert max(len(word) for command in commands for word in command.argv) < 128 * 1024
    assert not list(Path().iterdir())
    assert not {*options} & {*bench.command(["a"], nodes=3).argv}


def test_no_room_for_the_list_is_said_in_one_line(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        name = "/nowhere/at/all"

    monkeypatch.setattr(launching, "_directory", Full)
    with pytest.raises(LaunchError, match="cannot write the list of nodes"):
        bench.command(["a"])
