"""Tunes: measures, decides, proves, writes. What `colltune tune` and the Python API do."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from colltune.campaign import WHOLE, Campaign, Outcome, Progress, StopRequestedError, broken_choices
from colltune.confirm import Confirmation
from colltune.core.choice import Choice
from colltune.core.errors import ColltuneError, InputError, LaunchError
from colltune.core.model import Model
from colltune.core.rules import RuleSet
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import Space
from colltune.decide import candidates_of, decide, judge_one_launch, medians_of, proven_rules
from colltune.deployed import keep_what_pays
from colltune.distill.reproducible import distill_reproducible
from colltune.distill.rules import distill
from colltune.learn.forest import ForestLearner
from colltune.learn.measured import MeasuredModel
from colltune.measure.contract import Effort
from colltune.measure.live import LiveSource
from colltune.replay import departing, make_safe
from colltune.store.journal import Journal
from colltune.store.tuning import CONFIRMATION, JOURNAL, Tuning, save_tuning
from colltune.verify.gate import THRESHOLD, GateResult, Verdict
from colltune.workbench import Workbench, check_collectives

# Of the budget, what the first measuring may take; the rest is for proving what it found.
_MEASURING_SHARE = 0.6


@dataclass(frozen=True)
class TuneOptions:
    """What to tune.

    ``gate`` False keeps every decision unproven: for research only. ``reproducible`` restricts reductions to one
    algorithm per shape, whose order of operations depends on neither message size nor timing.
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


@dataclass
class Listener:
    """Hears of what goes on; a command line shows it, a library user may not care."""

    progress: Callable[[Progress], None] = lambda _progress: None
    proof: Callable[[Sequence[GateResult]], None] = lambda _results: None
    stage: Callable[[str], None] = lambda _text: None
    note: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True)
class TuneResult:
    """A tuning, and how it was come by."""

    tuning: Tuning
    outcome: Outcome
    gate: Sequence[GateResult]
    nothing_to_tune: Mapping[str, str]


def tune(workbench: Workbench, options: TuneOptions, out: Path, listener: Listener | None = None) -> TuneResult:
    """Measures the collectives, and leaves in ``out`` the files that the library loads, and every measurement.

    Raises ColltuneError; what was measured by then is in the journal, and ``options.resume`` goes on from it.
    """
    listener = listener or Listener()
    if options.budget_s <= 0.0 or options.largest_bytes < options.smallest_bytes:
        raise InputError("the budget and the range of sizes must not be empty", "Give for example --budget 5m")
    collectives, nothing = check_collectives(options.collectives, workbench.catalogue)
    for name, reason in nothing.items():
        listener.note(f"{name}: {reason}")
    spaces = {name: workbench.space(name, options.smallest_bytes, options.largest_bytes) for name in collectives}
    spaces = {name: space for name, space in spaces.items() if space.scenarios}
    started_s = time.monotonic()
    with _open_journal(out / JOURNAL, workbench, options.resume) as journal:
        outcome, models, share = _measure(workbench, options, spaces, journal, listener)
    decided = {
        name: decide(models[name], spaces[name], outcome.samples, workbench.baseline, options.threshold)
        for name in spaces
    }
    medians = medians_of(outcome.samples)
    fixed = _reproducible(workbench, options, decided, outcome, medians, listener)
    for name in fixed:
        del decided[name]

    def rules_of(results: Sequence[GateResult]) -> dict[str, RuleSet]:
        return proven_rules(workbench, spaces, decided, results) | fixed

    def emitted(decisions: Mapping[str, RuleSet]) -> Tuning:
        files = {f"mpich/{name}": data for name, data in workbench.emitter.emit(list(decisions.values())).items()}
        variables = workbench.emitter.environment(Path("{directory}/mpich"))
        return Tuning(workbench.environment, decisions, files, variables)

    gate: list[GateResult] = []
    if options.gate:
        candidates = candidates_of(workbench, decided, medians)
        if outcome.interrupted:
            gate = [
                judge_one_launch(s, c, outcome.samples, workbench.baseline, options.threshold)
                for s, c in candidates.items()
            ]
        else:
            left_s = options.budget_s - (time.monotonic() - started_s)
            gate = _prove(workbench, options, candidates, out, time.monotonic() + max(left_s, 5.0), listener)
            listener.stage("comparing the file in force with the default")
            grid = [scenario for space in spaces.values() for scenario in space.scenarios]
            with _workplace(out) as place:
                gate = keep_what_pays(workbench, gate, rules_of, emitted, place, options.seed, grid, options.threshold)
        rule_sets = rules_of(gate)
    else:
        listener.note("the gate is off: nothing was measured twice, and rules may be slower than the default")
        rule_sets = fixed | {
            name: distill(models[name], spaces[name], medians, workbench.catalogue.collective(name).basis)
            for name in decided
        }
    tuning = emitted(rule_sets)
    if not outcome.interrupted:
        listener.stage("replaying every collective under the new file")
        with _workplace(out) as place:
            tuning, found = make_safe(workbench, tuning, place, emitted)
        for text in found:
            listener.note(text)
        for name in sorted(fixed.keys() - departing(tuning.rule_sets)):
            listener.note(f"{name} is at the library's default, so its results are not reproducible")
    summary = _summary(options, outcome, gate, share)
    summary |= {"reproducible": sorted(fixed), "total_s": time.monotonic() - started_s}
    tuning = replace(tuning, summary=summary)
    save_tuning(out, tuning)
    return TuneResult(tuning, outcome, gate, nothing)


