"""The command line that starts a program on a job's nodes. It starts nothing.

A list of nodes that is too long for a command line goes into a file, which only the launcher reads, here.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from colltune.core.errors import InputError, LaunchError, on_os_error
from colltune.core.hostlist import compress_hostlist
from colltune.machine.files import write_atomically
from colltune.mpi.installation import Installation, Launcher
from colltune.mpi.job import Job, Scheduler
from colltune.mpi.libraries import record_of

# Linux takes at most 128 KiB in one argument.
_LONGEST_HOST_LIST = 100_000


@dataclass(frozen=True)
class Command:
    """How to start a job: ``argv``, and variables to add to the launcher's own environment."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchRequest:
    """What is to be started where: ``program`` with its arguments, ``ppn`` ranks on each of the first ``nodes``.

    Ranks are placed in blocks: rank r runs on node r // ppn. ``environment`` is set for every rank.
    """

    program: Sequence[str]
    nodes: int
    ppn: int
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn


def launch(installation: Installation, job: Job, request: LaunchRequest) -> Command:
    """The command for ``request``, in the terms of the launcher that ``installation`` has.

    Raises InputError where the job has fewer nodes, or nothing is to be started, and LaunchError where the list of
    nodes cannot be written.
    """
    if not request.program or request.nodes < 1 or request.ppn < 1:
        raise InputError(f"nothing to start: {request.nodes} nodes of {request.ppn} ranks, program {request.program}")
    if request.nodes > len(job.nodes):
        raise InputError(
            f"{request.nodes} nodes are asked for, and the job has {len(job.nodes)}", "Ask for fewer nodes"
        )
    arguments = _ARGUMENTS[installation.launcher](installation, job, request)
    by_prte = installation.launcher in (Launcher.PRRTE, Launcher.ORTE)
    as_root = record_of(installation.library).as_root if by_prte else {}
    return Command((str(installation.mpiexec), *arguments, *request.program), {**as_root, **request.environment})


def _hydra(_installation: Installation, job: Job, request: LaunchRequest) -> list[str]:
    arguments = ["-n", str(request.ranks)]
    if job.scheduler is not Scheduler.NONE:
        arguments += ["-ppn", str(request.ppn), *_hosts(job, request, ("-hosts", "-f"), "{name}:{ppn}")]
    for name, value in request.environment.items():
        arguments += ["-genv", name, value]
    return arguments


def _prte(_installation: Installation, job: Job, request: LaunchRequest) -> list[str]:
    arguments = ["-n", str(request.ranks)]
    if job.scheduler is not Scheduler.NONE:
        arguments += _hosts(job, request, ("--host", "--hostfile"), "{name} slots={ppn}")
        arguments += ["--map-by", f"ppr:{request.ppn}:node"]
    if _is_crowded(job, request):
        arguments.append("--oversubscribe")
    for name, value in request.environment.items():
        arguments += ["-x", f"{name}={value}"]
    return arguments


def _srun(installation: Installation, job: Job, request: LaunchRequest) -> list[str]:
    """srun hands its whole environment on, and --export cannot hold a value with a comma in it."""
    return [
        f"--mpi={record_of(installation.library).pmi}",
        f"--nodes={request.nodes}",
        f"--ntasks={request.ranks}",
        f"--ntasks-per-node={request.ppn}",
        "--distribution=block",
        "--input=0",  # requests go to rank 0; the others must not hold up its input
        "--kill-on-bad-exit=1",
        f"--nodelist={compress_hostlist(job.names[: request.nodes])}",
        *(["--overcommit"] if _is_crowded(job, request) else []),
    ]


def _flux(installation: Installation, job: Job, request: LaunchRequest) -> list[str]:
    arguments = ["run", f"--nodes={request.nodes}", f"--tasks-per-node={request.ppn}"]
    arguments += ["--exclusive", "--input=0", "--unbuffered"]
    if request.nodes < len(job.nodes):
        arguments.append(f"--requires=hosts:{compress_hostlist(job.names[: request.nodes])}")
    if (pmi := record_of(installation.library).pmi) == "pmix":
        arguments += ["-o", f"pmi={pmi}"]
    return arguments + [f"--env={name}={value}" for name, value in request.environment.items()]


def _jsrun(_installation: Installation, job: Job, request: LaunchRequest) -> list[str]:
    """One resource set per node, all ranks of the node in it; jsrun itself chooses among the job's nodes."""
    arguments = ["--nrs", str(request.nodes), "--rs_per_host", "1", "--tasks_per_rs", str(request.ppn)]
    arguments += ["--cpu_per_rs", str(job.ppn), "--launch_distribution", "packed"]
    for name, value in request.environment.items():
        arguments += ["--env", f"{name}={value}"]
    return arguments


def _generic(installation: Installation, job: Job, request: LaunchRequest) -> list[str]:
    arguments = ["-n", str(request.ranks)]
    if job.scheduler is not Scheduler.NONE:
        arguments += ["-N" if installation.mpiexec.name == "aprun" else "-ppn", str(request.ppn)]
    return arguments


def _is_crowded(job: Job, request: LaunchRequest) -> bool:
    """Whether a node gets more ranks than were granted on it: the launchers that mind have to be told."""
    return any(request.ppn > node.slots for node in job.nodes[: request.nodes])


def _hosts(job: Job, request: LaunchRequest, options: tuple[str, str], line: str) -> list[str]:
    """The tokens that name the nodes, by list or by a file of lines like ``line``."""
    names = job.names[: request.nodes]
    joined = ",".join(f"{name}:{request.ppn}" for name in names)
    if len(joined) <= _LONGEST_HOST_LIST:
        return [options[0], joined]
    content = "".join(line.format(name=name, ppn=request.ppn) + "\n" for name in names).encode()
    place = tempfile.gettempdir()
    with on_os_error(f"cannot write the list of nodes to {place}", "Make room, or set TMPDIR", LaunchError):
        path = Path(_directory().name) / hashlib.sha256(content).hexdigest()[:16]
        if not path.exists():
            write_atomically(path, content)
    return [options[1], str(path)]


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Of this process, so that two at work in one place do not write over each other's files; gone at its end."""
    return tempfile.TemporaryDirectory(prefix="colltune-hosts-")


_ARGUMENTS = {
    Launcher.HYDRA: _hydra,
    Launcher.PRRTE: _prte,
    Launcher.ORTE: _prte,
    Launcher.SRUN: _srun,
    Launcher.FLUX: _flux,
    Launcher.JSRUN: _jsrun,
    Launcher.GENERIC: _generic,
}
