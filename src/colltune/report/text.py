"""The report for a terminal: the same findings without a browser."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from colltune.core.choice import DEFAULT
from colltune.core.units import format_size
from colltune.report.findings import Findings
from colltune.report.story import environment_rows, summary_sentences, where
from colltune.report.tables import gains_table

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def print_findings(findings: Findings, console: Console) -> None:
    """Prints summary, selection maps, gains, refusals and environment."""
    for sentence in summary_sentences(findings):
        console.print(sentence, markup=False)
    for name in findings.rule_sets:
        _print_map(findings, name, console)
    if findings.gains:
        console.print()
        console.print(gains_table(findings.gains))
    for word in ("provisional", "refused", "not tried"):
        found = [decision for decision in findings.decisions if decision.verdict == word]
        if found:
            console.print(f"\n{word}")
        for decision in found:
            console.print(f"  {where(decision)} {decision.choice}: {decision.reason}", markup=False)
    console.print("\nenvironment")
    for label, value in environment_rows(findings):
        console.print(f"  {label}: {value}", markup=False)


def _print_map(findings: Findings, collective: str, console: Console) -> None:
    """Sizes down, shapes across: terminals are taller than wide, and jobs have fewer shapes than sizes."""
    cells = {(c.scenario.size_bytes, c.scenario.nodes, c.scenario.ppn): c.chosen for c in findings.cells(collective)}
    names = sorted({choice for choice in cells.values() if choice != DEFAULT})
    if not names:
        return
    letter = {DEFAULT: "."} | dict(zip(names, _LETTERS, strict=False))
    shapes = sorted({(n, p) for _, n, p in cells})
    table = Table(box=None, pad_edge=False, title=f"{collective}: nodes x ppn across", title_justify="left")
    table.add_column("size", justify="right")
    for nodes, ppn in shapes:
        table.add_column(f"{nodes}x{ppn}", justify="center")
    for size in sorted({s for s, _, _ in cells}):
        marks = [letter.get(cells[size, n, p], "*") if (size, n, p) in cells else "" for n, p in shapes]
        table.add_row(format_size(size), *marks)
    console.print()
    console.print(table)
    legend = ", ".join(f"{letter.get(choice, '*')} {choice}" for choice in names)
    console.print(f". the library's own choice, {legend}", markup=False)
