"""The report in words: the gain, where it is, how certain it is, what it cost, and what to distrust."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import geometric_mean, median

from colltune.core.choice import Choice
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.scenario import Scenario
from colltune.core.units import format_budget, format_count, format_duration, format_size
from colltune.report.findings import Findings, spreads

# Above these a reader should know that the machine was noisy, or moved while it was measured.
NOISY = 0.25
DRIFTING = 0.10


def summary_sentences(findings: Findings) -> list[str]:
    """A few sentences for somebody who reads nothing else."""
    kept = [decision for decision in findings.decisions if decision.verdict is Verdict.KEPT]
    return [*_gain(findings, kept), *_certainty(findings, kept), _cost(findings)]


def _gain(findings: Findings, kept: Sequence[ProvenDecision]) -> Iterator[str]:
    names = ", ".join(findings.rule_sets)
    if not findings.summary.gated:
        yield f"The proof was switched off: the decisions for {names} were measured only once and may be slower."
        return
    if not kept:
        yield f"Nothing was proven to be faster than the library's own choice, so it stands everywhere for {names}."
        return
    by_name: defaultdict[str, list[ProvenDecision]] = defaultdict(list)
    for decision in kept:
        by_name[decision.scenario.collective].append(decision)
    best = ", ".join(
        f"{name} {geometric_mean([d.speedup for d in some]):.2f} times"
        f" (at least {geometric_mean([d.low for d in some]):.2f}; {format_count(len(some), 'decision')})"
        for name, some in sorted(by_name.items())
    )
    speedup = geometric_mean([decision.speedup for decision in kept])
    low = geometric_mean([decision.low for decision in kept])
    makes, hold = ("makes", "it holds") if len(kept) == 1 else ("make", "they hold")
    yield (
        f"{format_count(len(kept), 'decision')} {makes} collectives {speedup:.2f} times as fast on"
        f" average where {hold} (geometric mean, at least {low:.2f}): {best}."
        " Everywhere else the library's own choice stands."
    )
    top = max(kept, key=lambda decision: decision.speedup)
    yield f"The largest gain is at {where(top)} by {top.choice}: {top.speedup:.2f} times as fast."


def _certainty(findings: Findings, kept: Sequence[ProvenDecision]) -> Iterator[str]:
    if kept:
        yield (
            f"Each was at least {min(d.low for d in kept):.2f} times as fast as the default in"
            f" fresh comparisons ({min(len(d.ratios) for d in kept)} or more of them{_over_launches(findings, kept)})."
        )
    counts = Counter(decision.verdict for decision in findings.decisions)
    if provisional := counts[Verdict.PROVISIONAL]:
        yield provisional_text(provisional)
    refused = counts[Verdict.REFUSED]
    if refused:
        they = "it was" if refused == 1 else "they were"
        count = format_count(refused, "further candidate")
        yield f"{count} looked faster at first, but not in the proof; {they} refused."
    summary = findings.summary
    if untried := counts[Verdict.NOT_TRIED]:
        yield untried_text(untried, summary.budget_for_all_s, interrupted=summary.interrupted)
    if summary.reproducible:
        names = ", ".join(summary.reproducible)
        yield f"{names}: one algorithm for all sizes of a shape, so that equal inputs give equal bits."
    if summary.interrupted:
        yield "The campaign was cut short; `colltune tune ... --resume` goes on from what was measured."
    yield from warnings(findings)


def warnings(findings: Findings) -> Iterator[str]:
    """What a reader should distrust, each with its number and what to do."""
    scatter = spreads(findings)
    if scatter:
        typical = median(spread.relative_iqr for spread in scatter)
        if typical > NOISY:
            yield (
                f"The machine was noisy: half of a typical measurement's repetitions spread over {typical:.0%} of the"
                " median. Tune again when it is idle, or with a larger --budget."
            )
    drifts = sorted(abs(spread.drift - 1.0) for spread in scatter if spread.drift is not None)
    if drifts and drifts[len(drifts) * 9 // 10] > DRIFTING:
        yield (
            f"Times moved by {drifts[len(drifts) * 9 // 10]:.0%} or more between launches in one measurement of ten."
            " What was proven was proven over these launches all the same."
        )


def _over_launches(findings: Findings, kept: Sequence[ProvenDecision]) -> str:
    """Over how many launches each of ``kept`` was compared at least, as the samples of the proof have it."""
    launches: defaultdict[tuple[Scenario, Choice], set[int]] = defaultdict(set)
    for sample in findings.proofs:
        launches[sample.scenario, sample.choice].add(sample.launch)
    fewest = min(len(launches[decision.scenario, decision.choice]) for decision in kept)
    return f", over {fewest} launches or more" if fewest > 1 else ""


def provisional_text(count: int) -> str:
    """What to know about decisions that were not proven before the job was ended."""
    what = f"{format_count(count, 'decision')} {'is' if count == 1 else 'are'} provisional"
    return (
        f"{what}: faster when measured, but not proven, because the job was ended first."
        " `colltune run` and `colltune env` leave that out unless --provisional is given."
    )


def untried_text(count: int, budget_s: float | None, *, interrupted: bool = False) -> str:
    """How many promising choices were not tried, and which budget would be enough."""
    choices = f"{format_count(count, 'promising choice')} {'was' if count == 1 else 'were'}"
    if interrupted:
        return f"{choices} not tried, because the job was ended first."
    rest = "" if budget_s is None else f"; --budget {format_budget(budget_s)} would be enough for all"
    return f"{choices} not tried, because the budget ended first{rest}."


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


def where(decision: ProvenDecision) -> str:
    """``"alltoall 4 x 8 64 KiB"``: collective, nodes x ranks per node, message size."""
    scenario = decision.scenario
    size = "" if scenario.collective == "barrier" else f" {format_size(scenario.size_bytes)}"
    return f"{scenario.collective} {scenario.nodes} x {scenario.ppn}{size}"


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
