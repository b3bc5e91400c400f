"""How a program is started with libcolltune.so in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from colltune.machine.compile import PRELOAD, preload_variables
from colltune.mpi.program import forwarded

VARIABLE = "COLLTUNE_PROFILE"


def preload_environment(library: Path, profile: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with the library loaded first, and the file to write."""
    return {**environment, **profile_variables(library, profile, environment)}


def profile_variables(library: Path, profile: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What ``environment`` needs for that."""
    return {**preload_variables(library, environment), VARIABLE: str(profile.resolve())}


def preload_command(command: Sequence[str], mpi: str) -> list[str]:
    """``command`` such that the ranks on other nodes get the variables too, of which some launchers have to be told."""
    return [command[0], *forwarded(command[0], mpi, (PRELOAD, VARIABLE)), *command[1:]]
