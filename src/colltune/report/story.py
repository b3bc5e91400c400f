"""The report in words: the gain, where it is, how certain it is, what it cost, and what to distrust."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from colltune.core.heap import page_faults_of
from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import NOT_WORTH, Verdict
from colltune.core.summary import SpeedUp
from colltune.core.units import format_budget, format_count, format_duration, format_factor
from colltune.machine.conditions import advice
from colltune.report.findings import Findings, spreads
from colltune.report.headline import confidence_text

# Above these a reader should know that the machine was noisy, or moved while it was measured.
NOISY = 0.25
DRIFTING = 0.10


def summary_sentences(findings: Findings) -> list[str]:
    """A few sentences for somebody who reads nothing else."""
    kept = findings.regions(Verdict.KEPT)
    return [*_gain(findings, kept), *_certainty(findings, kept), _cost(findings)]


def _gain(findings: Findings, kept: Sequence[JudgedRegion]) -> Iterator[str]:
    names = ", ".join(findings.rule_sets)
    if not findings.summary.gated:
        yield f"The proof was switched off: the decisions for {names} were measured only once and may be slower."
        return
    gain = findings.summary.speedup
    if not kept or gain is None:
        yield f"Nothing was proven to be faster than the library's own choice, so it stands everywhere for {names}."
        return
    by_name: defaultdict[str, list[JudgedRegion]] = defaultdict(list)
    for region in kept:
        by_name[region.collective].append(region)
    best = ", ".join(f"{name} {_speedup_of(some)}" for name, some in sorted(by_name.items()))
    yield (
        f"{format_extent(kept)}, where collectives are {gain.mean:.2f} times as fast on average"
        f" (geometric mean, at least {gain.low:.2f}): {best}. Everywhere else the library's own choice stands."
    )
    top = max(kept, key=lambda region: region.speedup)
    yield f"The largest gain is at {top.place} by {top.choice}: {top.speedup:.2f} times as fast."


def format_extent(regions: Sequence[JudgedRegion]) -> str:
    """``"14 scenarios in 2 regions"``."""
    scenarios = sum(len(region.decisions) for region in regions)
    return f"{format_count(scenarios, 'scenario')} in {format_count(len(regions), 'region')}"


def _is_single(regions: Sequence[JudgedRegion]) -> bool:
    return sum(len(region.decisions) for region in regions) == 1


def _speedup_of(regions: Sequence[JudgedRegion]) -> str:
    gain = SpeedUp.of(decision for region in regions for decision in region.decisions)
    assert gain is not None, "a region that is kept has evidence"
    return f"{gain.mean:.2f} times (at least {gain.low:.2f}; {format_extent(regions)})"


def _certainty(findings: Findings, kept: Sequence[JudgedRegion]) -> Iterator[str]:
    if kept:
        compared, scenarios = sum(one.compared for one in kept), sum(len(one.decisions) for one in kept)
        least = min(one.low for one in kept)
        sure = confidence_text(findings, [decision for one in kept for decision in one.decisions])
        yield f"Each region was at least {least:.2f} times as fast as the default on average, with {sure}."
        if compared < scenarios:
            yield (
                f"{compared} of the {scenarios} scenarios were compared themselves;"
                " the gain of the others follows from those of their region."
            )
    if provisional := findings.regions(Verdict.PROVISIONAL):
        yield provisional_text(provisional)
    if refused := findings.regions(Verdict.REFUSED):
        yield f"{format_extent(refused)} looked faster at first, but not in the proof: refused."
    summary = findings.summary
    if untried := findings.regions(Verdict.NOT_TRIED):
        yield untried_text(untried, summary.budget_for_all_s, interrupted=summary.interrupted)
    if summary.reproducible:
        names = ", ".join(summary.reproducible)
        yield f"{names}: one algorithm for all sizes of a shape, so that equal inputs give equal bits."
    if summary.interrupted:
        yield "The campaign was cut short; `colltune tune ... --resume` goes on from what was measured."
    yield from warnings(findings)


def warnings(findings: Findings) -> Iterator[str]:
    """What a reader should distrust, each with its number and what to do."""
    if findings.summary.disturbed_text:
        yield findings.summary.disturbed_text
    scatter = spreads(findings)
    if scatter:
        typical = median(spread.relative_iqr for spread in scatter)
        if typical > NOISY:
            yield (
                "The machine was noisy: half of a typical measurement's repetitions differ by"
                f" {format_factor(1.0 + typical)}. Tune again when it is idle, or with a larger --budget."
            )
    if findings.drift > 1.0 + DRIFTING:
        after = "What was proven was proven over these launches all the same."
        if not findings.is_steady:
            after = "So no confidence is stated: tune again when the machine is idle."
        yield f"Times moved by {format_factor(findings.drift)} or more between launches in one call of ten. {after}"
    yield from advice(findings.environment.facts)
    if findings.summary.heap is not None:
        yield findings.summary.heap.finding
    elif text := page_faults_of(findings.samples):
        yield f"{text}."


def provisional_text(regions: Sequence[JudgedRegion]) -> str:
    """What to know about decisions that were not proven before the job was ended."""
    what = f"{format_extent(regions)} {'is' if _is_single(regions) else 'are'} provisional"
    return (
        f"{what}: faster when measured, but not proven, because the job was ended first."
        " `colltune run` and `colltune env` leave that out unless --provisional is given."
    )


def untried_text(regions: Sequence[JudgedRegion], budget_s: float | None, *, interrupted: bool = False) -> str:
    """How much that looked promising was not tried, and which budget would be enough."""
    what = f"{format_extent(regions)} looked faster and {'was' if _is_single(regions) else 'were'}"
    if interrupted:
        return f"{what} not tried, because the job was ended first."
    if all(region.reason == NOT_WORTH for region in regions):
        return f"{what} left to later jobs: {NOT_WORTH}."
    rest = "" if budget_s is None else f"; --budget {format_budget(budget_s)} would be enough for all"
    return f"{what} not tried, because the budget ended first{rest}."


def _cost(findings: Findings) -> str:
    summary = findings.summary
    launches = format_count(summary.share.launches, "launch", "launches")
    nodes, ppn = summary.job or (findings.environment.nodes, findings.environment.ppn)
    core_hours = summary.total_s * nodes * ppn / 3600.0
    what = "The last campaign" if summary.added_to else "It"
    return (
        f"{what} took {format_count(summary.samples, 'measurement')} in {format_duration(summary.share.wall_s)}"
        f" and {launches}, {format_duration(summary.total_s)} with the proof: {core_hours:.3g} core-hours."
    )


def _job(nodes: int, ppn: int) -> str:
    return f"{nodes} nodes x {ppn} ranks per node" if nodes > 1 else f"{ppn} ranks, 1 node"


def environment_rows(findings: Findings) -> list[tuple[str, str]]:
    """What the tuning is valid for, as label and value."""
    here = findings.environment
    rows = [
        ("MPI", f"{here.mpi} {here.mpi_version}"),
        ("build of libmpi (SHA-256)", here.mpi_build),
        ("machine", here.machine),
        ("job", "; ".join(_job(*job) for job in findings.jobs or [(here.nodes, here.ppn)])),
        ("thread level", here.thread_level),
        ("seed", str(findings.summary.seed)),
    ]
    rows += sorted(here.facts.items())
    rows += [(f"{name} stopped because", reason) for name, reason in findings.summary.reasons.items()]
    return rows
