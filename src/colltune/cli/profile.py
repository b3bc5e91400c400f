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
    raise typer.Exit(_run_profiled(command, out, mpiexec))


def _run_profiled(command: Sequence[str], out: Path, mpiexec: str | None) -> int:
    """Runs ``command`` with the library in it and prints the profile, which is also in ``out``. The exit code."""
    from colltune.cli.profile_show import print_profile
    from colltune.session.application.profile_run import profile_run

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


def show_profile(path: Path, plot: Path | None) -> None:
    """Prints a profile that was taken earlier."""
    from colltune.cli.profile_show import print_profile
    from colltune.profile.profile_files import load_profile

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
