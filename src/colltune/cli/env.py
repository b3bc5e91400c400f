"""`colltune env`: the exports, for those who set their own environment."""

from __future__ import annotations

import shlex

import typer

from colltune.cli.options import Tuned


def env(tuned: Tuned) -> None:
    """Print the exports that make MPI use a tuning: eval "$(colltune env tuned/)"."""
    from colltune.store.tuning import load_deployable

    for name, value in load_deployable(tuned).variables_at(tuned).items():
        typer.echo(f"export {name}={shlex.quote(value)}")
