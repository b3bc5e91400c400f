"""The report in one line, and what to know beside it: when, where, for which job, and how sure it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import NOT_WORTH, Decision, Verdict, launches_text
from colltune.core.scenario import Scenario
from colltune.core.units import format_budget, format_count, format_duration, format_size
from colltune.report.findings import Findings, ranked_gains

# Collectives that a headline names; what others gain is in the tables.
_NAMED = 3
# Clocks of simulated machines begin at zero: what is below a year is no date.
_SIMULATED_S = 365 * 86400.0


def headline(findings: Findings, most: int = _NAMED) -> str:
    """In one line, ``most`` collectives by name.

    For example ``"allreduce 1.53x (at least 1.31) from 512 KiB; 8 of 41 scenarios changed"``.
    """
    kept = findings.summary.having(Verdict.KEPT)
    names = ", ".join(findings.rule_sets)
    if not findings.summary.gated:
        return f"{names}: tuned without a proof, so calls may be slower"
    if not kept:
        return f"The library's own choice stands everywhere for {names}: nothing was proven faster"
    ranked = ranked_gains(findings)
    shown = len(ranked) if len(ranked) == most + 1 else most  # a name takes no more room than "1 more collective"
    parts = [
        f"{one.collective} {one.gain.mean:.2f}x (at least {one.gain.low:.2f}){_extent(one.decisions, findings)}"
        for one in ranked[:shown]
    ]
    if len(ranked) > shown:
        parts.append(format_count(len(ranked) - shown, "more collective"))
    saved = saved_share(findings, kept)
    application = f"; expected {saved:.1%} of the application's time" if saved > 0.0 else ""
    return f"{', '.join(parts)}; {len(kept)} of {len(known_scenarios(findings))} scenarios changed{application}"


def next_steps(findings: Findings, directory: Path | None = None) -> list[str]:
    """What to do now, each in a line: how to use it, and what would bring more. ``directory``: where the tuning is."""
    summary, here = findings.summary, findings.environment
    nodes, ppn = summary.job or (here.nodes, here.ppn)
    steps = []
    if summary.having(Verdict.KEPT) and here.has_mpi:
        place = shlex.quote(str(directory or "tuned"))
        steps.append(f"Use it: colltune run {place} -- mpiexec -n {nodes * ppn} ./app")
    if summary.interrupted:
        steps.append("The job was ended first: the same command with --resume goes on and proves the rest")
    elif untried := sum(len(one.decisions) for one in findings.regions(Verdict.NOT_TRIED) if one.reason != NOT_WORTH):
        enough = summary.budget_for_all_s
        more = "a larger --budget" if enough is None else f"--budget {format_budget(enough)}"
        steps.append(f"{format_count(untried, 'scenario')} not tried: tune again with {more}")
    if not steps and summary.gated:
        steps.append("Nothing to do: the library's own choices are good here")
    return steps


def known_scenarios(findings: Findings) -> set[Scenario]:
    """The scenarios that were measured or decided."""
    return {*(sample.scenario for sample in findings.samples), *(one.scenario for one in findings.summary.decisions)}


def saved_share(findings: Findings, decisions: list[Decision]) -> float:
    """Of the application's time, what ``decisions`` are expected to save; 0 without a profile."""
    return sum(findings.shares.get(one.scenario, 0.0) * (1.0 - 1.0 / one.speedup) for one in decisions)


def by_gain(findings: Findings, regions: Sequence[JudgedRegion]) -> list[JudgedRegion]:
    """The most gain first: what saves most of the application's time, where that is known, else the most speed-up."""
    return sorted(regions, key=lambda one: (saved_share(findings, list(one.decisions)), one.speedup), reverse=True)


def confidence_text(findings: Findings, kept: Sequence[Decision]) -> str:
    """``"99% confidence by 3 to 16 fresh launches"``; no confidence where times moved too far between launches."""
    counts = sorted({one.launches for one in kept if one.launches})
    if not counts:
        by = ""
    elif len(counts) == 1:
        by = f" by {launches_text(counts[0])}"
    else:
        by = f" by {counts[0]} to {launches_text(counts[-1])} each"
    if not findings.is_steady:
        return f"times that moved too far for a confidence{by}"
    return ("99%" if any(one.region is not None for one in kept) else "99.5%") + " confidence" + by


def saved_by(findings: Findings, region: JudgedRegion) -> str:
    """``"1.2%"`` of the application's time; empty without a profile."""
    return f"{saved_share(findings, list(region.decisions)):.2%}" if findings.shares else ""


def facts(findings: Findings) -> list[str]:
    """Date, machine, MPI, job shape, how sure it is, what it took: a few words each."""
    here, summary = findings.environment, findings.summary
    nodes, ppn = summary.job or (here.nodes, here.ppn)
    began_s = findings.started_s if summary.since_s is None else summary.since_s
    when = datetime.fromtimestamp(began_s, UTC).strftime("%Y-%m-%d") if began_s > _SIMULATED_S else ""
    sure = ""
    if any(one.region is not None for one in summary.having(Verdict.KEPT)):
        sure = confidence_text(findings, summary.having(Verdict.KEPT))
    took = f"{format_duration(summary.total_s)} of tuning" if summary.total_s > 0.0 else ""
    calm = summary.disturbance.remark if summary.disturbance else ""
    said = [
        when,
        here.machine,
        f"{here.mpi} {here.mpi_version}",
        f"{format_count(nodes, 'node')} x {ppn}",
        sure,
        calm,
        took,
    ]
    return [text for text in said if text]


def _extent(mine: Sequence[Decision], findings: Findings) -> str:
    """Which sizes are changed, of all that are known: ``" from 512 KiB"``; empty where it is the whole range."""
    name = mine[0].scenario.collective
    known = [s.size_bytes for s in known_scenarios(findings) if s.collective == name]
    sizes = [one.scenario.size_bytes for one in mine]
    low, high = min(sizes), max(sizes)
    from_first, to_last = low == min(known), high == max(known)
    if from_first and to_last:
        return ""
    if low == high:
        return f" at {format_size(low)}"
    if to_last:
        return f" from {format_size(low)}"
    return f" up to {format_size(high)}" if from_first else f" at {format_size(low)} to {format_size(high)}"
