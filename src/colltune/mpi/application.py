"""How an application is started with a tuning in force; executes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

LAUNCHERS = frozenset({"mpiexec", "mpiexec.hydra", "mpirun"})


def tuned_command(
    command: Sequence[str], facts: Mapping[str, str], mpi: str, variables: Mapping[str, str], path: str | None
) -> list[str]:
    """``command`` such that its ranks see ``variables``. ``facts`` and ``mpi``: of the tuning's environment."""
    program = launcher_of(command, facts, path)
    return [program, *forwarded(program, mpi, variables), *command[1:]]


def forwarded(program: str, mpi: str, variables: Mapping[str, str]) -> list[str]:
    """Open MPI's launchers hand on their own variables to other nodes, and what they are told to."""
    if mpi != "openmpi" or Path(program).name not in LAUNCHERS:
        return []
    return [word for name in variables if not name.startswith("OMPI_") for word in ("-x", name)]


def launcher_of(command: Sequence[str], facts: Mapping[str, str], path: str | None) -> str:
    """The launcher of the MPI that was tuned stands in for a bare ``mpiexec`` that PATH does not have."""
    name = command[0]
    if name in LAUNCHERS and shutil.which(name, path=path) is None:
        beside = Path(facts.get("mpiexec", "")).parent / name
        if beside.is_file():
            return str(beside)
    return name
