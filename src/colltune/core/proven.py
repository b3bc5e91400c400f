"""What was decided about departing from the default, and on what evidence: ratios of paired comparisons.

Bounds of a region are those of its audit. Bounds of a scenario that was proven by itself are order statistics of its
ratios, so they hold whatever their distribution.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import comb
from statistics import median

from colltune.core.interval import Interval
from colltune.core.sample import Choice, Scenario
from colltune.core.units import format_count

# A region is kept that is proven to be faster than this on average.
THRESHOLD = 1.03
CONFIDENCE = 0.995  # of one look
# What is said where a ratio was so large that it counts for less (colltune.prove.audit.effects.GREATEST).
CUT_RATIOS = "; ratios above 4 count as 4"


class Verdict(StrEnum):
    KEPT = "kept"
    PROVISIONAL = "provisional"  # faster, and not proven: the job was ended before it could be
    REFUSED = "refused"
    OPEN = "open"  # more groups are needed to tell
    NOT_TRIED = "not tried"  # there was too little to tell, for one of the reasons of Why


class Why(StrEnum):
    """Why a decision has its verdict, as far as anything depends on it."""

    MEASURED = "measured"
    CUT_APART = "cut apart"  # what is left of a region that was cut, and was not judged by itself
    SLOW_FILE = "slow file"  # it was proven, and a file costs a search or reaches too far
    BUDGET = "budget"  # the time ended
    NOT_CALM = "not calm"
    NOT_WORTH = "not worth"  # left to later jobs, in one whose site has proven much

    @property
    def text(self) -> str:
        """For people, where the decision's reason says nothing more."""
        return _TEXTS.get(self, "")


_TEXTS = {
    Why.CUT_APART: "faster in one part of its region only, which is judged by itself",
    Why.NOT_CALM: "other programs disturbed the proof",
    Why.NOT_WORTH: "it is not expected to gain enough for the time that it takes, beside what the site has proven",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What the audit found for one scenario. ``ratios``: default over choice, one for each comparison in it.

    ``region``: the mean speed-up of the region that it was proven with, and its bounds; None for a scenario that was
    proven by itself. ``cut``: ratios were so large that they count for less. ``heaps``: the mean speed-up of those
    comparisons whose calls meet page faults, with a heap that gives memory back and with one that keeps it; ``ratios``
    are the lesser of both.
    ``stated_low``: the lower bound of a file whose release came to another one than ``ratios`` give now; else None.
    ``launches``, ``runs``: fresh launches, and runs of the application, in which its region was compared; 0 where that
    is not known. ``reason``: more of ``why``, in words. Whoever prints a speed-up, a bound or launches takes them from
    here: ``reason`` has none of a region, and is empty for one that was proven.
    """

    scenario: Scenario
    choice: Choice
    verdict: Verdict
    ratios: tuple[float, ...]
    reason: str
    region: Interval | None = None
    why: Why = Why.MEASURED
    stated_low: float | None = None
    heaps: tuple[float, float] | None = None
    launches: int = 0
    runs: int = 0
    cut: bool = False

    @property
    def told(self) -> str:
        """Why it has its verdict, in words."""
        why = self.reason or self.why.text
        if self.verdict not in (Verdict.KEPT, Verdict.PROVISIONAL) or self.region is None:
            return why
        text = f"at least {self.region.low:.2f} times as fast in its region, {self.region.estimate:.2f} on average"
        text += f", by {launches_text(self.launches, self.runs)}" if self.launches or self.runs else ""
        text += CUT_RATIOS if self.cut else ""
        return f"{text}; {why}" if why else text

    def if_kept(self, verdict: Verdict, reason: str, why: Why | None = None) -> "Decision":
        """A decision that was kept is no longer: it has ``verdict``, for this ``reason``. Others stay."""
        if self.verdict is not Verdict.KEPT:
            return self
        return replace(self, verdict=verdict, reason=reason, why=why or self.why)

    @property
    def has_evidence(self) -> bool:
        """Whether it was compared, itself or in its region."""
        return self.region is not None or bool(self.ratios)

    @property
    def speedup(self) -> Interval:
        """Of its region, or by its own comparisons; its lower bound is 0.0 where these are too few to give one."""
        if self.region is not None:
            return self.region
        low = lower_bound(self.ratios) if self.stated_low is None else self.stated_low
        return Interval(median(self.ratios or (1.0,)), low, upper_bound(self.ratios))


def launches_text(launches: int, runs: int = 0) -> str:
    """``"4 fresh launches and 1 run of the application"``."""
    text = format_count(launches, "fresh launch", "fresh launches")
    return f"{text} and {format_count(runs, 'run')} of the application" if runs else text


def refused(
    decisions: Iterable[Decision], reasons: Mapping[str, str], verdicts: Collection[Verdict] = frozenset({Verdict.KEPT})
) -> list[Decision]:
    """``decisions``, those with one of ``verdicts`` refused where ``reasons`` has a reason for their collective."""
    return [
        replace(one, verdict=Verdict.REFUSED, reason=reasons[one.scenario.collective])
        if one.verdict in verdicts and one.scenario.collective in reasons
        else one
        for one in decisions
    ]


def order_statistic(count: int, confidence: float) -> int:
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
    while order_statistic(count, confidence) < 0:
        count += 1
    return count


def lower_bound(ratios: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """One-sided lower bound of the median ratio; 0.0 where there are too few ratios to give one."""
    index = order_statistic(len(ratios), confidence)
    return sorted(ratios)[index] if index >= 0 else 0.0


def upper_bound(ratios: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound of the median ratio; infinity where there are too few ratios to give one."""
    index = order_statistic(len(ratios), confidence)
    return sorted(ratios, reverse=True)[index] if index >= 0 else float("inf")
