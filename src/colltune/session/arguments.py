"""What a caller may say, by name: the command line and the Python interface take the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions

PathLike = str | os.PathLike[str]


class MachineArguments(TypedDict, total=False):
    """Where to run; what is not given is found, or is that of the tuning."""

    mpiexec: str | None
    hostfile: PathLike | None
    nodes: int | None
    ppn: int | None


def machine_options(arguments: MachineArguments, thread_level: str = "single") -> MachineOptions:
    """The same for a workbench."""
    from colltune.bench.workbench import MachineOptions

    hostfile = arguments.get("hostfile")
    return MachineOptions(
        arguments.get("mpiexec"),
        None if hostfile is None else Path(hostfile),
        arguments.get("nodes"),
        arguments.get("ppn"),
        thread_level,
    )
