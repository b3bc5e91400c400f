"""`colltune profile`: what collectives an application calls, and whether tuning them can pay."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.core.errors import InputError

if TYPE_CHECKING:
    from colltune.mpi.installation import Installation
    from colltune.profile.application import Profile

_EXAMPLE = "Write: colltune profile --out app.json -- mpiexec -n 4 ./app"


def profile(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="File for the profile.")] = Path("app.json"),
    mpiexec: Annotated[
        str | None, typer.Option(help="mpiexec of the application's MPI, where the command does not start with it.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="With `show`: draw where the time goes, as .svg or .png.")] = None,
) -> None:
    """Run an MPI program and note its collective calls: colltune profile --out app.json -- mpiexec -n 4 ./app.

    `colltune profile show app.json` prints where the time goes and whether tuning can pay. The program may be in C,
    Fortran or Python; it must use its MPI as a shared library. The exit code is the program's.
    """
    command = list(context.args)
    if command[:1] == ["show"]:
        show_profile(*_shown(command[1:], plot))
        return
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        raise InputError("there is no command to profile", _EXAMPLE)
    code, _ = run_profiled(command, os.environ, out, mpiexec)
    raise typer.Exit(code)


def run_profiled(
    command: Sequence[str], environment: Mapping[str, str], out: Path, mpiexec: str | None = None
) -> tuple[int, Profile | None]:
    """Runs ``command`` with the library in it. Returns its exit code and the profile, which is also in ``out``."""
    from colltune.cli.profile_show import print_profile
    from colltune.machine.compile import build_library, cache_directory
    from colltune.mpi.application import launcher_of
    from colltune.mpi.installation import Library
    from colltune.profile.parts import part_files
    from colltune.profile.preload import preload_command, preload_environment

    _require_file(out)
    for old in part_files(out):
        old.unlink()
    installation = _installation(command, environment, mpiexec)
    library = build_library(installation.mpicc, cache_directory(environment))
    facts = {"mpiexec": str(installation.mpiexec)}
    arguments = [launcher_of(command, facts, environment.get("PATH", "")), *command[1:]]
    arguments = preload_command(arguments, installation.library is Library.OPENMPI)
    try:
        code = subprocess.run(arguments, env=preload_environment(library, out, environment), check=False).returncode
    except OSError as error:
        raise InputError(f"cannot run {arguments[0]}: {error.strerror}", "Check the command after --") from error
    code = 128 - code if code < 0 else code
    found = _gathered(out, command, f"{installation.library} {installation.version}")
    if found is None:
        return code or 2, None
    try:
        print_profile(found, out, brief=True)
    except OSError:
        # Nobody reads what we print, as in `colltune profile ... | head`; the exit code stays the application's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code, found


def _gathered(out: Path, command: Sequence[str], mpi: str) -> Profile | None:
    """The profile of what the ranks left, which is then in ``out``; None, with a line on stderr, if that is nothing."""
    from colltune.profile.files import save_profile
    from colltune.profile.parts import part_files, read_parts

    try:
        parts = part_files(out)
        found = replace(read_parts(parts), command=tuple(command), mpi=mpi)
    except InputError as error:
        print(f"colltune: {error}", file=sys.stderr)
        return None
    save_profile(out, found)
    for part in parts:
        part.unlink()
    return found


def finish_profile(out: Path, command: Sequence[str], mpi: str) -> None:
    """Gathers what the ranks left into ``out``, and says so; takes its folder away again where that is nothing."""
    import contextlib

    if _gathered(out, command, mpi) is None:
        with contextlib.suppress(OSError):
            out.parent.rmdir()
        return
    print(f"colltune: the profile of this run is {out}", file=sys.stderr)


def show_profile(path: Path, plot: Path | None) -> None:
    """Prints a profile that was taken earlier."""
    from colltune.cli.profile_show import print_profile
    from colltune.profile.files import load_profile

    found = load_profile(path)
    print_profile(found, path, brief=False)
    if plot is not None:
        from colltune.report.profile_chart import draw_profile

        draw_profile([(f"{one.collective} {one.communicator}", one.own_time_s, one.waiting_s or 0.0)
                      for one in found.by_time()], found.core_s, plot)  # fmt: skip


def _shown(arguments: Sequence[str], plot: Path | None) -> tuple[Path, Path | None]:
    """What follows `show`: the file, and --plot on either side of it."""
    rest = list(arguments)
    if "--plot" in rest:
        at = rest.index("--plot")
        plot = Path(rest[at + 1]) if at + 1 < len(rest) else None
        del rest[at : at + 2]
    if len(rest) != 1:
        raise InputError("one profile is shown at a time", "Write: colltune profile show app.json --plot app.svg")
    return Path(rest[0]), plot


def _require_file(out: Path) -> None:
    if out.is_dir() or not out.resolve().parent.is_dir():
        raise InputError(f"cannot write the profile to {out}", "Give a file in a directory that exists by --out")


def _installation(command: Sequence[str], environment: Mapping[str, str], mpiexec: str | None) -> Installation:
    from colltune.mpi.detect import find_mpi
    from colltune.mpi.launchers import is_launcher

    path = environment.get("PATH", "")
    there = is_launcher(command[0]) and shutil.which(command[0], path=path) is not None
    named = mpiexec or (command[0] if there else None)
    python_bin = Path(sys.executable).parent if sys.prefix != sys.base_prefix else None
    return find_mpi(named, environment, python_bin=python_bin)
