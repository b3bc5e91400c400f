"""A cluster on one machine: each node is a network namespace with its own host name, /dev/shm and IPC.

The nodes hang on one bridge by links of a given rate (token buckets in both directions), so an MPI job crosses real TCP
over real queues. Nothing of the machine's own network is touched; at the end all of it is gone. Needs root, iproute2
and util-linux.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from commands import Done, comes_true, end, ended_with, run_to_end, shell_script

_REALTIME = Path(__file__).parents[1] / "native" / "realtime.c"
# How long a rank keeps a core that others wait for, in milliseconds. In turns of 100, the kernel's own setting, a rank
# that tries again and again to send to one whose connection is not open yet kept that one from opening it: half of the
# first messages between two ranks took 100 to 450 ms (5 to 15 ms now).
_TURN = Path("/proc/sys/kernel/sched_rr_timeslice_ms")
_SHELL = """# What a launcher takes for ssh: options, a node's name, and what to run there.
while [ $# -gt 0 ]; do case $1 in -[lpoFi]) shift 2;; -*) shift;; *) break;; esac; done
node=$1; shift
exec nsenter --target "$(cat {directory}/$node.pid)" --net --uts --ipc --mount --wd="$PWD" /bin/sh -c "$*"
"""
_HOLDER = """
hostname {name}
mount -t tmpfs -o size=1g,mode=1777 tmpfs /dev/shm
mount --bind {directory}/hosts /etc/hosts
echo $$ > {directory}/{name}.starting
mv {directory}/{name}.starting {directory}/{name}.pid
exec sleep infinity
"""


@cache
def why_not() -> str | None:
    """The reason why there can be no such cluster here, or None."""
    missing = [tool for tool in ("ip", "tc", "nsenter", "unshare") if shutil.which(tool) is None]
    if missing:
        return f"no {', '.join(missing)} (apt-get install iproute2 util-linux)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"ct{os.getpid()}probe"
    made = run_to_end(["ip", "netns", "add", name])
    if made.returncode != 0:
        return f"no network namespaces here: {made.stderr.strip()}"
    try:
        _run(f"ip -n {name} link add name up type veth peer name down")
        _run(f"tc -n {name} qdisc add dev up root tbf rate 1gbit burst 16kb limit 4mb")
        _run(f"ip -n {name} link add name switch type bridge")
    except AssertionError as error:
        return f"this kernel lacks veth, bridge or tbf: {error}"
    finally:
        _run(f"ip netns del {name}")
    return None


@dataclass(frozen=True)
class NamespaceCluster:
    """Nodes that are up. ``hosts``: their names, the first of which is where a job's script would run.

    ``environment``: what a process needs for MPICH, Open MPI or Intel MPI to start ranks on these nodes, over their
    links.
    """

    directory: Path
    hosts: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def inside(self, *command: str, node: str | None = None) -> list[str]:
        """``command`` as it is run on ``node``, the first one by default."""
        pid = (self.directory / f"{node or self.hosts[0]}.pid").read_text().strip()
        return ["nsenter", f"--target={pid}", "--net", "--uts", "--ipc", "--mount", "--wd=.", *command]

    def host_file(self, ppn: int, nodes: int | None = None) -> Path:
        """A file that names the first ``nodes`` nodes with ``ppn`` ranks each."""
        path = self.directory / f"hosts-{nodes or len(self.hosts)}x{ppn}"
        path.write_text("".join(f"{host}:{ppn}\n" for host in self.hosts[:nodes]))
        return path

    def sent_bytes(self, node: str) -> int:
        """What ``node`` has sent over its link."""
        pid = (self.directory / f"{node}.pid").read_text().strip()
        line = next(line for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines() if "eth0:" in line)
        return int(line.partition(":")[2].split()[8])

    def run(self, *command: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Runs ``command`` on the first node."""
        return run_to_end(self.inside(*command), env={**os.environ, **self.environment}, timeout=timeout_s)

    def colltune(self, *arguments: object, code: int = 0, timeout_s: float = 300.0) -> Done:
        """The command on the first node, which has to end with ``code``."""
        path = f"PYTHONPATH={os.pathsep.join(sys.path)}"
        words = ("env", path, sys.executable, "-m", "colltune", *map(str, arguments))
        return ended_with(code, self.run(*words, timeout_s=timeout_s))


@contextmanager
def namespace_cluster(
    directory: Path, nodes: int, rate: str = "1gbit", burst: str = "16kb", *, realtime: bool = True
) -> Iterator[NamespaceCluster]:
    """Starts ``nodes`` nodes with links of ``rate``; ``directory`` is theirs alone, and short-lived.

    ``burst``: messages below it pass at once, so it has to be small beside those that are to be told apart.
    ``realtime``: between MPI_Init and MPI_Finalize, ranks share cores by turns of equal length. More ranks than cores
    are not to be compared otherwise. The length of a turn, 1 ms, is a setting of the machine, and stays.
    """
    directory.mkdir(parents=True, exist_ok=True)
    names = [f"node{number}" for number in range(nodes)]
    addresses = [f"10.99.0.{number + 1}" for number in range(nodes)]
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for address, name in zip(addresses, names, strict=True))]
    (directory / "hosts").write_text("\n".join(lines) + "\n")
    shell = shell_script(directory / "remote-shell", _SHELL.replace("{directory}", str(directory)))
    environment = {
        "HYDRA_LAUNCHER_EXEC": str(shell),
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth0",
        # A rank that waits sleeps between looks at its network, so that the others get its core.
        "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
        "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "4",
        "PRTE_MCA_plm_ssh_agent": str(shell),
        "PRTE_MCA_prte_if_include": "eth0",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,sm,tcp",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": str(shell),
        "I_MPI_FABRICS": "shm:ofi",
        # Waiting ranks give way to the others, also where they wait for a message: an allreduce of 8 B on 8 ranks
        # and 2 cores takes its slowest rank 0.4 ms, and 4 ms where each waits for the length of its turn.
        "I_MPI_THREAD_YIELD": "2",
        "I_MPI_WAIT_MODE": "0",
        "I_MPI_SPIN_COUNT": "1",
        "I_MPI_PAUSE_COUNT": "0",
        **{f"{prefix}_ALLOW_RUN_AS_ROOT{more}": "1" for prefix in ("OMPI", "PRTE") for more in ("", "_CONFIRM")},
    }
    if realtime:
        with suppress(OSError):
            _TURN.write_text("1")
        environment["LD_PRELOAD"] = str(_compiled(_REALTIME, directory))
    with ExitStack() as stack:
        _wire(stack, directory, names, addresses, (rate, burst))
        yield NamespaceCluster(directory, names, environment)


