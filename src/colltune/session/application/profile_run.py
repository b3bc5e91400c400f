"""Runs an application with the library that notes its collective calls, and gathers what its ranks left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.errors import InputError
from colltune.profile.application_profile import Profile
from colltune.profile.parts import part_files, read_parts
from colltune.profile.profile_files import save_profile
from colltune.session.application.run_child import run_child


@dataclass(frozen=True)
class ProfiledRun:
    """The application's own ``exit_code`` (128 + the signal that ended it), and its ``profile``.

    ``profile`` is None where no rank left one; ``why_none`` then says why.
    """

    exit_code: int
    profile: Profile | None
    why_none: str = ""


def profile_run(
    command: Sequence[str], out: Path, environment: Mapping[str, str], mpiexec: str | None = None
) -> ProfiledRun:
    """Runs ``command`` with the library in it; the profile is also in ``out``. Raises InputError where it cannot run.

    ``mpiexec``: of the application's MPI, where the command does not start with it.
    """
    from colltune.machine.compile import build_library, cache_directory
    from colltune.mpi.detect import mpi_at_hand
    from colltune.mpi.program import launcher_of
    from colltune.profile.profiled_start import preload_command, preload_environment

    _require_file(out)
    for old in part_files(out):
        old.unlink()
    installation = mpi_at_hand(command, environment, mpiexec=mpiexec)
    library = build_library(installation.mpicc, cache_directory(environment))
    arguments = [launcher_of(command, installation.mpiexec.parent, environment.get("PATH", "")), *command[1:]]
    arguments = preload_command(arguments, installation.library)
    code = run_child(arguments, preload_environment(library, out, environment))
    try:
        return ProfiledRun(code, gather_profile(out, command, f"{installation.library} {installation.version}"))
    except InputError as error:
        return ProfiledRun(code, None, str(error))


def gather_profile(out: Path, command: Sequence[str], mpi: str) -> Profile:
    """The profile of what the ranks left, which is then in ``out``. Raises InputError where they left nothing."""
    parts = part_files(out)
    found = replace(read_parts(parts), command=tuple(command), mpi=mpi)
    save_profile(out, found)
    for part in parts:
        part.unlink()
    return found


def _require_file(out: Path) -> None:
    if out.is_dir() or not out.resolve().parent.is_dir():
        raise InputError(f"cannot write the profile to {out}", "Give a file in a directory that exists by --out")
