"""`colltune doctor`: what is here, what can be tuned, and what cannot, with the reason."""

from __future__ import annotations

import os

from colltune.cli.console import echo
from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, ThreadLevel


def doctor(
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
    thread_level: ThreadLevel = "single",
) -> None:
    """Say which MPI, launcher and job are found, and what can be tuned here."""
    from colltune.bench.workbench import MachineOptions
    from colltune.session.doctor import diagnose

    diagnose(MachineOptions(mpiexec, hostfile, nodes, ppn, thread_level), os.environ, echo)
