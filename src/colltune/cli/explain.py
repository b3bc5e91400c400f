"""`colltune explain`: which rule decides one call, what runs, and why."""

from typing import Annotated

import typer

from colltune.cli.options import Tuned


def explain(
    tuned: Tuned,
    collective: Annotated[str, typer.Argument(help="The collective, such as allreduce.", show_default=False)],
    size: Annotated[
        str | None, typer.Option(help="Message size, such as 4KiB: one block of alltoall and the like, else all of it.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes. Default: those that were tuned.")] = None,
    ppn: Annotated[int | None, typer.Option("--ppn", min=1, help="Ranks per node. Default: as tuned.")] = None,
) -> None:
    """Say which rule decides a call, which algorithm runs, what the default is, and what was measured around it."""
    from colltune.cli.terminal import make_console
    from colltune.session.explain import explain_call

    typer.echo(explain_call(tuned, collective, size, nodes, ppn, make_console().width))
