"""`colltune env`: the exports, for those who set their own environment."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import Tuned
from colltune.core.errors import InputError


def env(
    tuned: Tuned,
    provisional: Annotated[
        bool, typer.Option("--provisional", help="Also use decisions that a job which was ended left unproven.")
    ] = False,
    mpiexec: Annotated[
        str | None,
        typer.Option(help="mpiexec of the MPI that was tuned; the first on PATH from then on. Default: that on PATH."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say where the tuning changes nothing.")] = False,
) -> None:
    """Print the exports that make MPI use a tuning: eval "$(colltune env tuned/)".

    Nothing is printed, and the exit code is 2, where the mpiexec given or on PATH, or if there is none the MPI that was
    tuned, is not the build that was tuned.
    """
    from colltune.deploy.applied import put_in_force
    from colltune.session.application.run_application import left_out_text
    from colltune.session.own_settings import effect_lines
    from colltune.store.tuning import load_deployable

    if mpiexec and shutil.which(mpiexec) is None:
        raise InputError(f"--mpiexec {mpiexec} is not a program on this machine", "Give the path of an mpiexec")
    tuning = load_deployable(tuned, provisional=provisional)
    force = put_in_force(tuned, tuning, os.environ)
    unsure = force.check_mpi([mpiexec]) if mpiexec else force.mpi.check_here()
    notes = [f"warning: {unsure}"] if unsure else []
    if mpiexec and (name := Path(mpiexec).name) != "mpiexec":
        notes.append(f"start your programs by {name}")
    notes += [left_out_text(tuning.left_out)] if tuning.left_out else []
    for text in () if quiet else (*notes, *effect_lines(force, (), force.obstacles(()))):
        typer.echo(f"colltune: {text}", err=True)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in force.variables.items()]
    if mpiexec and (first := _first_on_path(mpiexec)):
        lines.append(f'export PATH={shlex.quote(first)}:"$PATH"')
    for line in lines:
        # A path is given to the shell byte for byte, whatever the encoding of the terminal.
        sys.stdout.flush()
        typer.echo(os.fsencode(line))


def _first_on_path(mpiexec: str) -> str:
    """The directory that has to come first on PATH for the name of ``mpiexec`` to start it; "" where it does."""
    program = Path(shutil.which(mpiexec) or mpiexec).absolute()
    by_name = shutil.which(program.name)
    return "" if by_name is not None and Path(by_name).resolve() == program.resolve() else str(program.parent)
