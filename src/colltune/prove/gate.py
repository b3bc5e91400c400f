"""The no-regret gate: a rule departs from the default only where it was faster again, and again.

A comparison is repeated in fresh groups; each yields one ratio of medians, default over candidate. The lower bound of
the speed-up is an order statistic of these ratios, so it holds whatever their distribution, heavy tails and two modes
included: if the true median ratio were at most the threshold, each group would exceed it with probability 1/2 at most,
and all of 8 with less than 1 in 200. A second look is taken after 12 groups, of which one may fall short: both looks
together let less than 1 in 100 through. Groups of one launch may share a mode, so they are spread over several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from statistics import median

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario

CONFIDENCE = 0.995  # of one look
THRESHOLD = 1.03


class Verdict(StrEnum):
    KEPT = "kept"
    PROVISIONAL = "provisional"  # faster, and not proven: the job was ended before it could be
    REFUSED = "refused"
    OPEN = "open"  # more groups are needed to tell
    NOT_TRIED = "not tried"  # the budget ended before there were enough groups to tell


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate found for one scenario. ``ratios``: default over candidate, one per group."""

    scenario: Scenario
    choice: Choice
    verdict: Verdict
    ratios: tuple[float, ...]
    reason: str

    @property
    def speedup(self) -> float:
        return median(self.ratios) if self.ratios else 1.0

    @property
    def low(self) -> float:
        return lower_bound(self.ratios)

    @property
    def high(self) -> float:
        return upper_bound(self.ratios)


def _rank(count: int, confidence: float) -> int:
    """Index of the order statistic that bounds the median of ``count`` values on one side; -1: too few values."""
    below = 0
    for index in range(count):
        below += comb(count, index)
        if below / 2**count > 1.0 - confidence:
            return index - 1
    return -1


def fewest_groups(confidence: float = CONFIDENCE) -> int:
    """Groups below which nothing can be said with ``confidence``: 8 for 0.995."""
    count = 1
    while _rank(count, confidence) < 0:
        count += 1
    return count


def lower_bound(ratios: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """One-sided lower bound of the median ratio; 0.0 where there are too few ratios to give one."""
    index = _rank(len(ratios), confidence)
    return sorted(ratios)[index] if index >= 0 else 0.0


def upper_bound(ratios: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound of the median ratio; infinity where there are too few ratios to give one."""
    index = _rank(len(ratios), confidence)
    return sorted(ratios, reverse=True)[index] if index >= 0 else float("inf")


def judge(
    scenario: Scenario, choice: Choice, ratios: Sequence[float], most_groups: int, threshold: float = THRESHOLD
) -> GateResult:
    """Kept, refused, or open while further groups could still change the answer.

    Refused early once so many groups fell short that even ``most_groups`` of them could not lift the bound.
    """
    short = sum(1 for ratio in ratios if ratio <= threshold)
    bound = lower_bound(ratios)
    if bound > threshold:
        verdict, reason = Verdict.KEPT, f"at least {bound:.2f} times as fast in {len(ratios)} fresh groups"
    elif short > _rank(most_groups, CONFIDENCE) or len(ratios) >= most_groups:
        verdict = Verdict.REFUSED
        reason = f"not {threshold:.2f} times as fast in {short} of {len(ratios)} fresh groups"
    else:
        verdict, reason = Verdict.OPEN, f"{len(ratios)} groups are too few to tell"
    return GateResult(scenario, choice, verdict, tuple(ratios), reason)


def untried(scenario: Scenario, choice: Choice, ratios: Sequence[float], most_groups: int) -> GateResult:
    """A candidate that is still open when the budget ends: nothing was found against it."""
    needed = fewest_groups() if len(ratios) < fewest_groups() else most_groups
    reason = f"the budget ended after {len(ratios)} of the {needed} comparisons that it needs"
    return GateResult(scenario, choice, Verdict.NOT_TRIED, tuple(ratios), reason)
