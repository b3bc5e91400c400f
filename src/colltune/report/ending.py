"""What a tuning came to, in one line and in a dozen of 80 columns: gains, smaller shapes, how sure, what stays out."""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import Decision, StopReason, Verdict, Why, launches_text
from colltune.core.sample import DEFAULT
from colltune.core.units import format_count, format_duration, format_size
from colltune.judge.wording import at_least
from colltune.machine.command_lines import run_command, use_command
from colltune.report.findings import Findings
from colltune.report.job import (
    ShapeGain,
    cost_text,
    format_calls,
    gains_table,
    job_shape,
    known_scenarios,
    other_shapes_text,
    shape_gains,
    shape_text,
    shares_of_calls,
    speedups_of_calls,
)

# Collectives that a headline names; what others gain is in the tables.
_NAMED = 3
# Clocks of simulated machines begin at zero: what is below a year is no date.
_SIMULATED_S = 365 * 86400.0


def headline(findings: Findings, most: int = _NAMED) -> str:
    """In one line what the whole job gains, ``most`` collectives by name, then what smaller shapes do.

    For example ``"8 nodes x 2 ranks per node: allreduce 1.53x (at least 1.31) from 512 KiB; 3 smaller shapes: bcast
    1.17x (at least 1.10); 8 of 41 shapes and sizes changed"``.
    """
    kept = findings.summary.having(Verdict.KEPT)
    if not kept or not findings.summary.gated:
        return nothing_text(findings)
    if not any(_is_said(findings, decision) for decision in kept):
        names = ", ".join(sorted({decision.scenario.collective for decision in kept}))
        return f"{names}: proven faster, in calls that no file of this library can tell apart; run --via live does"
    gains, whole = shape_gains(findings), job_shape(findings)
    mine = [gain for gain in gains if gain.shape == whole]
    shown = len(mine) if len(mine) == most + 1 else most  # a name takes no more room than "1 more collective"
    parts = [f"{gain.collective} {at_least(gain.gain)}{_extent(gain, findings)}" for gain in mine[:shown]]
    parts += [format_count(len(mine) - shown, "more collective")] if len(mine) > shown else []
    lines = [f"{shape_text(whole)}: {', '.join(parts) or 'the library decides as before'}"]
    lines += [text for text in [other_shapes_text(gains, whole, most)] if text]
    lines.append(changed_text(findings))
    if (saved := saved_share(findings, kept)) > 0.0:
        lines.append(f"expected {saved:.1%} of the application's time")
    return "; ".join(lines)


def nothing_text(findings: Findings) -> str:
    """The headline where nothing is proven."""
    names = ", ".join(findings.rule_sets)
    if how := findings.summary.predicted_text:
        return f"{names}: {how}"
    if not findings.summary.gated:
        return f"{names}: tuned without a proof, so calls may be slower"
    is_judged = findings.summary.disturbance is None or not findings.summary.disturbance.is_busy
    why = "nothing was proven faster" if is_judged else "on the busy machine nothing was judged"
    return f"The library's own choice stands everywhere for {names}: {why}"


def changed_text(findings: Findings) -> str:
    """``"8 of 41 shapes and sizes changed"``."""
    known = len(known_scenarios(findings))
    kept = findings.summary.having(Verdict.KEPT)
    named = sum(_is_said(findings, decision) for decision in kept)
    more = f" ({len(kept) - named} more by --via live alone)" if named < len(kept) else ""
    return f"{named} of {format_calls(known)} changed{more}"


def _is_said(findings: Findings, decision: Decision) -> bool:
    """Whether the rules that are handed over decide so: a file cannot say everything that is proven."""
    name = decision.scenario.collective
    return name in findings.only_live or findings.rule_sets[name].evaluate(decision.scenario) != DEFAULT


def steps_text(findings: Findings, directory: Path) -> list[str]:
    """`next_steps` as lines for a terminal of 80 columns. A command is whole, so that it can be copied."""
    lines = []
    for label, text in next_steps(findings, directory):
        if label == "use it":
            lines.append(f"{label:<10} {text}")
        else:
            lines += textwrap.wrap(f"{label:<10} {text}", WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False)
    return lines


