"""`colltune study train`: a model of other clusters, from their tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.core.extras import extra

if TYPE_CHECKING:
    from colltune.core.hardware import Hardware
    from colltune.predict.table import Label


def train(
    data: Annotated[list[Path], typer.Argument(help="Tables of best algorithms, or of times.", show_default=False)],
    out: Annotated[Path, typer.Option(help="File for the model.")] = Path("model.npz"),
    hardware: Annotated[
        Path | None, typer.Option(help="CSV of each cluster's features, as `colltune doctor --features` names them.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare models, splits and features as PML-MPI does; takes minutes.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
) -> None:
    """Learn from other clusters' tables which algorithm suits which machine: the model that `predict` uses.

    Forests of best algorithms propose. Where two clusters measured one collective, a model of times judges; without
    one, that which colltune ships does.
    """
    from colltune.predict.table import read_hardware, read_tables
    from colltune.predict.train import train_into

    extra("sklearn", "training")
    features = read_hardware(hardware) if hardware else {}
    if compare:
        _compare(read_tables(data)[0], features, seed)
    train_into(out, data, features, seed, typer.echo)
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


def _compare(labels: Sequence[Label], features: dict[str, Hardware], seed: int) -> None:
    """The paper's tables II and III and its ranking of features, ours beside them."""
    from colltune.predict import classify
    from colltune.predict.splits import Split, ceiling, parts

    for collective in sorted({label.scenario.collective for label in labels}):
        own = [label for label in labels if label.scenario.collective == collective]
        rows = classify.labelled_rows(own, features)
        typer.echo(f"{collective}: accuracy on 30% held back at random, and AUC in cross-validation")
        paper = classify.PAPER_MODELS.get(collective, {})
        held = list(parts(own, Split.RANDOM, seed))
        for name, make in classify.MODELS.items():
            right, area = classify.accuracy(rows, held, make, seed), classify.area_under_curve(rows, make, seed)
            beside = f"; the paper's {paper[name]:.1%}" if name in paper else ""
            typer.echo(f"  {name:<12} {right:.1%} (AUC {area:.3f}){beside}")
        typer.echo("  the extra trees, which are shipped, by what is held back")
        for split, right in classify.split_accuracies(own, rows, classify.make_trees, seed).items():
            said = classify.PAPER_SPLITS.get(collective, {}).get(split)
            typer.echo(f"  {split.value:<12} {right:.1%}" + (f"; the paper's {said:.1%}" if said else ""))
        typer.echo(f"  two tables of one cluster agree on {ceiling(own):.1%}")
        weights = classify.importances(rows, seed)
        top = ", ".join(f"{name} {weight:.2f}" for name, weight in list(weights.items())[:5])
        typer.echo(f"  decrease of Gini impurity: {top}")
