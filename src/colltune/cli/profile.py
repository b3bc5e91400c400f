"""`colltune profile`: what collectives an application calls, and whether tuning them can pay."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from colltune.core.errors import InputError

_EXAMPLE = "Write: colltune profile --out app.json -- mpiexec -n 4 ./app"


def profile(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="File for the profile.")] = Path("app.json"),
    mpiexec: Annotated[
        str | None, typer.Option(help="mpiexec of the application's MPI, where the command does not start with it.")
    ] = None,
) -> None:
    """Run an MPI program and note its collective calls: colltune profile --out app.json -- mpiexec -n 4 ./app.

    `colltune profile show app.json` prints where the time goes and whether tuning can pay. The program may be in C,
    Fortran or Python; it must use its MPI as a shared library. The exit code is the program's.
    """
    command = list(context.args)
    if command[:1] == ["show"]:
        show_profile(command[1:])
        return
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        raise InputError("there is no command to profile", _EXAMPLE)
    raise typer.Exit(_run_profiled(command, out, mpiexec))


def _run_profiled(command: Sequence[str], out: Path, mpiexec: str | None) -> int:
    """Runs ``command`` with the library in it and prints the profile, which is also in ``out``. The exit code."""
    from colltune.cli.profile_show import print_profile
    from colltune.session.application.measure_run import profile_run

    done = profile_run(command, out, os.environ, mpiexec)
    if done.profile is None:
        print(f"colltune: {done.why_none}", file=sys.stderr)
        return done.exit_code or 2
    try:
        print_profile(done.profile, out, brief=True)
    except OSError:
        # Nobody reads what we print, as in `colltune profile ... | head`; the exit code stays the application's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return done.exit_code


def show_profile(arguments: Sequence[str]) -> None:
    """Prints a profile that was taken earlier: what follows `show` names it."""
    from colltune.cli.profile_show import print_profile
    from colltune.profile.profile_files import load_profile

    if len(arguments) != 1:
        raise InputError("one profile is shown at a time", "Write: colltune profile show app.json")
    path = Path(arguments[0])
    print_profile(load_profile(path), path, brief=False)
