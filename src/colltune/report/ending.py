"""What a tuning came to, in a dozen lines of 80 columns: this job's gains, smaller shapes, how sure, what stays out."""

import textwrap
from collections.abc import Iterator, Sequence

from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import Verdict, Why
from colltune.core.units import format_count, format_duration
from colltune.report.findings import Findings
from colltune.report.headline import changed_text, confidence_text, nothing_text, saved_share
from colltune.report.job import (
    ShapeGain,
    cost_text,
    format_calls,
    gains_table,
    job_shape,
    other_shapes_text,
    shape_gains,
    shape_text,
    shares_of_calls,
    speedups_of_calls,
)

WIDTH, MOST_LINES = 80, 12
_LABEL = 11
_OF_JOB = "this job"
# What is named, from the most to the least that fits: collectives, and whether shares of time are left out.
_SHORTER = ((4, False), (3, False), (3, True), (2, True), (1, True))


def ending(findings: Findings, width: int = WIDTH) -> list[str]:
    """At most ``MOST_LINES`` lines of at most ``width`` characters; no word and no number is broken."""
    gains = shape_gains(findings) if findings.summary.gated else []
    for collectives, brief in _SHORTER:
        lines: list[str] = []
        mine = _of_job(findings, gains)[:collectives]
        for label, text in told(findings, gains, collectives, brief=brief):
            lines += folded(text, width, f"{label:<{_LABEL}}", " " * _LABEL)
            if label == _OF_JOB and mine:
                lines += gains_table(mine).lines(width)
        if len(lines) <= MOST_LINES:
            break
    return lines


def folded(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """``text`` in lines of at most ``width`` characters, after ``first`` and ``rest``; no word or number is broken."""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def told(
    findings: Findings, gains: Sequence[ShapeGain], collectives: int, *, brief: bool = False
) -> Iterator[tuple[str, str]]:
    """Label and text of all that is told beside the table of ``gains``.

    ``collectives``: how many are named. ``brief``: no shares of time.
    """
    summary = findings.summary
    kept = findings.regions(Verdict.KEPT)
    if summary.disturbed_text:
        yield "not calm", summary.disturbed_text
    yield _OF_JOB, _job_text(findings, gains, collectives)
    if others := other_shapes_text(gains, job_shape(findings), collectives):
        yield "beside it", others
    if kept:
        yield "how sure", f"{changed_text(findings)}, {_certainty(findings, kept)}"
    if summary.gated and summary.decisions:
        decided, refused, left = shares_of_calls(findings)
        yield "its calls", f"{decided:.0%} of what the job calls is decided, {refused:.0%} refused, {left:.0%} open"
    if (saved := saved_share(findings, summary.having(Verdict.KEPT))) > 0.0:
        yield "saves", f"expected {saved:.1%} of the application's time"
    if provisional := _calls(findings, Verdict.PROVISIONAL):
        yield "unproven", f"{provisional}, provisional: --provisional loads them"
    if tried := _calls(findings, Verdict.REFUSED):
        yield "refused", f"{tried}: looked faster, and not proven to be"
    if untried := _calls(findings, Verdict.NOT_TRIED):
        yield "not tried", f"{untried}: {_missing(findings)}"
    if summary.reproducible:
        yield "equal bits", f"{', '.join(summary.reproducible)}: one algorithm for all sizes of a shape"
    yield "took", _cost(findings, brief=brief)


def _of_job(findings: Findings, gains: Sequence[ShapeGain]) -> list[ShapeGain]:
    whole = job_shape(findings)
    return [gain for gain in gains if gain.shape == whole]


def _job_text(findings: Findings, gains: Sequence[ShapeGain], collectives: int) -> str:
    if not gains:
        return nothing_text(findings)
    mine, where = _of_job(findings, gains), shape_text(job_shape(findings))
    if not mine:
        return f"{where}: the library decides as before"
    more = f"; {len(mine) - collectives} more in the report" if len(mine) > collectives else ""
    return f"{where}: {format_count(len(mine), 'collective')} faster{more}"


def _calls(findings: Findings, verdict: Verdict) -> str:
    count = len(findings.summary.having(verdict))
    return format_calls(count) if count else ""


def _missing(findings: Findings) -> str:
    summary, untried = findings.summary, findings.regions(Verdict.NOT_TRIED)
    if summary.interrupted:
        return "the job was ended first"
    if all(region.why is Why.NOT_WORTH for region in untried):
        return "left to later jobs, not enough gain for the time"
    if summary.budget_for_all_s is None:
        return "the budget ended first"
    now, later = speedups_of_calls(findings)
    more = f", and may bring {later:.2f} in place of {now:.2f} over all of its calls" if later >= now + 0.01 else ""
    return f"{summary.more_time} would be enough for all{more}"


def _certainty(findings: Findings, kept: Sequence[JudgedRegion]) -> str:
    decisions = [decision for region in kept for decision in region.decisions]
    remark = findings.summary.disturbance.remark if findings.summary.disturbance else ""
    least = min(region.speedup.low for region in kept)
    said = [
        f"with {confidence_text(findings, decisions)}",
        f"the least bound is {least:.2f}x",
    ]
    said += ["ratios count as 4 at most"] if any(decision.cut for decision in decisions) else []
    return "; ".join([*said, *([remark] if remark else [])])


def _cost(findings: Findings, *, brief: bool) -> str:
    share = findings.summary.share
    text = cost_text(findings)
    if share.inside_collectives_s <= 0.0 or brief:
        return text
    outside = 1.0 - share.inside_collectives_s / max(share.wall_s, share.inside_collectives_s)
    launches = format_count(share.launches, "launch", "launches")
    return f"{text}; measuring {format_duration(share.wall_s)} in {launches}, {outside:.0%} outside the collectives"
