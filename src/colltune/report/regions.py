"""Regions of (ranks per node, ranks, size) in words."""

from colltune.core.decision_table import LEAST_RANKS
from colltune.core.rules import Region, Span
from colltune.core.sample import PER_BLOCK, REDUCTIONS, SizeBasis
from colltune.core.units import format_size


def format_region(region: Region, collective: str, basis: SizeBasis) -> str:
    """In words: ``"2 ranks per node, 3 to 8 ranks, 65 B to 4 KiB"``."""
    ppn, ranks = format_ppn(region.ppn), format_ranks(region.ranks)
    ppn_text = f"{ppn} {'rank' if ppn == '1' else 'ranks'} per node" if ppn else "any number of ranks per node"
    ranks_text = f"{ranks} ranks" if ranks else "any number of ranks"
    sizes = format_sizes(region.size, collective, basis)
    return ", ".join(text for text in (ppn_text, ranks_text, sizes) if text)


def format_ppn(span: Span) -> str:
    """``"3 to 8"``, ``"2"``, ``"8 or more"``; empty for any number."""
    return _format_numbers(span, 1)


def format_ranks(span: Span) -> str:
    """As ``format_ppn``."""
    return _format_numbers(Span(max(span.low, LEAST_RANKS), span.high), LEAST_RANKS)


def _format_numbers(span: Span, least: int) -> str:
    if span.high is None:
        return "" if span.low <= least else f"{span.low} or more"
    return str(span.low) if span.high == span.low else f"{span.low} to {span.high}"


def format_sizes(span: Span, collective: str, basis: SizeBasis) -> str:
    """The sizes of ``span`` in words; empty where size plays no part."""
    if basis is SizeBasis.NONE:
        return ""
    what = " in all blocks together" if basis is SizeBasis.TOTAL and collective in PER_BLOCK else ""
    least = 4 if collective in REDUCTIONS else 1
    if span.low <= least:
        return f"any size{what}" if span.high is None else f"up to {format_size(span.high)}{what}"
    if span.high is None:
        return f"{format_size(span.low)} or more{what}"
    if span.low == span.high:
        return f"{format_size(span.low)}{what}"
    return f"{format_size(span.low)} to {format_size(span.high)}{what}"
