"""What the start of the agent looks up on file systems that nodes share: MPICH beside this Python, by strace.

``lookups_per_node_N``: paths that one rank opens, follows or asks about outside of the node's own directories, from
its start until its end, where each of N ranks is a node of its own; the most of all ranks. They are to be as many on
few nodes as on many. Nothing is told without strace.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from colltune.machine.compile import build
from colltune.mpi.detect import find_mpi

NODES = (2, 8)
_LOOKUP = re.compile(r'^\d+ +\w+\((?:AT_FDCWD, )?"([^"]*)"', re.MULTILINE)
_LOCAL = ("/dev", "/etc", "/lib", "/proc", "/run", "/sys", "/usr/lib")
_EACH = 'exec strace -f -qq -e trace=file -o "$0/$PMI_RANK" "$1"'


def scale_lookups() -> dict[str, float]:
    return {f"lookups_per_node_{nodes}": most_lookups(nodes) for nodes in NODES} if shutil.which("strace") else {}


def most_lookups(nodes: int) -> int:
    mpi = find_mpi(None, os.environ, python_bin=Path(sys.executable).parent)
    agent = build(mpi.mpicc, "agent", None)
    with tempfile.TemporaryDirectory() as place:
        command = [str(mpi.mpiexec), "-n", str(nodes), "sh", "-c", _EACH, place, str(agent)]
        environment = {**os.environ, "MPIR_CVAR_NOLOCAL": "1"}
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        traces = [path.read_text(errors="replace") for path in Path(place).iterdir()]
    return max(sum(not path.startswith(_LOCAL) for path in _LOOKUP.findall(trace)) for trace in traces)
