"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from colltune.core.choice import DEFAULT, Choice
from colltune.core.judged_together import JudgedRegion
from colltune.core.scenario import Scenario
from colltune.core.text_table import TextTable
from colltune.core.units import format_duration, format_size


class VerifiedRow(Protocol):
    """A row of the verification; ``colltune.prove.compare.verdict.Comparison`` is one."""

    @property
    def scenario(self) -> Scenario: ...
    @property
    def choice(self) -> Choice: ...
    @property
    def a_s(self) -> float: ...
    @property
    def b_s(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def kept(self) -> VerifiedRow | None: ...
    @property
    def verdict(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A point that was measured again: speed-ups of a choice over the default, as proven or measured and now.

    ``least``, ``most``: of one launch. ``pace``: the default's time now over that of then. None: not known.
    """

    scenario: Scenario
    choice: Choice
    then: float | None
    now: float | None
    least: float | None
    most: float | None
    pace: float | None
    finding: str


def regions_table(regions: Iterable[JudgedRegion]) -> TextTable:
    """One row per region: where it is, its choice, its speed-up with the lower bound, and how many scenarios it has."""
    table = TextTable(
        (
            "collective",
            "nodes x ppn>",
            "message size>",
            "in place of the default",
            "mean speed-up>",
            "at least>",
            "scenarios>",
        )
    )
    for region in regions:
        table.add_row(region.collective, region.shape, region.sizes, *format_region_figures(region))
    return table


def format_region_figures(region: JudgedRegion) -> tuple[str, str, str, str]:
    """Choice, speed-up, its lower bound, and the count of scenarios."""
    return str(region.choice), f"{region.speedup:.2f}", f"{region.low:.2f}", str(len(region.decisions))


def comparisons_table(comparisons: Iterable[VerifiedRow], names: tuple[str, str] = ("default", "tuned")) -> TextTable:
    """One row per scenario: the times of two sides, by ``names``, their ratio with its interval, and the verdict.

    The ratio with a heap that keeps what is freed is beside it where any call meets page faults. Collective, nodes x
    ranks per node, and the choice where a rule decides any, head the rows that share them: a row fits a terminal.
    """
    rows = list(comparisons)
    by_heap = any(row.kept is not None for row in rows)
    by_rule = any(row.choice != DEFAULT for row in rows)
    figures = (*(f"{name}>" for name in names), "ratio>", "interval>", *(["heap keeps>"] if by_heap else []))
    table = TextTable(("size>", *figures, "verdict"))
    for where, some in groupby(rows, lambda row: _heading(row.scenario, row.choice if by_rule else None)):
        table.add_section(where)
        for row in some:
            table.add_row(
                _size(row.scenario),
                format_duration(row.a_s),
                format_duration(row.b_s),
                f"{row.ratio:.2f}",
                f"{row.low:.2f} to {row.high:.2f}",
                *([] if not by_heap else [""] if row.kept is None else [f"{row.kept.ratio:.2f}"]),
                row.verdict,
            )
    return table


def _heading(scenario: Scenario, choice: Choice | None) -> str:
    return f"{scenario.collective} {scenario.nodes} x {scenario.ppn}" + ("" if choice is None else f", {choice}")


def _size(scenario: Scenario) -> str:
    return format_size(scenario.size_bytes) if scenario.collective != "barrier" else ""


def drift_table(rows: Iterable[Rechecked]) -> TextTable:
    """One row per point, under its choice: the speed-up over the default then and now, and the verdict."""
    table = TextTable(("size>", "then>", "now>", "launches>", "default>", ""))
    for where, some in groupby(rows, lambda row: _heading(row.scenario, row.choice)):
        table.add_section(where)
        for row in some:
            table.add_row(
                _size(row.scenario),
                "" if row.then is None else f"{row.then:.2f}",
                "" if row.now is None else f"{row.now:.2f}",
                "" if row.least is None or row.most is None else f"{row.least:.2f} to {row.most:.2f}",
                "" if row.pace is None else f"x {row.pace:.2f}",
                row.finding,
            )
    return table
