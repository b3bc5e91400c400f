"""How an application is started with a tuning in force; executes nothing."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from colltune.mpi.installation import is_launcher
from colltune.mpi.libraries import record_of

# Programs that run the rest of their command line as it stands.
_WRAPPERS = frozenset(
    {"env", "nice", "ionice", "nohup", "setsid", "timeout", "stdbuf", "time", "taskset", "numactl", "chrt", "strace"}
)
# Programs that run what another file says.
_INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|lua|octave)[\d.]*|julia|Rscript|java")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def launcher_place(command: Sequence[str], is_one: Callable[[str], bool] = is_launcher) -> int | None:
    """Where the launcher stands in ``command``: first, or behind `env X=1` and the like; None where there is none."""
    searched = command if command and Path(command[0]).name in _WRAPPERS else command[:1]
    return next((at for at, word in enumerate(searched) if is_one(word)), None)


def is_interpreter(word: str) -> bool:
    return _INTERPRETER.fullmatch(Path(word).name) is not None


def given_by_wrapper(command: Sequence[str]) -> dict[str, str]:
    """The variables that `env X=1 ...` at the head of ``command`` sets."""
    if not command or Path(command[0]).name != "env":
        return {}
    end = launcher_place(command) or len(command)
    assigned = [word for word in command[1:end] if _ASSIGNMENT.match(word)]
    return dict(word.split("=", 1) for word in assigned)


def tuned_command(
    command: Sequence[str], beside: Path, mpi: str, variables: Mapping[str, str], path: str | None
) -> list[str]:
    """``command`` such that its ranks see ``variables``. ``mpi``: its library; ``beside``: as of ``launcher_of``."""
    place = launcher_place(command)
    if place is None:
        return list(command)
    path = given_by_wrapper(command).get("PATH", path)
    program = launcher_of(command[place:], beside, path)
    return [*command[:place], program, *forwarded(program, mpi, variables), *command[place + 1 :]]


def forwarded(program: str, mpi: str, variables: Iterable[str]) -> list[str]:
    """What tells a launcher that does not hand on all ``variables`` to other nodes to do so."""
    hands_on = record_of(mpi).hands_on
    if not hands_on or not is_launcher(program):
        return []
    return [word for name in variables if not name.startswith(hands_on) for word in ("-x", name)]


def launcher_of(command: Sequence[str], beside: Path, path: str | None) -> str:
    """The launcher in the directory ``beside`` stands in for a bare ``mpiexec`` that PATH does not have."""
    name = command[0]
    missing = is_launcher(name) and shutil.which(name, path=path) is None
    return str(beside / name) if missing and (beside / name).is_file() else name
