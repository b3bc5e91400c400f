"""What the audit says of a claim, scenario by scenario."""

import math
from collections.abc import Collection, Iterator
from dataclasses import replace

from colltune.core.interval import Interval
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.sample import Scenario
from colltune.core.units import format_count
from colltune.judge.evidence import FEWEST_LAUNCHES, Reference
from colltune.prove.audit.case import Case

_NOT_LOOKED_AT = "the budget ended before it was compared"


def decisions_of(
    case: Case, left_out: Collection[Scenario], reference: Reference, *, unpaid: bool
) -> Iterator[Decision]:
    """One decision for each scenario of the claim; ``left_out`` keep the default, whatever is said of the others.

    ``unpaid``: whether the claim was left since it is not expected to gain enough for the time.
    """
    verdict, why, reason = case.verdict, case.why, case.reason
    if verdict is Verdict.OPEN:
        verdict = Verdict.NOT_TRIED
        ended = (
            f"the budget ended after {format_count(len(case.launches), 'launch', 'launches')}"
            if case.seen
            else _NOT_LOOKED_AT
        )
        ended = case.slowed_text or ended
        why, reason = (Why.NOT_WORTH, "") if unpaid else (Why.BUDGET, ended)
    region = Interval(case.speedup, *case.interval(reference)) if len(case.launches) >= FEWEST_LAUNCHES else None
    launches, runs = case.counts
    of_region = Decision(
        case.claim.scenarios[0],
        case.claim.choice,
        verdict,
        (),
        reason,
        region,
        why,
        heaps=case.by_heap,
        launches=launches,
        runs=runs,
        cut=case.cut,
    )
    for scenario in (s for s in case.claim.scenarios if s not in case.replaced):
        ratios = tuple(math.exp(comparison.value) for comparison in case.seen if comparison.scenario == scenario)
        decision = replace(of_region, scenario=scenario, ratios=ratios)
        if scenario in left_out:
            status, text = _why_left_out(case, scenario, bool(ratios))
            left = Why.BUDGET if status is Verdict.NOT_TRIED else Why.MEASURED
            decision = replace(decision, verdict=status, why=left, reason=text, region=None)
        yield decision


def _why_left_out(case: Case, scenario: Scenario, was_compared: bool) -> tuple[Verdict, str]:
    if was_compared:
        return Verdict.REFUSED, "its region is faster, and here it may be slower"
    if scenario in case.impossible:
        return Verdict.REFUSED, "its region is faster, and here it could not be compared"
    return Verdict.NOT_TRIED, _NOT_LOOKED_AT


def standing_of(case: Case) -> Decision:
    """Where a claim stands, in one of its scenarios for all."""
    ratios = tuple(math.exp(comparison.value) for comparison in case.seen)
    return Decision(case.claim.scenarios[0], case.claim.choice, case.verdict, ratios, case.reason, why=case.why)
