"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from colltune.core.text_table import TextTable
from colltune.core.units import format_duration, format_size


class Comparison(Protocol):
    """A row of the verification; ``colltune.prove.verdict.Comparison`` is one."""

    @property
    def scenario(self) -> Scenario: ...
    @property
    def choice(self) -> Choice: ...
    @property
    def default_s(self) -> float: ...
    @property
    def tuned_s(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
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


@dataclass(frozen=True, slots=True)
class Gain:
    """A decision that departs from the default, with its speed-up and the bounds of that."""

    scenario: Scenario
    choice: Choice
    speedup: float
    low: float
    high: float


def gains_table(gains: Sequence[Gain]) -> TextTable:
    """One row per run of neighbouring sizes with one choice; the worst lower bound of the run is shown."""
    table = TextTable(
        ("collective", "nodes x ppn>", "message size>", "in place of the default", "speed-up>", "at least>")
    )
    for run in neighbouring(gains):
        scenario = run[0].scenario
        table.add_row(scenario.collective, f"{scenario.nodes} x {scenario.ppn}", format_sizes(run), *format_run(run))
    return table


def comparisons_table(comparisons: Iterable[Comparison]) -> TextTable:
    """One row per scenario: times with and without the file, the ratio with its interval, and the verdict."""
    table = TextTable(
        (
            "collective",
            "nodes x ppn>",
            "message size>",
            "choice",
            "default>",
            "tuned>",
            "ratio>",
            "interval>",
            "verdict",
        )
    )
    for row in comparisons:
        scenario = row.scenario
        table.add_row(
            scenario.collective,
            f"{scenario.nodes} x {scenario.ppn}",
            format_size(scenario.size_bytes) if scenario.collective != "barrier" else "",
            str(row.choice),
            format_duration(row.default_s),
            format_duration(row.tuned_s),
            f"{row.ratio:.2f}",
            f"{row.low:.2f} to {row.high:.2f}",
            row.verdict,
        )
    return table


def drift_table(rows: Iterable[Rechecked]) -> TextTable:
    """One row per point: the speed-up of its choice over the default then and now, and the verdict."""
    table = TextTable(
        ("collective", "nodes x ppn>", "message size>", "choice", "then>", "now>", "launches>", "default>", "")
    )
    for row in rows:
        scenario = row.scenario
        table.add_row(
            scenario.collective,
            f"{scenario.nodes} x {scenario.ppn}",
            format_size(scenario.size_bytes) if scenario.collective != "barrier" else "",
            str(row.choice),
            "" if row.then is None else f"{row.then:.2f}",
            "" if row.now is None else f"{row.now:.2f}",
            "" if row.least is None or row.most is None else f"{row.least:.2f} to {row.most:.2f}",
            "" if row.pace is None else f"x {row.pace:.2f}",
            row.finding,
        )
    return table


def neighbouring(gains: Iterable[Gain]) -> Iterator[list[Gain]]:
    """Runs of neighbouring sizes of one shape with one choice, in ascending order."""
    run: list[Gain] = []
    for gain in sorted(gains, key=lambda g: g.scenario):
        if run and not _continues(run[-1], gain):
            yield run
            run = []
        run.append(gain)
    if run:
        yield run


def format_sizes(run: Sequence[Gain]) -> str:
    """``"1 B to 32 KiB"``; empty for a barrier."""
    first, last = run[0].scenario, run[-1].scenario
    if first.collective == "barrier":
        return ""
    sizes = format_size(first.size_bytes)
    return sizes if last.size_bytes == first.size_bytes else f"{sizes} to {format_size(last.size_bytes)}"


def format_run(run: Sequence[Gain]) -> tuple[str, str, str]:
    """Choice, speed-ups, and the worst lower bound of them."""
    speedups = sorted(f"{gain.speedup:.2f}" for gain in run)
    shown = speedups[0] if speedups[0] == speedups[-1] else f"{speedups[0]} to {speedups[-1]}"
    return str(run[0].choice), shown, f"{min(gain.low for gain in run):.2f}"


def _continues(gain: Gain, following: Gain) -> bool:
    one, other = gain.scenario, following.scenario
    same_place = (one.collective, one.nodes, one.ppn) == (other.collective, other.nodes, other.ppn)
    return same_place and gain.choice == following.choice and other.size_bytes <= 2 * one.size_bytes
