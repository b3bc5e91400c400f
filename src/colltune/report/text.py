"""The report for a terminal: the same findings without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from colltune.core.choice import DEFAULT
from colltune.core.proven import Verdict
from colltune.core.text_table import TextTable
from colltune.core.units import format_size
from colltune.report.ending import WIDTH, ending
from colltune.report.findings import Findings
from colltune.report.headline import by_gain
from colltune.report.run_text import applications_table
from colltune.report.story import environment_rows, warnings
from colltune.report.tables import regions_table

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SIZE_WIDTH = 9  # of "1023 KiB" and the like


def print_findings(findings: Findings, console: Console) -> None:
    """Prints the same ten lines as the end of a tuning, then selection maps, gains, refusals and environment."""
    for line in ending(findings, min(WIDTH, console.width)):
        console.print(line, markup=False, soft_wrap=True)
    for sentence in warnings(findings):
        console.print(sentence, markup=False)
    for name in findings.rule_sets:
        _print_map(findings, name, console)
    if kept := findings.regions(Verdict.KEPT):
        console.print()
        ranked = by_gain(findings, kept)
        console.print(regions_table(ranked))
        for region in ranked:
            if region.by_heap:
                console.print(f"  {region.place}, {region.choice}: {region.by_heap}", markup=False)
    if findings.applications:
        console.print()
        console.print(applications_table(findings.applications))
    for verdict in (Verdict.PROVISIONAL, Verdict.REFUSED, Verdict.NOT_TRIED):
        found = findings.regions(verdict)
        if found:
            console.print(f"\n{verdict}")
        for region in found:
            console.print(f"  {region.place}, {region.choice}: {region.told}", markup=False)
    console.print("\nenvironment")
    for label, value in environment_rows(findings):
        console.print(f"  {label}: {value}", markup=False)


def _fitting(shapes: Sequence[tuple[int, int]], width: int) -> Iterator[Sequence[tuple[int, int]]]:
    """``shapes`` in as many tables as they need, each beside a column of sizes."""
    column = 2 + max(len(f"{nodes}x{ppn}") for nodes, ppn in shapes)
    most = max(1, (width - _SIZE_WIDTH) // column)
    for start in range(0, len(shapes), most):
        yield shapes[start : start + most]


def _print_map(findings: Findings, collective: str, console: Console) -> None:
    """Sizes down, shapes across: terminals are taller than wide, and jobs have fewer shapes than sizes."""
    cells = {(c.scenario.size_bytes, c.scenario.nodes, c.scenario.ppn): c.chosen for c in findings.cells(collective)}
    names = sorted({choice for choice in cells.values() if choice != DEFAULT})
    if not names:
        return
    letter = {DEFAULT: "."} | dict(zip(names, _LETTERS, strict=False))
    shapes = sorted({(n, p) for _, n, p in cells})
    sizes = sorted({s for s, _, _ in cells})
    console.print()
    for first, shown in enumerate(_fitting(shapes, console.width)):
        title = f"{collective}: nodes x ppn across" if first == 0 else f"{collective}, continued"
        table = TextTable(("size>", *(f"{nodes}x{ppn}>" for nodes, ppn in shown)), title)
        for size in sizes:
            marks = [letter.get(cells[size, n, p], "*") if (size, n, p) in cells else "" for n, p in shown]
            table.add_row(format_size(size), *marks)
        console.print(table)
    legend = ", ".join(f"{letter.get(choice, '*')} {choice}" for choice in names)
    console.print(f". the library's own choice, {legend}", markup=False)
