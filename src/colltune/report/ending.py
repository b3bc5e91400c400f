"""What a tuning came to, in ten lines of 80 columns: gained, where, how sure, what was not tried, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import NOT_WORTH, Verdict
from colltune.core.scenario import Scenario
from colltune.core.summary import Summary
from colltune.core.units import format_budget, format_count, format_duration, format_size, format_times
from colltune.report.curves import CurvePoint, curve_points, largest_call
from colltune.report.findings import Findings
from colltune.report.headline import by_gain, confidence_text, headline
from colltune.report.story import format_extent

WIDTH, MOST_LINES = 80, 10
_LABEL = 11
# What is named, from the most to the least that fits: regions, collectives, and whether shares of time are left out.
_SHORTER = ((2, 3, False), (1, 3, False), (1, 3, True), (1, 2, True), (1, 1, True), (0, 1, True))


def ending(findings: Findings, width: int = WIDTH) -> list[str]:
    """At most ``MOST_LINES`` lines of at most ``width`` characters; no word and no number is broken."""
    for regions, collectives, brief in _SHORTER:
        parts = _parts(findings, regions, collectives, brief=brief)
        lines = [line for label, text in parts for line in _wrapped(label, text, width)]
        if len(lines) <= MOST_LINES:
            break
    return lines


def wrapped(text: str, width: int = WIDTH) -> str:
    """``text`` in lines of at most ``width`` characters; no word and no number is broken."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _parts(findings: Findings, named: int, collectives: int, *, brief: bool) -> Iterator[tuple[str, str]]:
    """Label and text. ``named``: regions that are shown by themselves. ``brief``: no shares of time."""
    summary = findings.summary
    kept = findings.regions(Verdict.KEPT)
    if summary.disturbed_text:
        yield "not calm", summary.disturbed_text
    yield "gained", headline(findings, collectives)
    points = curve_points(findings) if kept and named else {}
    for number, region in enumerate(by_gain(findings, kept)[:named]):
        yield "" if number else "where", _region_text(region, points)
    if kept:
        yield "how sure", f"{format_extent(kept)} proven with {_certainty(findings, kept)}"
    if provisional := findings.regions(Verdict.PROVISIONAL):
        yield "unproven", f"{format_extent(provisional)}, provisional: --provisional loads them"
    if refused := findings.regions(Verdict.REFUSED):
        yield "refused", f"{format_extent(refused)}: looked faster, and not proven to be"
    if untried := findings.regions(Verdict.NOT_TRIED):
        yield "not tried", f"{format_extent(untried)}: {_missing(summary, untried)}"
    if summary.reproducible:
        yield "equal bits", f"{', '.join(summary.reproducible)}: one algorithm for all sizes of a shape"
    yield "took", _cost(findings, brief=brief)


def _missing(summary: Summary, untried: Sequence[JudgedRegion]) -> str:
    if summary.interrupted:
        return "the job was ended first"
    if all(region.reason == NOT_WORTH for region in untried):
        return "left to later jobs, not enough gain for the time"
    if summary.budget_for_all_s is None:
        return "the budget ended first"
    return f"--budget {format_budget(summary.budget_for_all_s)} would be enough for all"


def _region_text(region: JudgedRegion, points: Mapping[Scenario, CurvePoint]) -> str:
    largest = largest_call([points[s] for s in region.scenarios if s in points])
    times = ""
    if largest is not None and largest.default is not None and largest.tuned is not None:
        at = "timed"
        if len(region.decisions) > 1:
            size = "" if region.collective == "barrier" else f", {format_size(largest.scenario.size_bytes)}"
            at = f"largest call, {largest.scenario.nodes} x {largest.scenario.ppn}{size}"
        times = f"; {at}: {format_times(largest.default.time_s, largest.tuned.time_s)}"
    heaps = f"; {region.by_heap}" if region.by_heap else ""
    mean = " on average" if len(region.decisions) > 1 else " in the proof"
    cut = ", ratios count as 4 at most" if any(one.cut for one in region.decisions) else ""
    bound = f"(at least {region.low:.2f}{cut})"
    return f"{region.place}: {region.choice} {region.speedup:.2f}x{mean} {bound}{times}{heaps}"


def _certainty(findings: Findings, kept: Sequence[JudgedRegion]) -> str:
    sure = confidence_text(findings, [one for region in kept for one in region.decisions])
    remark = findings.summary.disturbance.remark if findings.summary.disturbance else ""
    but = f"; {remark}" if remark else ""
    return f"{sure}; the least bound is {min(region.low for region in kept):.2f}x{but}"


def _cost(findings: Findings, *, brief: bool) -> str:
    summary, here = findings.summary, findings.environment
    nodes, ppn = summary.job or (here.nodes, here.ppn)
    share = summary.share
    inside = ""
    if share.inside_collectives_s > 0.0 and not brief:
        outside = 1.0 - share.inside_collectives_s / max(share.wall_s, share.inside_collectives_s)
        launches = format_count(share.launches, "launch", "launches")
        inside = f" in {format_duration(share.wall_s)} and {launches}, {outside:.0%} outside the measured collectives"
    core_hours = summary.total_s * nodes * ppn / 3600.0
    whole = f"{format_duration(summary.total_s)} with the proof, {core_hours:.3g} core-hours"
    return f"{format_count(summary.samples, 'measurement')}{inside}; {whole}"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    indent = " " * _LABEL
    return textwrap.wrap(
        text,
        width,
        initial_indent=f"{label:<{_LABEL}}",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
