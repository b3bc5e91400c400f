"""The summary of a tuning to JSON and back."""

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import Annotated, Any

import msgspec

from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.interval import Interval
from colltune.core.proven import (
    ApplicationRuns,
    Budget,
    Decision,
    Guess,
    PredictedSizes,
    Summary,
    TimeShare,
    Verdict,
    Why,
)
from colltune.core.sample import Choice, Scenario, format_choice, parse_choice

# What the median of a few dozen ratios can be told by.
_RATIO_DIGITS, _SURENESS_DIGITS = 4, 3
# The beginning of a reason by which files of before have "refused" for "not tried", and that of what was proven.
_UNTRIED, _PROVEN = "the budget ended", "proven in its region"


def read_choice(text: str) -> Choice:
    """As ``parse_choice``. Raises ValueError, to which msgspec adds the place."""
    try:
        return parse_choice(text)
    except InputError as error:
        raise ValueError(error.what) from None


class _WrittenDecision(msgspec.Struct, omit_defaults=True):
    """An entry of ``gate``. Its ``low`` counts where an earlier release came to another bound, or gave none.

    ``slow_file``, and a ``reason`` without a ``why``, are of files of before.
    """

    scenario: tuple[str, int, int, int]
    choice: str
    verdict: Verdict
    ratios: tuple[Annotated[float, msgspec.Meta(ge=0.0)], ...]
    reason: str = ""
    region: tuple[float, float, float] | None = None
    why: Why = Why.MEASURED
    slow_file: bool = False
    low: float | None = None
    heaps: tuple[float, float] | None = None
    launches: int = 0
    runs: int = 0
    cut: bool = False

    def __post_init__(self) -> None:
        self.read()

    @classmethod
    def of(cls, decision: Decision) -> "_WrittenDecision":
        """``decision``, rounded. Bounds of rounded ratios are the rounded bounds: both are among the ratios."""
        held = {name: getattr(decision, name) for name in _AS_THEY_ARE}
        scenario, low = _place(decision.scenario), round(decision.speedup.low, _RATIO_DIGITS)
        region = None if decision.region is None else _rounded(astuple(decision.region), _RATIO_DIGITS)
        heaps = None if decision.heaps is None else _rounded(decision.heaps, 2)
        ratios = _rounded(decision.ratios, _RATIO_DIGITS)
        return cls(scenario, format_choice(decision.choice), ratios=ratios, region=region, heaps=heaps, low=low, **held)

    def read(self) -> Decision:
        verdict, why, reason = self.verdict, self.why, self.reason
        if why is Why.MEASURED:  # as files of before have it, of which the reason alone says why
            ended = reason.startswith(_UNTRIED)
            verdict = Verdict.NOT_TRIED if ended and verdict is Verdict.REFUSED else verdict
            why = next((why for why in Why if why.text and why.text == reason), Why.BUDGET if ended else why)
            why = Why.SLOW_FILE if self.slow_file else why
            reason = reason.removeprefix(_PROVEN).removeprefix("; ")
        region = None if self.region is None else Interval(*self.region)
        read = Decision(
            Scenario(*self.scenario), read_choice(self.choice), verdict, self.ratios, reason, region, why,
            heaps=self.heaps, launches=self.launches, runs=self.runs, cut=self.cut,
        )  # fmt: skip
        low = min(self.ratios, default=0.0) if self.low is None else self.low
        return read if low == round(read.speedup.low, _RATIO_DIGITS) else replace(read, stated_low=low)


_AS_THEY_ARE = ("verdict", "reason", "why", "launches", "runs", "cut")


# Of a guess: its scenario, choice, sureness and reason.
_GuessRow = tuple[str, int, int, int, str, float, str]


class WrittenSummary(msgspec.Struct):
    """A summary as a file holds it; what is missing, as in files of before, has its default. None is left out."""

    seed: int = 0
    gated: bool = True
    samples: int = 0
    reasons: dict[str, str] = {}
    interrupted: bool = False
    share: TimeShare = TimeShare()
    gate: tuple[_WrittenDecision, ...] = ()
    reproducible: tuple[str, ...] = ()
    total_s: float = 0.0
    budget_s: float | None = None
    fixed_cost_s: float | None = None
    budget_for_all_s: float | None = None
    allowed_s: float | None = None
    runtime_s: float | None = None
    job: tuple[int, int] | None = None
    since_s: float | None = None
    added_to: bool | None = None
    application: tuple[ApplicationRuns, ...] | None = None
    disturbance: Disturbance | None = None
    predicted: bool | None = None
    sizes: dict[str, tuple[int, ...]] | None = None
    guesses: tuple[_GuessRow, ...] | None = None

    def __post_init__(self) -> None:
        self.read()

    def read(self) -> Summary:
        budget = prediction = None
        if self.budget_s is not None:
            if self.fixed_cost_s is None:
                raise ValueError("Object missing required field `fixed_cost_s`")
            budget = Budget(self.budget_s, self.fixed_cost_s, self.budget_for_all_s, self.allowed_s, self.runtime_s)
        if self.predicted:
            rows = self.guesses or ()
            guesses = tuple(Guess(Scenario(*row[:4]), read_choice(row[4]), row[5], row[6]) for row in rows)
            prediction = PredictedSizes(self.sizes or {}, guesses)
        return Summary(
            self.seed, self.gated, self.samples, self.reasons, self.interrupted, self.share,
            tuple(row.read() for row in self.gate), self.reproducible, self.job, budget, self.total_s, self.since_s,
            bool(self.added_to), self.application or (), prediction, self.disturbance,
        )  # fmt: skip


def write_summary(summary: Summary) -> dict[str, object]:
    """``summary`` as ``json`` takes it; what is derived from the decisions stands beside them, for people."""
    held = WrittenSummary(
        summary.seed, summary.gated, summary.samples, dict(summary.reasons), summary.interrupted, summary.share,
        tuple(_WrittenDecision.of(decision) for decision in summary.decisions), summary.reproducible, summary.total_s,
        job=summary.job, since_s=summary.since_s, added_to=summary.added_to or None,
        application=summary.application or None, disturbance=summary.disturbance,
    )  # fmt: skip
    if (budget := summary.budget) is not None:
        held.budget_s, held.fixed_cost_s, held.budget_for_all_s = budget.budget_s, budget.fixed_cost_s, budget.for_all_s
        held.allowed_s, held.runtime_s = budget.allowed_s, budget.runtime_s
    if (prediction := summary.prediction) is not None:
        held.predicted, held.sizes = True, dict(prediction.sizes)
        held.guesses = tuple(
            (*_place(row.scenario), format_choice(row.choice), round(row.sureness, _SURENESS_DIGITS), row.reason)
            for row in prediction.guesses
        )
    written = {name: value for name, value in msgspec.to_builtins(held).items() if value is not None}
    read = held.read()
    if (speedup := read.speedup) is not None:
        worst = min(decision.speedup.low for decision in read.having(Verdict.KEPT) if decision.has_evidence)
        written |= {"speedup": speedup.estimate, "speedup_low": speedup.low, "speedup_worst": worst}
    return written


def _place(scenario: Scenario) -> tuple[str, int, int, int]:
    return scenario.collective, scenario.nodes, scenario.ppn, scenario.size_bytes


def _rounded(values: Iterable[float], digits: int) -> tuple[Any, ...]:
    return tuple(round(value, digits) for value in values)
