"""Tables for the terminal."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from colltune.core.choice import Choice
from colltune.core.interval import Interval
from colltune.core.judged_together import JudgedRegion
from colltune.core.scenario import Scenario
from colltune.core.text_table import TextTable
from colltune.core.units import format_size
from colltune.judge.wording import COLUMNS, cells


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A point that was measured again: speed-ups of a choice over the default, as proven or measured and now.

    ``now``: the median of the launches, between the least and the most of them, which miss it twice in 2^n where there
    are n. ``pace``: the default's time now over that of then. None: not known.
    """

    scenario: Scenario
    choice: Choice
    then: float | None
    now: Interval | None
    pace: float | None
    verdict: str


def regions_table(regions: Iterable[JudgedRegion]) -> TextTable:
    """One row per region: where it is, its choice, its mean speed-up and how many scenarios it has."""
    table = TextTable(
        ("collective", "nodes x ppn>", "message size>", "in place of the default", *COLUMNS, "scenarios>")
    )
    for region in regions:
        figures = str(region.choice), *cells(region.speedup), str(len(region.decisions))
        table.add_row(region.collective, region.shape, region.sizes, *figures)
    return table


def call_heading(scenario: Scenario, choice: Choice | None) -> str:
    """What heads the rows of one collective on one shape."""
    return f"{scenario.collective} {scenario.nodes} x {scenario.ppn}" + ("" if choice is None else f", {choice}")


def call_size(scenario: Scenario) -> str:
    """The message size; empty for a barrier."""
    return format_size(scenario.size_bytes) if scenario.collective != "barrier" else ""


def drift_table(rows: Iterable[Rechecked]) -> TextTable:
    """One row per point, under its choice: the speed-up over the default then and now, and the verdict."""
    table = TextTable(("size>", "then>", *COLUMNS, "default>", "verdict"))
    for where, some in groupby(rows, lambda row: call_heading(row.scenario, row.choice)):
        table.add_section(where)
        for row in some:
            table.add_row(
                call_size(row.scenario),
                "" if row.then is None else f"{row.then:.2f}",
                *cells(row.now),
                "" if row.pace is None else f"x {row.pace:.2f}",
                row.verdict,
            )
    return table
