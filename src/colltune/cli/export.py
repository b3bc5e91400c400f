"""`colltune export`: a tuning in another format."""

from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import Tuned


def export(
    tuned: Tuned,
    to: Annotated[str, typer.Option("--to", help="cvars.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Directory for the files. Default: TUNED/export/FORMAT.")] = None,
) -> None:
    """Write a tuning in another format that its measurements support, such as MPICH 3's thresholds (cvars)."""
    from colltune.session.export import export_to

    directory, exported = export_to(tuned, to, out)
    for name in exported.files:
        typer.echo(str(directory / name))
    for remark in exported.remarks:
        typer.echo(f"note: {remark}")
