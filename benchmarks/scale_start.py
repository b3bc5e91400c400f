"""What the start of a program takes in a large job: a file of many rules in MPI_Init, and look-ups by the agent.

MPICH beside this Python. ``init_ms``: the median of 20 launches of two ranks on this machine under a file of at most
256 rules of broadcasts, those that a job of 2,048 x 12 gains most from, less that of as many without a file, by turns.
``init_file_kb``: the size of its files. Needs two idle cores.

``lookups_per_node_N``, by strace, on file systems that nodes share: paths that a rank opens, follows or asks about
outside of the node's own directories until it has started, in a job of N nodes with a rank each. They are to be as many
on many nodes as on few. One rank is there: a process manager answers it for all others in the words of PMI-1, with what
it said of itself. Nothing is told without strace.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import median

from colltune.bench.backends import open_backend
from colltune.core.rules import RuleSet
from colltune.machine.compile import build
from colltune.store.tuning import write_files
from harness import compiled, mpi_beside, printed_number

LAUNCHES, RANKS, RULES = 20, 2, 256
SOURCE = Path(__file__).parent / "native" / "init_time.c"
NODES = (100, 2048)
_STARTED_S = 10.0  # a rank that asks for nothing in this time waits for the others
_LOOKUP = re.compile(r'^(?:\d+ +)?\w+\((?:AT_FDCWD, )?"([^"]*)"', re.MULTILINE)
_LOCAL = ("/dev", "/etc", "/lib", "/proc", "/run", "/sys", "/usr/lib")
_ANSWERS = {
    "init": "response_to_init pmi_version=1 pmi_subversion=1",
    "get_maxes": "maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
    "get_appnum": "appnum appnum=0",
    "get_my_kvsname": "my_kvsname kvsname=job",
    "put": "put_result",
    "barrier_in": "barrier_out",
}


def scale_start(rules: RuleSet) -> dict[str, float]:
    mpi = mpi_beside()
    emitter = open_backend(mpi).emitter
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        program = compiled(mpi.mpicc, SOURCE, place / "init_time")
        files = emitter.emit([rules])
        write_files(place, files, durable=False)
        named = {n: path for n, path in emitter.environment(place).items() if Path(path).name in files}
        command = [str(mpi.mpiexec), "-n", str(RANKS), str(program)]
        took: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(2 * LAUNCHES):
            with_file = bool(turn % 2)
            environment = {**os.environ, **(named if with_file else {})}
            took[with_file].append(printed_number(command, environment))
    return {
        "init_ms": round(median(took[True]) - median(took[False]), 2),
        "init_plain_ms": round(median(took[False]), 2),
        "init_file_kb": round(sum(map(len, files.values())) / 1024, 1),
    }


def scale_lookups() -> dict[str, float]:
    if shutil.which("strace") is None:
        return {}
    mpi = mpi_beside()
    agent = build(mpi.mpicc, "agent", None)
    return {f"lookups_per_node_{nodes}": looked_up(agent, nodes) for nodes in NODES}


def looked_up(agent: Path, nodes: int) -> int:
    ours, its = socket.socketpair()
    with ours, its, tempfile.TemporaryDirectory() as place:
        job = {"PMI_FD": str(its.fileno()), "PMI_RANK": "0", "PMI_SIZE": str(nodes), "MPIR_CVAR_NOLOCAL": "1"}
        command = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=file", "-o", f"{place}/trace", str(agent)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        environment = {**os.environ, **job}
        rank = subprocess.Popen(command, env=environment, pass_fds=[its.fileno()], start_new_session=True, **quiet)
        try:
            serve(ours, nodes)
            if rank.poll() is not None:
                raise RuntimeError(f"the agent did not start on {nodes} nodes")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(rank.pid, signal.SIGKILL)  # strace and the agent
            rank.wait()
        trace = Path(f"{place}/trace").read_text(errors="replace")
    return sum(not path.startswith(_LOCAL) for path in _LOOKUP.findall(trace))


def serve(rank: socket.socket, nodes: int) -> None:
    """Answers until nothing more is asked for."""
    rank.settimeout(_STARTED_S)
    known = {"PMI_process_mapping": f"(vector,(0,{nodes},1))"}
    with rank.makefile("rw") as lines, suppress(TimeoutError):
        for line in lines:
            asked = dict(word.split("=", 1) for word in line.split())
            if asked["cmd"] == "put":
                known[asked["key"]] = asked["value"]
            answer = _ANSWERS.get(asked["cmd"]) or of_others(asked, known, nodes)
            lines.write(f"cmd={answer}{'' if ' rc=' in answer else ' rc=0'}\n")
            lines.flush()


def of_others(asked: dict[str, str], known: dict[str, str], nodes: int) -> str:
    """The size of the job, or the value of a key; what another rank would have said is what rank 0 did."""
    if asked["cmd"] == "get_universe_size":
        return f"universe_size size={nodes}"
    key = asked["key"]
    own = [key, *(f"{key[: number.start()]}0{key[number.end() :]}" for number in re.finditer(r"\d+", key))]
    value = next((known[one] for one in own if one in known), None)
    return "get_result rc=-1 msg=unknown" if value is None else f"get_result value={value}"
