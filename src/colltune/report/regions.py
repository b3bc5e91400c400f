"""The decisions of rule sets as regions of (ranks per node, ranks, size), in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from colltune.core.choice import Choice
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import PER_BLOCK, REDUCTIONS, SizeBasis
from colltune.core.units import format_size

# A communicator of one rank has no collective worth a decision.
_LEAST_RANKS = 2


@dataclass(frozen=True, slots=True)
class Span:
    """The whole numbers from ``low`` to ``high``, both included; None is no upper bound."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Region:
    """Where a decision holds. ``size`` is in bytes of the rule set's basis."""

    ppn: Span
    ranks: Span
    size: Span


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two rule sets of ``collective`` decide differently."""

    collective: str
    basis: SizeBasis
    region: Region
    one: Choice
    other: Choice


def region_of(rule_set: RuleSet, rule: Rule) -> Region:
    """Where ``rule`` of ``rule_set`` decides: up to its bounds, and beyond those of the rules before it."""
    before = rule_set.rules[: rule_set.rules.index(rule)]
    ppn = [r.max_ppn for r in before if r.max_ppn is not None and r.max_ppn != rule.max_ppn]
    block = [r for r in before if r.max_ppn == rule.max_ppn]
    ranks = [r.max_ranks for r in block if r.max_ranks is not None and r.max_ranks != rule.max_ranks]
    sizes = [r.max_size for r in block if r.max_ranks == rule.max_ranks and r.max_size is not None]
    return Region(
        Span(max(ppn, default=0) + 1, rule.max_ppn),
        Span(max(max(ranks, default=0) + 1, _LEAST_RANKS), rule.max_ranks),
        Span(max(sizes, default=-1) + 1, rule.max_size),
    )


def differences(one: RuleSet, other: RuleSet) -> list[Difference]:
    """The regions in which the two decide differently, as large as they can be told; none where they agree.

    Raises ValueError for rule sets of different collectives, or whose sizes mean different things.
    """
    if (one.collective, one.basis) != (other.collective, other.basis):
        raise ValueError(f"{one.collective} and {other.collective} compare different sizes")
    rules = (*one.rules, *other.rules)
    ppn_spans = _spans((rule.max_ppn for rule in rules), 1)
    rank_spans = _spans((rule.max_ranks for rule in rules), _LEAST_RANKS)
    size_spans = _spans((rule.max_size for rule in rules), 0)
    found: list[Difference] = []
    for ppn in ppn_spans:
        # There are no fewer ranks than ranks per node.
        possible = [span for span in rank_spans if span.high is None or span.high >= ppn.low]
        of_ppn: list[Difference] = []
        for ranks in possible:
            row = [
                Difference(one.collective, one.basis, Region(ppn, ranks, size), a, b)
                for size in size_spans
                for a, b in [(_decide(one, ppn, ranks, size), _decide(other, ppn, ranks, size))]
                if a != b
            ]
            of_ppn = [*of_ppn, *_joined(row, "size")]
        found += _joined(of_ppn, "ranks")
    return _joined(found, "ppn")


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
    return _format_numbers(span, _LEAST_RANKS)


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


def _spans(bounds: Iterable[int | None], least: int) -> list[Span]:
    """The whole numbers from ``least``, cut behind each of ``bounds``."""
    ends = sorted({bound for bound in bounds if bound is not None and bound >= least})
    starts = [least, *(end + 1 for end in ends)]
    return [Span(start, end) for start, end in zip(starts, (*ends, None), strict=True)]


def _decide(rule_set: RuleSet, ppn: Span, ranks: Span, size: Span) -> Choice:
    """No bound lies inside the spans, so any of their numbers is as good as another."""
    return next(rule.choice for rule in rule_set.rules if rule.matches(ppn.low, ranks.low, size.low))


def _joined(items: Sequence[Difference], axis: str) -> list[Difference]:
    """Items that differ along ``axis`` only, and meet there, become one."""
    kept: list[Difference] = []
    for item in items:
        for index, earlier in enumerate(kept):
            span: Span = getattr(earlier.region, axis)
            following: Span = getattr(item.region, axis)
            meets = span.high is not None and span.high + 1 == following.low
            grown = Span(span.low, following.high)
            if meets and _at(earlier, axis, grown) == _at(item, axis, grown):
                kept[index] = _at(item, axis, grown)
                break
        else:
            kept.append(item)
    return kept


def _at(item: Difference, axis: str, span: Span) -> Difference:
    return replace(item, region=replace(item.region, **{axis: span}))
