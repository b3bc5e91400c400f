"""`colltune env`: the exports, for those who set their own environment."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from colltune.cli.options import Tuned


def env(
    tuned: Tuned,
    provisional: Annotated[
        bool, typer.Option("--provisional", help="Also use decisions that a job which was ended left unproven.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say where the tuning changes nothing.")] = False,
) -> None:
    """Print the exports that make MPI use a tuning: eval "$(colltune env tuned/)".

    Nothing is printed, and the exit code is 2, where the mpiexec on PATH, or if there is none the MPI that was tuned,
    is not the build that was tuned.
    """
    from colltune.deploy.applied import put_in_force
    from colltune.session.application.run_application import left_out_text
    from colltune.session.own_settings import effect_lines
    from colltune.store.tuning import load_deployable

    tuning = load_deployable(tuned, provisional=provisional)
    force = put_in_force(tuned, tuning, os.environ)
    unsure = force.require_mpi_here()
    told = [f"warning: {unsure}"] if unsure else []
    told += [left_out_text(tuning.left_out)] if tuning.left_out else []
    for text in () if quiet else (*told, *effect_lines(force, (), force.obstacles(()))):
        typer.echo(f"colltune: {text}", err=True)
    for name, value in force.variables.items():
        line = f"export {name}={shlex.quote(value)}"
        # A path is given to the shell byte for byte, whatever the encoding of the terminal.
        sys.stdout.flush()
        typer.echo(os.fsencode(line))
