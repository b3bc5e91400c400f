"""`colltune report`: what a campaign found, as a page to look at or as text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import Tuned

if TYPE_CHECKING:
    from colltune.report.findings import Findings

_WIDTH = 140


def report(
    tuned: Tuned,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: report.html in the tuning.")] = None,
    text: Annotated[bool, typer.Option("--text", help="As text: on the terminal, or in the file --out.")] = False,
) -> None:
    """Show what was gained and where, how sure that is, what was refused, and how it was measured."""
    from colltune.cli.console import make_console
    from colltune.report.text import print_findings
    from colltune.session.explain import load_findings

    found = load_findings(tuned)
    if text:
        if out is None:
            print_findings(found, make_console())
        else:
            _write_text(found, out)
            typer.echo(f"wrote {out}")
        return
    from colltune.machine.compile import cache_directory
    from colltune.report.html import PAGE, write_page

    typer.echo(f"wrote {write_page(found, out or tuned / PAGE, cache_directory(os.environ))}")


def _write_text(found: Findings, out: Path) -> None:
    """Raises InputError where it cannot be written."""
    from rich.console import Console

    from colltune.core.errors import InputError
    from colltune.report.text import print_findings

    try:
        with out.open("w", encoding="utf-8") as file:
            print_findings(found, Console(file=file, width=_WIDTH, highlight=False, soft_wrap=True))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}", "Give another file by --out") from error
