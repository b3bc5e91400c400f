"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from colltune.core.units import format_size


@dataclass(frozen=True, slots=True)
class Gain:
    """A decision that departs from the default, with its speed-up and the bounds of that."""

    scenario: Scenario
    choice: Choice
    speedup: float
    low: float
    high: float


def gains_table(gains: Sequence[Gain]) -> Table:
    """One row per run of neighbouring sizes with one choice; the worst lower bound of the run is shown."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, justify in (
        ("collective", "left"),
        ("nodes x ppn", "right"),
        ("message size", "right"),
        ("instead of the default", "left"),
        ("speed-up", "right"),
        ("at least", "right"),
    ):
        table.add_column(header, justify=justify)  # type: ignore[arg-type]
    for run in _runs(gains):
        first, last = run[0].scenario, run[-1].scenario
        sizes = format_size(first.size_bytes)
        if last.size_bytes != first.size_bytes:
            sizes += f" to {format_size(last.size_bytes)}"
        speedups = sorted(gain.speedup for gain in run)
        table.add_row(
            first.collective,
            f"{first.nodes} x {first.ppn}",
            sizes if first.collective != "barrier" else "",
            str(run[0].choice),
            f"{speedups[0]:.2f}" if speedups[0] == speedups[-1] else f"{speedups[0]:.2f} to {speedups[-1]:.2f}",
            f"{min(gain.low for gain in run):.2f}",
        )
    return table


def _runs(gains: Iterable[Gain]) -> Iterator[list[Gain]]:
    run: list[Gain] = []
    for gain in sorted(gains, key=lambda g: g.scenario):
        if run and not _continues(run[-1], gain):
            yield run
            run = []
        run.append(gain)
    if run:
        yield run


def _continues(gain: Gain, following: Gain) -> bool:
    one, other = gain.scenario, following.scenario
    same_place = (one.collective, one.nodes, one.ppn) == (other.collective, other.nodes, other.ppn)
    return same_place and gain.choice == following.choice and other.size_bytes <= 2 * one.size_bytes
