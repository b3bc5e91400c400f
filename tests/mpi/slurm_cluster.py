"""A real Slurm on this machine, for the time of a test: its daemons on the loopback, all nodes under one host name."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from commands import comes_true, end, run_to_end

DAEMONS = ("munged", "slurmctld", "slurmd", "salloc", "srun", "sinfo")
_SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


def why_not() -> str | None:
    """What this machine lacks for it, in words; None where nothing is missing."""
    missing = [name for name in DAEMONS if shutil.which(name, path=_SYSTEM) is None]
    if missing:
        return f"no {', '.join(missing)} (Debian, Ubuntu: apt install slurm-wlm munge)"
    return None if os.geteuid() == 0 else "Slurm's daemons need root"


@contextmanager
def slurm_cluster(directory: Path, nodes: int, cores: int, topology: str = "") -> Iterator[Mapping[str, str]]:
    """Starts ``nodes`` nodes of ``cores`` cores; gives the variables that Slurm's commands need to find it.

    ``topology``: the text of a topology.conf beside slurm.conf.
    """
    configuration = _configure(directory, nodes, cores, topology)
    environment = {**os.environ, "SLURM_CONF": str(configuration), "PATH": f"{os.environ['PATH']}:{_SYSTEM}"}
    key = directory / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    names = {name: str(directory / f"munge.{name}") for name in ("socket", "pid", "log", "seed")}
    with ExitStack() as stack:

        def start(*command: str) -> None:
            log = stack.enter_context(
                (directory / f"{command[0]}-{command[-1].replace('/', '_')[-20:]}.out").open("wb")
            )
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            stack.callback(end, process)

        start(
            *("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={names['socket']}"),
            *(f"--pid-file={names['pid']}", f"--log-file={names['log']}", f"--seed-file={names['seed']}"),
        )
        assert comes_true(lambda: Path(names["socket"]).exists()), "munged"
        start("slurmctld", "-D")
        for node in range(1, nodes + 1):
            start("slurmd", "-D", "-N", f"n{node}")
        assert comes_true(lambda: _states(environment) == {"idle"}), "the nodes of Slurm"
        yield environment


def _configure(directory: Path, nodes: int, cores: int, topology: str) -> Path:
    for name in ("state", *(f"spool/n{node}" for node in range(1, nodes + 1))):
        (directory / name).mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    ports = _free_ports(nodes + 1)
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={ports[0]}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={directory}/munge.socket",
        "CredType=cred/munge",
        "SlurmUser=root",
        "SlurmdUser=root",
        f"StateSaveLocation={directory}/state",
        f"SlurmdSpoolDir={directory}/spool/%n",
        f"SlurmctldPidFile={directory}/slurmctld.pid",
        f"SlurmdPidFile={directory}/%n.pid",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "ReturnToService=2",
        "MpiDefault=none",
        "SlurmdParameters=config_overrides",
        *(
            f"NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[node]} CPUs={cores} State=UNKNOWN"
            for node in range(1, nodes + 1)
        ),
        "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
    ]
    if topology:
        lines.append("TopologyPlugin=topology/tree")
        (directory / "topology.conf").write_text(topology)
    (directory / "slurm.conf").write_text("\n".join(lines) + "\n")
    return directory / "slurm.conf"


def _free_ports(count: int) -> Sequence[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _states(environment: Mapping[str, str]) -> set[str]:
    answer = run_to_end(["sinfo", "-h", "-o", "%T"], env=environment)
    return set(answer.stdout.split()) if answer.returncode == 0 else set()
