"""`colltune study train`: a model of other clusters, from their tables."""

from pathlib import Path
from typing import Annotated

import typer

from colltune.core.extras import extra


def train(
    data: Annotated[list[Path], typer.Argument(help="Tables of times, of two clusters or more.", show_default=False)],
    out: Annotated[Path, typer.Option(help="File for the model.")] = Path("model.npz"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
) -> None:
    """Learn from other clusters' times which choice is fast where: the model that `predict` uses."""
    extra("sklearn", "training")
    from colltune_study.training.train import train_into

    train_into(out, data, seed, typer.echo)
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.2f} MB")
