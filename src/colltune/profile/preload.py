"""How a program is started with libcolltune.so in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

VARIABLE = "COLLTUNE_PROFILE"
# Launchers that hand on only the variables that they are told to.
_TELLING = frozenset({"mpirun", "mpiexec", "prterun", "orterun"})


def preload_environment(library: Path, profile: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with the library loaded first, and the file to write."""
    already = environment.get("LD_PRELOAD", "")
    return {
        **environment,
        "LD_PRELOAD": f"{library}:{already}" if already else str(library),
        VARIABLE: str(profile.resolve()),
    }


def preload_command(command: Sequence[str], openmpi: bool) -> list[str]:
    """``command`` such that the ranks on other nodes get the variables too: Open MPI's launchers must be told."""
    if openmpi and Path(command[0]).name in _TELLING:
        return [command[0], "-x", "LD_PRELOAD", "-x", VARIABLE, *command[1:]]
    return list(command)
