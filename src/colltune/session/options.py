"""What a tuning is asked for, whom it tells how it goes, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from colltune.core.errors import InputError
from colltune.core.proven import ProvenDecision, Verdict
from colltune.learn.stakes import Stakes
from colltune.measure.contract import Effort
from colltune.prove.gate import THRESHOLD
from colltune.prove.time_plan import TimePlan
from colltune.search.campaign import Outcome, Progress
from colltune.search.priors import PriorSources
from colltune.store.tuning import Tuning


@dataclass(frozen=True)
class TuneOptions:
    """What to tune.

    ``gate`` False keeps every decision unproven: for research only. ``reproducible`` restricts reductions to one
    algorithm per shape, whose order of operations depends on neither message size nor timing. With ``stakes`` only
    their scenarios are measured, as far as the job can form them, and the bounds of sizes do not matter.
    ``topology`` says which parts of the job may measure at once: a file, the name of a scheme, or serial; None is what
    Slurm says, or serial.
    """

    collectives: Sequence[str]
    smallest_bytes: int = 1
    largest_bytes: int = 1 << 20
    budget_s: float = 300.0
    resume: bool = False
    seed: int = 1
    gate: bool = True
    reproducible: bool = False
    threshold: float = THRESHOLD
    effort: Effort = field(default_factory=Effort)
    stakes: Stakes | None = None
    topology: str | None = None
    prior: PriorSources | None = None

    def require_something(self) -> None:
        """Raises InputError where the budget or the range of sizes is empty."""
        if self.budget_s <= 0.0 or self.largest_bytes < self.smallest_bytes:
            raise InputError("the budget and the range of sizes must not be empty", "Give for example --budget 5m")


@dataclass
class Listener:
    """Hears of what goes on; a command line shows it, a library user may not care."""

    progress: Callable[[Progress], None] = lambda _progress: None
    proof: Callable[[Sequence[ProvenDecision]], None] = lambda _results: None
    stage: Callable[[str], None] = lambda _text: None
    note: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True)
class TuneResult:
    """A tuning, and how it was come by."""

    tuning: Tuning
    outcome: Outcome
    gate: Sequence[ProvenDecision]
    nothing_to_tune: Mapping[str, str]


def summarize(
    options: TuneOptions, outcome: Outcome, gate: Sequence[ProvenDecision], share: Mapping[str, float]
) -> dict[str, Any]:
    """The figures of a campaign, for people and for the report."""
    return {
        "seed": options.seed,
        "gated": options.gate,
        "samples": len(outcome.samples),
        "reasons": dict(outcome.reasons),
        "interrupted": outcome.interrupted,
        "share": dict(share),
    } | gate_summary(gate)


def budget_summary(plan: TimePlan, total_s: float, gate: Sequence[ProvenDecision], rest_s: float) -> dict[str, float]:
    """What the tuning took and what it takes at least; and which budget would do, where it was too short for all."""
    found = {"budget_s": plan.budget_s, "fixed_cost_s": plan.fixed_cost_s, "total_s": total_s}
    if any(result.verdict is Verdict.NOT_TRIED for result in gate):
        found["budget_for_all_s"] = plan.budget_for(rest_s)
    return found


def gate_summary(gate: Sequence[ProvenDecision]) -> dict[str, Any]:
    """The verdicts, and what the kept decisions bring."""
    entries = [
        {
            "scenario": [r.scenario.collective, r.scenario.nodes, r.scenario.ppn, r.scenario.size_bytes],
            "choice": str(r.choice),
            "verdict": r.verdict.value,
            "ratios": [round(ratio, 4) for ratio in r.ratios],
            "low": round(r.low, 4),
            "reason": r.reason,
        }
        for r in gate
    ]
    return {"gate": entries, **speedups(entries)}


def speedups(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What the kept ones of a summary's verdicts bring; nothing where none is."""
    kept = [entry for entry in entries if entry["verdict"] == Verdict.KEPT and entry["ratios"]]
    if not kept:
        return {}
    return {
        "speedup": geometric_mean([median(entry["ratios"]) for entry in kept]),
        "speedup_low": geometric_mean([entry["low"] for entry in kept]),
        "speedup_worst": min(entry["low"] for entry in kept),
    }


def require_writable(directory: Path) -> None:
    """Raises InputError where nothing could be written there: better before the measuring than after."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".colltune-probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot write to {directory}: {error.strerror}", "Give another directory by --out") from error
