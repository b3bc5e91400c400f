"""The command line that starts a program on a job's nodes. Pure: builds tokens, starts nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from colltune.core.errors import InputError
from colltune.core.hostlist import compress_hostlist
from colltune.mpi.installation import Installation, Launcher
from colltune.mpi.job import Job, Scheduler
from colltune.mpi.libraries import record_of

# Linux takes at most 128 KiB in one argument; a longer list of hosts goes through a file.
_LONGEST_HOST_LIST = 100_000


@dataclass(frozen=True)
class Command:
    """How to start a job: ``argv``, variables to add to the launcher's own environment, and a file to write first.

    ``host_file`` is (path, content), or None where no file is needed.
    """

    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    host_file: tuple[str, str] | None = None


@dataclass(frozen=True)
class LaunchRequest:
    """What is to be started where: ``program`` with its arguments, ``ppn`` ranks on each of the first ``nodes``.

    Ranks are placed in blocks: rank r runs on node r // ppn. ``environment`` is set for every rank.
    ``host_file`` is where a list of hosts may be written that is too long for a command line.
    """

    program: Sequence[str]
    nodes: int
    ppn: int
    environment: Mapping[str, str] = field(default_factory=dict)
    host_file: str = "colltune-hosts"

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn


def launch(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    """The command for ``request``, in the terms of the launcher that ``installation`` has.

    Raises InputError where the job has fewer nodes, or nothing is to be started.
    """
    if not request.program or request.nodes < 1 or request.ppn < 1:
        raise InputError(f"nothing to start: {request.nodes} nodes of {request.ppn} ranks, program {request.program}")
    if request.nodes > len(job.nodes):
        raise InputError(
            f"{request.nodes} nodes are asked for, and the job has {len(job.nodes)}", "Ask for fewer nodes"
        )
    return _BUILDERS[installation.launcher](installation, job, request)


def _hydra(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    arguments = [str(installation.mpiexec), "-n", str(request.ranks)]
    file = None
    if job.scheduler is not Scheduler.NONE:
        hosts, file = _hosts(job, request, ("-hosts", "-f"), "{name}:{ppn}", "{name}:{ppn}")
        arguments += ["-ppn", str(request.ppn), *hosts]
    for name, value in request.environment.items():
        arguments += ["-genv", name, value]
    return Command((*arguments, *request.program), dict(request.environment), file)


def _prte(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    arguments = [str(installation.mpiexec), "-n", str(request.ranks)]
    file = None
    if job.scheduler is not Scheduler.NONE:
        hosts, file = _hosts(job, request, ("--host", "--hostfile"), "{name}:{ppn}", "{name} slots={ppn}")
        arguments += [*hosts, "--map-by", f"ppr:{request.ppn}:node"]
    if _is_crowded(job, request):
        arguments.append("--oversubscribe")
    for name, value in request.environment.items():
        arguments += ["-x", f"{name}={value}"]
    return Command(
        (*arguments, *request.program), {**record_of(installation.library).as_root, **request.environment}, file
    )


def _srun(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    arguments = [
        str(installation.mpiexec),
        f"--mpi={record_of(installation.library).pmi}",
        f"--nodes={request.nodes}",
        f"--ntasks={request.ranks}",
        f"--ntasks-per-node={request.ppn}",
        "--distribution=block",
        "--input=0",  # requests go to rank 0; the others must not hold up its input
        "--kill-on-bad-exit=1",
        f"--nodelist={compress_hostlist(job.names[: request.nodes])}",
    ]
    if _is_crowded(job, request):
        arguments.append("--overcommit")
    # srun hands its whole environment on, and --export cannot hold a value with a comma in it.
    return Command((*arguments, *request.program), dict(request.environment))


def _flux(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    arguments = [
        str(installation.mpiexec),
        "run",
        f"--nodes={request.nodes}",
        f"--tasks-per-node={request.ppn}",
        "--exclusive",
        "--input=0",
        "--unbuffered",
    ]
    if request.nodes < len(job.nodes):
        arguments.append(f"--requires=hosts:{compress_hostlist(job.names[: request.nodes])}")
    if (pmi := record_of(installation.library).pmi) == "pmix":
        arguments += ["-o", f"pmi={pmi}"]
    arguments += [f"--env={name}={value}" for name, value in request.environment.items()]
    return Command((*arguments, *request.program), dict(request.environment))


def _jsrun(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    """One resource set per node, all ranks of the node in it; jsrun itself chooses among the job's nodes."""
    cores = min(node.slots for node in job.nodes)
    arguments = [
        str(installation.mpiexec),
        "--nrs",
        str(request.nodes),
        "--rs_per_host",
        "1",
        "--tasks_per_rs",
        str(request.ppn),
        "--cpu_per_rs",
        str(cores),
        "--launch_distribution",
        "packed",
    ]
    for name, value in request.environment.items():
        arguments += ["--env", f"{name}={value}"]
    return Command((*arguments, *request.program), dict(request.environment))


def _generic(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    arguments = [str(installation.mpiexec), "-n", str(request.ranks)]
    if job.scheduler is not Scheduler.NONE:
        arguments += ["-N" if installation.mpiexec.name == "aprun" else "-ppn", str(request.ppn)]
    return Command((*arguments, *request.program), dict(request.environment))


def _is_crowded(job: Job, request: LaunchRequest) -> bool:
    """Whether a node gets more ranks than were granted on it: the launchers that mind have to be told."""
    return any(request.ppn > node.slots for node in job.nodes[: request.nodes])


def _hosts(
    job: Job, request: LaunchRequest, options: tuple[str, str], item: str, line: str
) -> tuple[list[str], tuple[str, str] | None]:
    """The tokens that name the nodes, by list or by file, and the file."""
    names = job.names[: request.nodes]
    inline, by_file = options
    joined = ",".join(item.format(name=name, ppn=request.ppn) for name in names)
    if len(joined) <= _LONGEST_HOST_LIST:
        return [inline, joined], None
    content = "".join(line.format(name=name, ppn=request.ppn) + "\n" for name in names)
    return [by_file, request.host_file], (request.host_file, content)


_BUILDERS = {
    Launcher.HYDRA: _hydra,
    Launcher.PRRTE: _prte,
    Launcher.ORTE: _prte,
    Launcher.SRUN: _srun,
    Launcher.FLUX: _flux,
    Launcher.JSRUN: _jsrun,
    Launcher.GENERIC: _generic,
}