def next_steps(findings: Findings, directory: Path) -> list[tuple[str, str]]:
    """What to do now: a label, and the sentence, or the command to copy. ``directory``: where the tuning is."""
    summary = findings.summary
    steps = []
    if not findings.environment.has_mpi:
        steps.append(("the rules", f"are read by no MPI: they are of {findings.environment.mpi} times"))
    elif findings.only_live:  # no file of this library says them
        live = run_command("--via", "live", directory.absolute(), mpiexec=findings.environment.mpiexec)
        steps.append(("use it", live))
    elif any(rules.departs for rules in findings.rule_sets.values()):
        steps.append(("use it", use_command(directory, findings.environment.mpiexec)))
    if summary.disturbance is not None and summary.disturbance.is_busy:
        steps.append(("next", "the same command again, when no other program uses these processors"))
    elif summary.interrupted:
        steps.append(("go on", "the job was ended first: the same command with --resume goes on and proves the rest"))
    elif untried := [region for region in findings.regions(Verdict.NOT_TRIED) if region.why is not Why.NOT_WORTH]:
        count = sum(len(region.decisions) for region in untried)
        steps.append(
            ("next", f"tune again with {summary.more_time}: it also tries {format_calls(count)} that looked faster")
        )
    if not steps and StopReason.BUDGET_SPENT in summary.reasons.values():
        # Nothing that looked faster was left out, but not all was looked at.
        steps.append(("next", f"tune again with {summary.more_time}: this one ended before enough was measured"))
    elif not steps and summary.gated:
        steps.append(("next", "nothing to do: the library's own choices are good here"))
    return steps


def saved_share(findings: Findings, decisions: list[Decision]) -> float:
    """Of the application's time, what ``decisions`` are expected to save; 0 without a profile."""
    shares = findings.shares
    return sum(shares.get(kept.scenario, 0.0) * (1.0 - 1.0 / kept.speedup.estimate) for kept in decisions)


def by_gain(findings: Findings, regions: Sequence[JudgedRegion]) -> list[JudgedRegion]:
    """The most gain first: what saves most of the application's time, where that is known, else the most speed-up."""
    return sorted(regions, key=lambda r: (saved_share(findings, list(r.decisions)), r.speedup.estimate), reverse=True)


def confidence_text(findings: Findings, kept: Sequence[Decision]) -> str:
    """``"99% confidence by 3 to 16 fresh launches"``; no confidence where times moved too far between launches."""
    counts = sorted({decision.launches for decision in kept if decision.launches})
    if not counts:
        by = ""
    elif len(counts) == 1:
        by = f" by {launches_text(counts[0])}"
    else:
        by = f" by {counts[0]} to {launches_text(counts[-1])} each"
    if not findings.is_steady:
        return f"times that moved too far for a confidence{by}"
    return ("99%" if any(decision.region is not None for decision in kept) else "99.5%") + " confidence" + by


def saved_by(findings: Findings, region: JudgedRegion) -> str:
    """``"1.2%"`` of the application's time; empty without a profile."""
    return f"{saved_share(findings, list(region.decisions)):.2%}" if findings.shares else ""


def facts(findings: Findings) -> list[str]:
    """Date, machine, MPI, job shape, how sure it is, what it took: a few words each."""
    here, summary = findings.environment, findings.summary
    began_s = findings.started_s if summary.since_s is None else summary.since_s
    when = datetime.fromtimestamp(began_s, UTC).strftime("%Y-%m-%d") if began_s > _SIMULATED_S else ""
    sure = ""
    if any(decision.region is not None for decision in summary.having(Verdict.KEPT)):
        sure = confidence_text(findings, summary.having(Verdict.KEPT))
    took = f"{format_duration(summary.total_s)} of tuning" if summary.total_s > 0.0 else ""
    calm = summary.disturbance.remark if summary.disturbance else ""
    parts = [when, here.machine, f"{here.mpi} {here.mpi_version}", shape_text(job_shape(findings)), sure, calm, took]
    return [text for text in parts if text]


def _extent(shape_gain: ShapeGain, findings: Findings) -> str:
    """Which sizes are changed, of all that are known on its shape: ``" from 512 KiB"``; empty for the whole range."""
    known = [s.size_bytes for s in known_scenarios(findings) if (s.collective, s.nodes, s.ppn) == shape_gain.place]
    low, high = shape_gain.span
    from_first, to_last = low == min(known), high == max(known)
    if from_first and to_last:
        return ""
    if low == high:
        return f" at {format_size(low)}"
    if to_last:
        return f" from {format_size(low)}"
    return f" up to {format_size(high)}" if from_first else f" at {format_size(low)} to {format_size(high)}"


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
        for label, text in details(findings, gains, collectives, brief=brief):
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


def details(
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
    parts = [f"with {confidence_text(findings, decisions)}", f"the least bound is {least:.2f}x"]
    parts += ["ratios count as 4 at most"] if any(decision.cut for decision in decisions) else []
    return "; ".join([*parts, *([remark] if remark else [])])


def _cost(findings: Findings, *, brief: bool) -> str:
    share = findings.summary.share
    text = cost_text(findings)
    if share.inside_collectives_s <= 0.0 or brief:
        return text
    outside = 1.0 - share.inside_collectives_s / max(share.wall_s, share.inside_collectives_s)
    launches = format_count(share.launches, "launch", "launches")
    return f"{text}; measuring {format_duration(share.wall_s)} in {launches}, {outside:.0%} outside the collectives"
