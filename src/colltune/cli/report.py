"""`colltune report`: what a campaign found, as a page to look at or as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import AsJson, Tuned

if TYPE_CHECKING:
    from colltune.report.findings import Findings

_WIDTH = 140


def report(
    tuned: Tuned,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: report.html in the tuning.")] = None,
    text: Annotated[bool, typer.Option("--text", help="As text: on the terminal, or in the file --out.")] = False,
    picture: Annotated[Path | None, typer.Option(help="A summary in one picture: FILE.svg or FILE.png.")] = None,
    profile: Annotated[Path | None, typer.Option(help="Application whose gain to tell: its profile.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With --text: also maps of all shapes, every region, and the environment.")
    ] = False,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a ticket.")] = False,
    diff: Annotated[
        Path | None,
        typer.Option(help="Another tuning: say where the decisions differ. Exit code 0: nowhere, 1: somewhere."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look at the latest run with `run --measure` while it works.")
    ] = False,
    every: Annotated[str, typer.Option(help="With --watch: how often to look.")] = "10s",
    once: Annotated[bool, typer.Option("--once", help="With --watch: look once, and end.")] = False,
) -> None:
    """Show what was gained and where, how sure that is, what was refused, and how it was measured."""
    if diff is not None:
        from colltune.cli.report_diff import show_difference

        raise typer.Exit(0 if show_difference(tuned, diff) else 1)
    if watch:
        from colltune.cli.report_watch import watch_run

        watch_run(tuned, every, once=once)
        return
    if picture is not None:
        from colltune.session.make_page import make_picture

        typer.echo(f"wrote {make_picture(tuned, picture, profile)}")
        return
    if as_json or markdown:
        _print_record(tuned, profile, as_json=as_json)
        return
    if not text:
        from colltune.session.make_page import make_page

        typer.echo(f"wrote {make_page(tuned, out, profile)}")
        return
    from colltune.cli.terminal import make_console
    from colltune.report.text import print_findings
    from colltune.session.explain import load_findings

    found = load_findings(tuned, profile)
    if out is None:
        print_findings(found, make_console(), tuned, everything=everything)
    else:
        _write_text(found, out, tuned)
        typer.echo(f"wrote {out}")


def _print_record(tuned: Path, profile: Path | None, *, as_json: bool) -> None:
    from colltune.cli.as_json import print_json
    from colltune.report.record import report_markdown, report_record
    from colltune.session.explain import load_findings

    found = load_findings(tuned, profile)
    if as_json:
        print_json("report", report_record(found, tuned))
    else:
        print(report_markdown(found, tuned))


def _write_text(found: Findings, out: Path, tuned: Path) -> None:
    """Raises InputError where it cannot be written."""
    from rich.console import Console

    from colltune.core.errors import on_os_error
    from colltune.report.text import print_findings

    with on_os_error(f"cannot write {out}", "Give another file by --out"), out.open("w", encoding="utf-8") as file:
        print_findings(found, Console(file=file, width=_WIDTH, highlight=False, soft_wrap=True), tuned)
