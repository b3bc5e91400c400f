"""The command lines of each launcher, token by token."""

from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.mpi.job import Job, Node, Scheduler
from colltune.mpi.launch import LaunchRequest, launch

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
