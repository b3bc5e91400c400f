"""`colltune diff`: where two tunings decide differently."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import Tuned


def diff(
    tuned: Tuned,
    other: Annotated[Path, typer.Argument(help="The directory to compare it with.", show_default=False)],
) -> None:
    """Say where the decisions of two tunings differ. Exit code 0: nowhere, 1: somewhere, 2: one cannot be read."""
    from colltune.cli.terminal import make_console
    from colltune.report.diff import decisions_table, environments_table
    from colltune.session.diff import diff as run_diff

    found, names = run_diff(tuned, other), (str(tuned), str(other))
    console = make_console()
    if found.environments:
        console.print(environments_table(found.environments, names))
        console.print()
    for collective, number in found.untuned.items():
        console.print(f"{collective} was tuned in {names[number - 1]} only; elsewhere it is left to the default.")
    for collective in found.apart:
        console.print(f"{collective} cannot be compared: its rules compare different sizes in the two.")
    if found.decisions:
        console.print(decisions_table(found.decisions, names))
    if found.same:
        console.print("The same decisions.")
    raise typer.Exit(0 if found.same else 1)
