"""`colltune report`: what a campaign found, as a page to look at or as text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import Tuned


def report(
    tuned: Tuned,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: report.html in the tuning.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print it on the terminal, and write nothing.")] = False,
) -> None:
    """Show what was gained and where, how sure that is, what was refused, and how it was measured."""
    from colltune.cli.console import make_console
    from colltune.explanation import load_findings
    from colltune.report.text import print_findings

    found = load_findings(tuned)
    if text:
        print_findings(found, make_console())
        return
    from colltune.native_build import cache_directory
    from colltune.report.html import PAGE, write_page

    typer.echo(f"wrote {write_page(found, out or tuned / PAGE, cache_directory(os.environ))}")
