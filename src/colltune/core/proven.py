"""What was decided about departing from the default, and on what evidence; and all else that a tuning tells.

The evidence are ratios of paired comparisons. Bounds of a region are those of its audit. Bounds of a scenario that was
proven by itself are order statistics of its ratios, so they hold whatever their distribution.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import comb
from statistics import median

from colltune.core.disturbance import Disturbance
from colltune.core.interval import Interval
from colltune.core.sample import Choice, Scenario
from colltune.core.units import format_budget, format_count

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
    def explanation(self) -> str:
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
        replace(decision, verdict=Verdict.REFUSED, reason=reasons[decision.scenario.collective])
        if decision.verdict in verdicts and decision.scenario.collective in reasons
        else decision
        for decision in decisions
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


# No scheduler gives a job more time than a week.
MOST_BUDGET_S = 7 * 86400.0
_PREDICTED = "predicted from other clusters' times, not proven: nothing was measured here"


class StopReason(StrEnum):
    """Why a campaign measured a collective no further. A learner that has enough says why in a sentence of its own."""

    BUDGET_SPENT = "the time for measuring is spent"  # more of it could still find something faster
    WHOLE = "the whole grid was measured"
    NOT_WORTH = "more measuring is not expected to gain enough for its time, beside what the site has proven"
    NOT_ASKED = "nothing more was asked for"
    STOPPED = "stopped from outside"
    PREDICTED = "predicted, not measured"


@dataclass(frozen=True, slots=True)
class TimeShare:
    """How the campaign's launches spent their time: in all, inside the measured collectives, and to start and end."""

    launches: int = 0
    wall_s: float = 0.0
    inside_collectives_s: float = 0.0
    launch_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that was given, and the least that a tuning takes here.

    ``for_all_s``: the budget that would do for all promising choices; None where every one was tried. ``runtime_s``:
    that of an application, in which tuning is expected to save ``budget_s`` and no more, less than the ``allowed_s`` of
    the user; None where these are the limit.
    """

    budget_s: float
    fixed_cost_s: float
    for_all_s: float | None = None
    allowed_s: float | None = None
    runtime_s: float | None = None


@dataclass(frozen=True, slots=True)
class ApplicationRuns:
    """Wall times of an application without and with the rules of the collectives ``rules``.

    ``failure``: how it ended with the rules, "" where it ended well.
    """

    rules: tuple[str, ...]
    default_s: tuple[float, ...]
    tuned_s: tuple[float, ...]
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Guess:
    """What is chosen in one scenario, the default where the model is not sure; how sure it is, and why.

    ``gain``: the default's expected time over the choice's, or over that of the one that came nearest where the default
    stays; NaN where it is not known.
    """

    scenario: Scenario
    choice: Choice
    sureness: float
    reason: str
    gain: float = float("nan")


@dataclass(frozen=True)
class PredictedSizes:
    """Of rules that nothing was measured for. ``sizes``: message sizes in bytes, ascending, by collective.

    ``guesses``: those that depart from the default.
    """

    sizes: Mapping[str, tuple[int, ...]]
    guesses: tuple[Guess, ...]


def mean_of_kept(decisions: Iterable[Decision]) -> Interval | None:
    """Geometric means over the scenarios of what was kept: of the speed-up and its bounds; None where nothing was.

    A scenario that was not compared itself counts with the figures of its region.
    """
    kept = [decision.speedup for decision in decisions if decision.verdict is Verdict.KEPT and decision.has_evidence]
    return Interval.mean(kept) if kept else None


@dataclass(frozen=True)
class Summary:
    """The figures of a tuning, for people and for the campaigns that are laid over it.

    ``decisions``: of all campaigns in the directory, as the other figures are of the last one. ``gated``: whether they
    had to be proven. ``samples``: how many were measured. ``reasons``: why each collective stopped. ``reproducible``:
    collectives with one algorithm for all sizes of a shape. ``job``: its (nodes, ranks per node). ``total_s``: with the
    proof, on the clock of the machine that was tuned. ``since_s``: the start, in seconds since the epoch; None after a
    campaign was resumed. ``added_to``: whether the directory held a tuning before. ``application``: comparisons of the
    application with the rules and without.
    ``disturbance``: by other programs; None where nobody looked, as on a simulated machine.
    """

    seed: int = 0
    gated: bool = True
    samples: int = 0
    reasons: Mapping[str, StopReason | str] = field(default_factory=dict)
    interrupted: bool = False
    share: TimeShare = TimeShare()
    decisions: tuple[Decision, ...] = ()
    reproducible: tuple[str, ...] = ()
    job: tuple[int, int] | None = None
    budget: Budget | None = None
    total_s: float = 0.0
    since_s: float | None = None
    added_to: bool = False
    application: tuple[ApplicationRuns, ...] = ()
    prediction: PredictedSizes | None = None
    disturbance: Disturbance | None = None

    @property
    def predicted_text(self) -> str:
        """What has to be said wherever rules are seen that nothing was measured for; "" for others."""
        return "" if self.prediction is None else _PREDICTED

    @property
    def disturbed_text(self) -> str:
        """The sentence on other programs, "" where they did nothing or nobody looked."""
        return "" if self.disturbance is None else self.disturbance.sentence

    @property
    def speedup(self) -> Interval | None:
        """Of the kept decisions; None where there is none."""
        return mean_of_kept(self.decisions)

    @property
    def budget_for_all_s(self) -> float | None:
        """The budget that would do for all promising choices, where the one that was given did not.

        None as well where it is more than any job has: then what a comparison takes is not known.
        """
        enough_s = None if self.budget is None else self.budget.for_all_s
        return enough_s if enough_s is None or 0.0 < enough_s <= MOST_BUDGET_S else None

    @property
    def more_time(self) -> str:
        """The options that give the next tuning the time for all promising choices, or more where that is not known."""
        budget, enough_s = self.budget, self.budget_for_all_s
        if budget is None or budget.runtime_s is None:
            return "a larger --budget" if enough_s is None else f"--budget {format_budget(enough_s)}"
        if enough_s is None:
            return "a longer --runtime, if the application will run for longer"
        text = f"--runtime {format_budget(budget.runtime_s * enough_s / budget.budget_s)}"
        return text if enough_s <= (budget.allowed_s or 0.0) else f"{text} --budget {format_budget(enough_s)}"

    def having(self, verdict: Verdict) -> list[Decision]:
        """The decisions with ``verdict``."""
        return [decision for decision in self.decisions if decision.verdict is verdict]
