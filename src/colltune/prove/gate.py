"""The acceptance test: a rule departs from the default only where repeated comparisons found it faster.

A group is one paired comparison, which gives one ratio of medians, default over candidate. The lower bound of the
speed-up is an order statistic of these ratios, so it holds for every distribution, with heavy tails or two modes: if
the true median ratio were at most the threshold, a group would exceed it with probability 1/2 at most, and all of 8
groups with less than 1 in 200. There is a second decision after 12 groups, of which one may fall short. Both decisions
together accept less than 1 in 100 wrong candidates. Groups of one launch may share a mode, so they are spread over
several launches.
"""

from __future__ import annotations

from collections.abc import Sequence

from colltune.core.choice import Choice
from colltune.core.proven import CONFIDENCE, ProvenDecision, Verdict, fewest_groups, lower_bound, order_statistic
from colltune.core.scenario import Scenario

THRESHOLD = 1.03


def judge(
    scenario: Scenario, choice: Choice, ratios: Sequence[float], most_groups: int, threshold: float = THRESHOLD
) -> ProvenDecision:
    """Kept, refused, or open while further groups could still change the answer.

    Refused early once so many groups fell short that even ``most_groups`` of them could not lift the bound.
    """
    short = sum(1 for ratio in ratios if ratio <= threshold)
    bound = lower_bound(ratios)
    if bound > threshold:
        verdict, reason = Verdict.KEPT, f"at least {bound:.2f} times as fast in {len(ratios)} fresh comparisons"
    elif short > order_statistic(most_groups, CONFIDENCE) or len(ratios) >= most_groups:
        verdict = Verdict.REFUSED
        reason = f"not {threshold:.2f} times as fast in {short} of {len(ratios)} fresh comparisons"
    else:
        verdict, reason = Verdict.OPEN, f"{len(ratios)} comparisons are too few to tell"
    return ProvenDecision(scenario, choice, verdict, tuple(ratios), reason)


def untried(scenario: Scenario, choice: Choice, ratios: Sequence[float], most_groups: int) -> ProvenDecision:
    """The verdict on a candidate that is still open when the budget ends: not tried, with no evidence against it."""
    needed = fewest_groups() if len(ratios) < fewest_groups() else most_groups
    reason = f"the budget ended after {len(ratios)} of the {needed} comparisons that it needs"
    return ProvenDecision(scenario, choice, Verdict.NOT_TRIED, tuple(ratios), reason)
