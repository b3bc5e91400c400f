"""What a tuning tells beside its rules: what was decided on what evidence, what it took, and what it was asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from colltune.core.disturbance import Disturbance
from colltune.core.interval import Interval
from colltune.core.proven import Decision, Verdict
from colltune.core.sample import Choice, Scenario
from colltune.core.units import format_budget

# No scheduler gives a job more time than a week.
MOST_BUDGET_S = 7 * 86400.0


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
class HeapRuns:
    """Wall times of an application as it is and with ``setting``, by which its heap keeps memory.

    ``peak_bytes``: the most memory of any of its processes on the first node, as it is and with the setting.
    ``proven``: whether it is faster, with 99% confidence; ``finding`` says so in words, or how it failed.
    """

    setting: str
    default_s: tuple[float, ...]
    kept_s: tuple[float, ...]
    peak_bytes: tuple[int, int]
    proven: bool
    finding: str


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
    kept = [one.speedup for one in decisions if one.verdict is Verdict.KEPT and one.has_evidence]
    return Interval.mean(kept) if kept else None


@dataclass(frozen=True)
class Summary:
    """The figures of a tuning, for people and for the campaigns that are laid over it.

    ``decisions``: of all campaigns in the directory, as the other figures are of the last one. ``gated``: whether they
    had to be proven. ``samples``: how many were measured. ``reasons``: why each collective stopped. ``reproducible``:
    collectives with one algorithm for all sizes of a shape. ``job``: its (nodes, ranks per node). ``total_s``: with the
    proof, on the clock of the machine that was tuned. ``since_s``: the start, in seconds since the epoch; None after a
    campaign was resumed. ``added_to``: whether the directory held a tuning before. ``application``: comparisons of the
    application with the rules and without. ``heap``: the same with a heap that keeps memory, and without.
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
    heap: HeapRuns | None = None
    prediction: PredictedSizes | None = None
    disturbance: Disturbance | None = None

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
        return [one for one in self.decisions if one.verdict is verdict]