def _wire(
    stack: ExitStack, directory: Path, names: Sequence[str], addresses: Sequence[str], shape: tuple[str, str]
) -> None:
    prefix = f"ct{os.getpid()}{directory.stat().st_ino % 1000}"
    switch = f"{prefix}s"
    _namespace(stack, switch)
    _run(f"ip -n {switch} link add br0 type bridge stp_state 0 forward_delay 0")
    _run(f"ip -n {switch} link set br0 up")
    for number, (name, address) in enumerate(zip(names, addresses, strict=True)):
        node, port = f"{prefix}n{number}", f"p{number}"
        _namespace(stack, node)
        _run(f"ip -n {switch} link add {port} type veth peer name eth0 netns {node}")
        _run(f"ip -n {switch} link set {port} master br0 up")
        _run(f"ip -n {node} addr add {address}/24 dev eth0")
        for device in ("lo", "eth0"):
            _run(f"ip -n {node} link set {device} up")
        for where, one in ((node, "eth0"), (switch, port)):  # both directions of its link
            _run(f"tc -n {where} qdisc add dev {one} root tbf rate {shape[0]} burst {shape[1]} limit 4mb")
        script = _HOLDER.format(name=name, directory=directory)
        holder = subprocess.Popen(
            ["ip", "netns", "exec", node, "unshare", "--uts", "--ipc", "--mount", "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        stack.callback(end, holder)
    for name in names:
        assert comes_true(lambda name=name: (directory / f"{name}.pid").exists()), name


def _namespace(stack: ExitStack, name: str) -> None:
    _run(f"ip netns add {name}")
    stack.callback(_run, f"ip netns del {name}")
    _run(f"ip -n {name} link set lo up")


def _run(command: str) -> None:
    run_to_end(shlex.split(command), check=True)


def _compiled(source: Path, directory: Path) -> Path:
    library = directory / f"{source.stem}.so"
    _run(shlex.join(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]))
    return library