def _reproducible(
    workbench: Workbench,
    options: TuneOptions,
    decided: Mapping[str, Mapping[Scenario, Choice]],
    outcome: Outcome,
    medians: Mapping[tuple[Scenario, Choice], float],
    listener: Listener,
) -> dict[str, RuleSet]:
    """Rules for the reductions by which bits do not change with size; nothing unless that was asked for.

    They need no proof of speed: the user pays for equal bits, and is told how much.
    """
    if not options.reproducible:
        return {}
    rule_sets = {}
    broken = broken_choices(outcome.samples)
    for name in sorted(decided.keys() & REDUCTIONS):
        untrusted = {choice for collective, choice in broken if collective == name}
        fixed = distill_reproducible(name, medians, decided[name], workbench.catalogue, untrusted)
        listener.note(fixed.cost_text())
        rule_sets[name] = fixed.rule_set
    return rule_sets


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """A directory beside the result, on the same file system, which all nodes see; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=".trial-", dir=out) as place:
        yield Path(place)


def _open_journal(path: Path, workbench: Workbench, resume: bool) -> Journal:
    if resume and path.exists():
        return Journal.open(path, workbench.environment)
    return Journal.create(path, workbench.environment)


def _measure(
    workbench: Workbench, options: TuneOptions, spaces: Mapping[str, Space], journal: Journal, listener: Listener
) -> tuple[Outcome, dict[str, Model], dict[str, float]]:
    """The one launch of the campaign. Also: models by collective, and how the launch's time was spent."""
    source = workbench.live_source(options.seed, on_event=lambda kind, facts: journal.note(kind, _plain(facts)))
    learners = {name: ForestLearner(space, options.seed) for name, space in spaces.items()}
    campaign = Campaign(
        source=source,
        spaces=spaces,
        learners=learners,
        record=journal.append,
        budget_s=options.budget_s * _MEASURING_SHARE,
        effort=options.effort,
        known=journal.samples,
        progress=listener.progress,
    )
    try:
        listener.stage("starting the MPI job")
        source.start()
        listener.stage("measuring")
        outcome = campaign.run()
        if outcome.interrupted:
            source.kill()
    finally:
        _close(source)
    medians = medians_of(outcome.samples)
    models: dict[str, Model] = {}
    for name, learner in learners.items():
        # Rules that reach beyond the grid need a model that does, too; when the job is being ended there is no time.
        enough = options.gate and (outcome.interrupted or outcome.reasons.get(name) == WHOLE)
        known = any(scenario.collective == name for scenario, _ in medians)
        models[name] = learner.model() if known and not enough else MeasuredModel(medians)
    share = {"launches": source.launches, "wall_s": outcome.elapsed_s, "inside_collectives_s": source.inside_s}
    return outcome, models, share


def _close(source: LiveSource) -> None:
    try:
        source.close()
    except (KeyboardInterrupt, StopRequestedError):
        source.kill()


def _prove(
    workbench: Workbench,
    options: TuneOptions,
    candidates: Mapping[Scenario, Choice],
    out: Path,
    deadline_s: float,
    listener: Listener,
) -> list[GateResult]:
    if not candidates:
        return []
    listener.stage(f"proving {len(candidates)} choices against the default in fresh launches")
    path = out / CONFIRMATION
    path.unlink(missing_ok=True)
    seeds = iter(range(options.seed + 1, options.seed + 1000))
    with Journal.create(path, workbench.environment) as journal:
        confirmation = Confirmation(
            open_source=lambda: workbench.live_source(next(seeds)),
            record=journal.append,
            baseline=workbench.baseline,
            threshold=options.threshold,
            progress=listener.proof,
        )
        try:
            return confirmation.run(candidates, deadline_s)
        except (LaunchError, KeyboardInterrupt, StopRequestedError) as error:
            listener.note(
                f"proving ended early: {error or type(error).__name__}; what is not proven stays with the default"
            )
            return confirmation.results(candidates)


def _summary(
    options: TuneOptions, outcome: Outcome, gate: Sequence[GateResult], share: Mapping[str, float]
) -> dict[str, Any]:
    kept = [result for result in gate if result.verdict is Verdict.KEPT]
    summary: dict[str, Any] = {
        "seed": options.seed,
        "gated": options.gate,
        "samples": len(outcome.samples),
        "reasons": dict(outcome.reasons),
        "interrupted": outcome.interrupted,
        "share": dict(share),
        "gate": [
            {
                "scenario": [r.scenario.collective, r.scenario.nodes, r.scenario.ppn, r.scenario.size_bytes],
                "choice": str(r.choice),
                "verdict": r.verdict.value,
                "ratios": [round(ratio, 4) for ratio in r.ratios],
                "reason": r.reason,
            }
            for r in gate
        ],
    }
    if kept:
        summary["speedup"] = geometric_mean([r.speedup for r in kept])
        summary["speedup_low"] = geometric_mean([r.low for r in kept])
        summary["speedup_worst"] = min(r.low for r in kept)
    return summary


def _plain(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items()}


def require_writable(directory: Path) -> None:
    """Raises InputError where nothing could be written there: better before the measuring than after."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".colltune-probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot write to {directory}: {error.strerror}", "Give another directory by --out") from error


__all__ = ["ColltuneError", "Listener", "TuneOptions", "TuneResult", "require_writable", "tune"]
