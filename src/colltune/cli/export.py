"""`colltune export`: a tuning in another format."""

from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import Tuned


def export(
    tuned: Tuned,
    to: Annotated[str, typer.Option("--to", help="cvars.", show_default=False)],
    nodes: Annotated[int, typer.Option(min=0, help="For jobs of so many nodes alone. Default: for all alike.")] = 0,
    ppn: Annotated[int, typer.Option(min=0, help="With --nodes: so many ranks on each.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Directory for the files. Default: TUNED/export/FORMAT.")] = None,
) -> None:
    """Write a tuning in another format that its measurements support, such as MPICH 3's thresholds (cvars).

    With --nodes and --ppn, of one number of processes; colltune run takes the file of its job from the directory.
    """
    from colltune.session.export import export_to

    directory, exported = export_to(tuned, to, out, nodes, ppn)
    for name in exported.files:
        typer.echo(str(directory / name))
    for remark in exported.remarks:
        typer.echo(f"note: {remark}")
