"""`colltune env`: the exports, for those who set their own environment."""

from __future__ import annotations

import os
import shlex
import sys

import typer

from colltune.cli.options import Tuned


def env(tuned: Tuned) -> None:
    """Print the exports that make MPI use a tuning: eval "$(colltune env tuned/)"."""
    from colltune.store.tuning import load_deployable

    for name, value in load_deployable(tuned).variables_at(tuned).items():
        line = f"export {name}={shlex.quote(value)}"
        # A path is given to the shell byte for byte, whatever the encoding of the terminal.
        sys.stdout.flush()
        typer.echo(os.fsencode(line))
