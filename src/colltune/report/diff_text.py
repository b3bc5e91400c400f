"""Where two tunings decide differently, and in what they were made differently: regions of calls in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colltune.core.decision_table import LEAST_RANKS, DecisionTable, Difference
from colltune.core.rules import Region, RuleSet, Span
from colltune.core.sample import PER_BLOCK, SizeBasis, element_bytes
from colltune.core.text_table import TextTable
from colltune.core.units import format_size, format_size_range


def format_region(region: Region, collective: str, basis: SizeBasis) -> str:
    """In words: ``"2 ranks per node, 3 to 8 ranks, 65 B to 4 KiB"``."""
    ppn, ranks = format_numbers(region.ppn, 1), format_numbers(region.ranks, LEAST_RANKS)
    ppn_text = f"{ppn} {'rank' if ppn == '1' else 'ranks'} per node" if ppn else "any number of ranks per node"
    ranks_text = f"{ranks} ranks" if ranks else "any number of ranks"
    sizes = format_sizes(region.size, collective, basis)
    return ", ".join(text for text in (ppn_text, ranks_text, sizes) if text)


def format_numbers(span: Span, least: int) -> str:
    """``"3 to 8"``, ``"2"``, ``"8 or more"``; empty for any number from ``least`` on."""
    low = max(span.low, least)
    if span.high is None:
        return "" if low == least else f"{low} or more"
    return str(low) if span.high == low else f"{low} to {span.high}"


def format_sizes(span: Span, collective: str, basis: SizeBasis) -> str:
    """The sizes of ``span`` in words; empty where size plays no part."""
    if basis is SizeBasis.NONE:
        return ""
    what = " in all blocks together" if basis is SizeBasis.TOTAL and collective in PER_BLOCK else ""
    if span.low <= element_bytes(collective):
        return f"any size{what}" if span.high is None else f"up to {format_size(span.high)}{what}"
    if span.high is None:
        return f"{format_size(span.low)} or more{what}"
    return f"{format_size_range(span.low, span.high)}{what}"


@dataclass(frozen=True)
class TuningDifference:
    """``environments``: (name, one, other) of what differs. ``decisions``: by collective, shape and size.

    ``apart``: collectives whose sizes mean different things in the two, so that they cannot be compared.
    ``untuned``: collectives that only one of the two tuned, with that one's number (1 or 2).
    """

    environments: Sequence[tuple[str, str, str]]
    decisions: Sequence[Difference]
    apart: Sequence[str]
    untuned: Mapping[str, int]

    @property
    def same(self) -> bool:
        """Whether every call gets the same decision. Environments may differ."""
        return not self.decisions and not self.apart


def compare_decisions(
    left: Mapping[str, RuleSet], right: Mapping[str, RuleSet]
) -> tuple[list[Difference], list[str], dict[str, int]]:
    """The differences, the collectives that cannot be compared, and those that only one of the two has.

    A collective without rules is left to the library, as one whose every rule is the default.
    """
    decisions: list[Difference] = []
    apart: list[str] = []
    untuned: dict[str, int] = {}
    for collective in sorted({*left, *right}):
        if collective not in left or collective not in right:
            untuned[collective] = 1 if collective in left else 2
        basis = (left.get(collective) or right[collective]).basis
        first, second = (
            DecisionTable.of(some[collective]) if collective in some else DecisionTable.always(collective, basis)
            for some in (left, right)
        )
        if first.basis is not second.basis:
            apart.append(collective)
        else:
            decisions += first.differences(second)
    return decisions, apart, untuned


def environments_table(rows: Sequence[tuple[str, str, str]], names: tuple[str, str]) -> TextTable:
    """One row per difference; ``names`` are the two tunings."""
    return TextTable(("environment", *names), rows=list(rows))


def decisions_table(rows: Sequence[Difference], names: tuple[str, str]) -> TextTable:
    """One row per region; what is not in it is decided alike."""
    table = TextTable(("collective", "ranks per node", "ranks", "message size", *names))
    for row in rows:
        table.add_row(
            row.collective,
            format_numbers(row.region.ppn, 1) or "any",
            format_numbers(row.region.ranks, LEAST_RANKS) or "any",
            format_sizes(row.region.size, row.collective, row.basis),
            str(row.one),
            str(row.other),
        )
    return table
