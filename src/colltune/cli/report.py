"""`colltune report`: what a campaign found, as a page to look at or as text."""

from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import AsJson, Tuned
from colltune.core.errors import InputError


def report(
    tuned: Tuned,
    out: Annotated[Path | None, typer.Option(help="File for the page. Default: report.html in the tuning.")] = None,
    text: Annotated[bool, typer.Option("--text", help="As text on the terminal.")] = False,
    picture: Annotated[Path | None, typer.Option(help="A summary in one picture: FILE.svg or FILE.png.")] = None,
    profile: Annotated[Path | None, typer.Option(help="Application whose gain to tell: its profile.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With --text: also all shapes, every region, and the environment.")
    ] = False,
    as_json: AsJson = False,
    diff: Annotated[
        Path | None,
        typer.Option(help="Another tuning: say where the decisions differ. Exit code 0: nowhere, 1: somewhere."),
    ] = None,
) -> None:
    """Show what was gained and where, how sure that is, what was refused, and how it was measured."""
    if diff is not None:
        raise typer.Exit(0 if show_difference(tuned, diff) else 1)
    from colltune.session.explain import load_findings, make_page

    if picture is not None:
        from colltune.report.picture import curves_picture, require_picture

        require_picture(picture)
        typer.echo(f"wrote {curves_picture(load_findings(tuned, profile)).save(picture)}")
        return
    if as_json:
        from colltune.cli.console import print_json
        from colltune.report.text import report_record

        print_json("report", report_record(load_findings(tuned, profile), tuned))
        return
    if text and out is not None:
        raise InputError("--out is for the page", "Lead what --text prints into a file: --text --all > FILE")
    if not text:
        typer.echo(f"wrote {make_page(tuned, out, profile)}")
        return
    from colltune.cli.terminal import make_console
    from colltune.report.text import print_findings

    print_findings(load_findings(tuned, profile), make_console(), tuned, everything=everything)


def show_difference(tuned: Path, other: Path) -> bool:
    """Says where the decisions of two tunings differ, and whether they do nowhere."""
    from colltune.cli.terminal import make_console
    from colltune.report.diff_text import decisions_table, environments_table
    from colltune.session.explain import diff as run_diff

    difference, names = run_diff(tuned, other), (str(tuned), str(other))
    console = make_console()
    if difference.environments:
        console.print(environments_table(difference.environments, names))
        console.print()
    for collective, number in difference.untuned.items():
        console.print(f"{collective} was tuned in {names[number - 1]} only; elsewhere it is left to the default.")
    for collective in difference.apart:
        console.print(f"{collective} cannot be compared: its rules compare different sizes in the two.")
    if difference.decisions:
        console.print(decisions_table(difference.decisions, names))
    if difference.same:
        console.print("The same decisions.")
    return difference.same
