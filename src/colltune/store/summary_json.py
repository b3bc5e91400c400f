"""The summary of a tuning to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from colltune.core.disturbance import Disturbance
from colltune.core.proven import Decision, Verdict
from colltune.core.summary import ApplicationRuns, Budget, Guess, HeapRuns, PredictedSizes, Summary, TimeShare
from colltune.store.fields import as_list, as_object, decode, encode, unfit

# What the median of a few dozen ratios can be told by.
_RATIO_DIGITS, _SURENESS_DIGITS = 4, 3
# The beginning of a reason by which files of before have "refused" for "not tried".
_UNTRIED = "the budget ended after"


def write_summary(summary: Summary) -> dict[str, object]:
    """``summary`` as ``json`` takes it; what is derived from the decisions stands beside them, for people."""
    decisions = [_rounded(one) for one in summary.decisions]
    written: dict[str, object] = {
        "seed": summary.seed,
        "gated": summary.gated,
        "samples": summary.samples,
        "reasons": dict(summary.reasons),
        "interrupted": summary.interrupted,
        "share": encode(summary.share),
        "gate": [_write_decision(one) for one in decisions],
        "reproducible": list(summary.reproducible),
        "total_s": summary.total_s,
    }
    speedup = replace(summary, decisions=tuple(decisions)).speedup
    if speedup is not None:
        written |= {"speedup": speedup.mean, "speedup_low": speedup.low, "speedup_worst": speedup.worst}
    if summary.budget is not None:
        written |= {"budget_s": summary.budget.budget_s, "fixed_cost_s": summary.budget.fixed_cost_s}
    optional = {
        "budget_for_all_s": None if summary.budget is None else summary.budget.for_all_s,
        "job": summary.job,
        "since_s": summary.since_s,
        "added_to": summary.added_to or None,
        "application": summary.application or None,
        "heap": summary.heap,
        "disturbance": summary.disturbance,
    }
    written |= {name: encode(value) for name, value in optional.items() if value is not None}
    return written if summary.prediction is None else written | _write_prediction(summary.prediction)


def read_summary(written: object, where: str = "summary") -> Summary:
    """The inverse of ``write_summary``; what is missing, as in files of before, has its default. Raises FieldError."""
    held = as_object(written, where)

    def take(name: str, kind: Any, default: object) -> Any:
        return default if held.get(name) is None else decode(kind, held[name], f"{where}.{name}")

    gate = enumerate(as_list(held.get("gate", []), f"{where}.gate"))
    return Summary(
        seed=take("seed", int, 0),
        gated=take("gated", bool, True),
        samples=take("samples", int, 0),
        reasons=take("reasons", Mapping[str, str], {}),
        interrupted=take("interrupted", bool, False),
        share=take("share", TimeShare, TimeShare()),
        decisions=tuple(_read_decision(entry, f"{where}.gate[{i}]") for i, entry in gate),
        reproducible=take("reproducible", tuple[str, ...], ()),
        job=take("job", tuple[int, int], None),
        budget=_read_budget(held, where),
        total_s=take("total_s", float, 0.0),
        since_s=take("since_s", float, None),
        added_to=take("added_to", bool, False),
        application=take("application", tuple[ApplicationRuns, ...], ()),
        heap=take("heap", HeapRuns, None),
        disturbance=take("disturbance", Disturbance, None),
        prediction=_read_prediction(held, where) if take("predicted", bool, False) else None,
    )


def _rounded(decision: Decision) -> Decision:
    """``decision`` as a file holds it. Bounds of rounded ratios are the rounded bounds: both are among the ratios."""
    region = None
    if decision.region is not None:
        speedup, low, high = decision.region
        region = (round(speedup, _RATIO_DIGITS), round(low, _RATIO_DIGITS), round(high, _RATIO_DIGITS))
    heaps = None if decision.heaps is None else (round(decision.heaps[0], 2), round(decision.heaps[1], 2))
    ratios = tuple(round(ratio, _RATIO_DIGITS) for ratio in decision.ratios)
    return replace(decision, ratios=ratios, region=region, heaps=heaps)


def _write_decision(decision: Decision) -> dict[str, object]:
    low = round(decision.low, _RATIO_DIGITS)
    written = as_object(encode(replace(decision, stated_low=None)), "a decision")
    # What a decision need not have is left out, as earlier releases did that knew nothing of it.
    return {**{name: value for name, value in written.items() if value not in (None, False)}, "low": low}


def _read_decision(written: object, where: str) -> Decision:
    """An entry of ``gate``. Its ``low`` counts where an earlier release came to another bound, or gave none."""
    entry = as_object(written, where)
    read: Decision = decode(Decision, {"reason": "", **entry}, where)
    if any(ratio < 0.0 for ratio in read.ratios):
        raise unfit(f"{where}.ratios", list(read.ratios), "ratios of times, which are not negative")
    if read.verdict is Verdict.REFUSED and read.reason.startswith(_UNTRIED):
        read = replace(read, verdict=Verdict.NOT_TRIED)
    low = entry.get("low", min(read.ratios, default=0.0))
    stated: float = decode(float, low, f"{where}.low")
    return replace(read, stated_low=None if stated == round(read.low, _RATIO_DIGITS) else stated)


def _read_budget(held: Mapping[str, object], where: str) -> Budget | None:
    names = {"budget_s": "budget_s", "fixed_cost_s": "fixed_cost_s", "for_all_s": "budget_for_all_s"}
    figures = {name: decode(float | None, held.get(there), f"{where}.{there}") for name, there in names.items()}
    return None if figures["budget_s"] is None else decode(Budget, figures, where)


def _write_prediction(prediction: PredictedSizes) -> dict[str, object]:
    return {
        "predicted": True,
        "sizes": encode(prediction.sizes),
        "guesses": [_write_guess(one) for one in prediction.guesses],
    }


def _write_guess(guess: Guess) -> list[object]:
    s = guess.scenario
    sureness = round(guess.sureness, _SURENESS_DIGITS)
    return [s.collective, s.nodes, s.ppn, s.size_bytes, encode(guess.choice), sureness, guess.reason]


def _read_prediction(held: Mapping[str, object], where: str) -> PredictedSizes:
    guesses = enumerate(as_list(held.get("guesses", []), f"{where}.guesses"))
    sizes = decode(Mapping[str, tuple[int, ...]], held.get("sizes", {}), f"{where}.sizes")
    return PredictedSizes(sizes, tuple(_read_guess(one, f"{where}.guesses[{i}]") for i, one in guesses))


def _read_guess(written: object, where: str) -> Guess:
    row = as_list(written, where)
    if len(row) != 7:
        raise unfit(where, written, "a list of 7")
    parts = {"scenario": row[:4], "choice": row[4], "sureness": row[5], "reason": row[6]}
    guess: Guess = decode(Guess, parts, where)
    return guess
