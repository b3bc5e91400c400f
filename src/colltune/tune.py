"""Tunes: measures, decides, proves, writes. What `colltune tune` and the Python API do."""

from __future__ import annotations

import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from colltune.campaign import WHOLE, Campaign, Outcome, Progress, StopRequestedError, broken_choices
from colltune.confirm import Confirmation
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import ColltuneError, InputError, LaunchError
from colltune.core.model import Model
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample, Status
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import Space
from colltune.distill.reproducible import distill_reproducible
from colltune.distill.rules import distill, distill_proven
from colltune.distill.selection import Selection
from colltune.learn.forest import ForestLearner
from colltune.learn.measured import MeasuredModel
from colltune.measure.contract import Effort
from colltune.measure.live import LiveSource
from colltune.replay import departing, make_safe
from colltune.store.journal import Journal
from colltune.store.tuning import CONFIRMATION, JOURNAL, Tuning, save_tuning
from colltune.verify.gate import THRESHOLD, GateResult, Verdict, fewest_groups, judge
from colltune.workbench import Workbench, check_collectives

# Of the budget, what the first measuring may take; the rest is for proving what it found.
_MEASURING_SHARE = 0.6
# Where the job is ended from outside there is no time for fresh launches. What was seen in the one launch there was has
# to be clearer then.
_ONE_LAUNCH_THRESHOLD = 1.10


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
    decided = {name: _decide(models[name], spaces[name], outcome.samples, options.threshold) for name in spaces}
    medians = _medians(outcome.samples)
    fixed = _reproducible(workbench, options, decided, outcome, medians, listener)
    for name in fixed:
        del decided[name]
    gate: list[GateResult] = []
    if options.gate:
        candidates = _candidates(workbench, decided, medians)
        if outcome.interrupted:
            gate = [_judge_one_launch(s, c, outcome.samples, options.threshold) for s, c in candidates.items()]
        else:
            left_s = options.budget_s - (time.monotonic() - started_s)
            gate = _prove(workbench, options, candidates, out, time.monotonic() + max(left_s, 5.0), listener)
        rule_sets = _proven_rules(workbench, spaces, decided, gate)
    else:
        listener.note("the gate is off: nothing was measured twice, and rules may be slower than the default")
        rule_sets = {
            name: distill(models[name], spaces[name], medians, workbench.catalogue.collective(name).basis)
            for name in decided
        }
    rule_sets |= fixed
    summary = _summary(options, outcome, gate, share) | {"reproducible": sorted(fixed)}

    def emitted(decisions: Mapping[str, RuleSet]) -> Tuning:
        files = {f"mpich/{name}": data for name, data in workbench.emitter.emit(list(decisions.values())).items()}
        variables = workbench.emitter.environment(Path("{directory}/mpich"))
        return Tuning(workbench.environment, decisions, files, variables, summary)

    tuning = emitted(rule_sets)
    if not outcome.interrupted:
        listener.stage("replaying every collective under the new file")
        with tempfile.TemporaryDirectory(prefix=".replay-", dir=out) as workplace:
            tuning, found = make_safe(workbench, tuning, Path(workplace), emitted)
        for text in found:
            listener.note(text)
        for name in sorted(fixed.keys() - departing(tuning.rule_sets)):
            listener.note(f"{name} is at the library's default, so its results are not reproducible")
    summary["total_s"] = time.monotonic() - started_s
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
    medians = _medians(outcome.samples)
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


def _medians(samples: Sequence[Sample]) -> dict[tuple[Scenario, Choice], float]:
    """Median time by pair in seconds, over all its samples; pairs of which a sample failed are left out."""
    broken = broken_choices(samples)
    times: defaultdict[tuple[Scenario, Choice], list[float]] = defaultdict(list)
    for sample in samples:
        if sample.status is Status.OK and (sample.scenario.collective, sample.choice) not in broken:
            times[sample.scenario, sample.choice].append(sample.time_s)
    return {pair: median(values) for pair, values in times.items()}


def _decide(model: Model, space: Space, samples: Sequence[Sample], threshold: float) -> dict[Scenario, Choice]:
    """The choice for every scenario of the grid that was measured at all in its shape."""
    measured = _medians(samples)
    selection = Selection(model, space, measured)
    shapes = {(s.nodes, s.ppn) for s, _ in measured if s.collective == space.collective}
    scenarios = [s for s in space.scenarios if (s.nodes, s.ppn) in shapes]
    selection.prepare(scenarios)
    broken = broken_choices(samples)

    def promising(scenario: Scenario, choice: Choice) -> bool:
        """Measured no faster than it would have to be proven: not worth the proof."""
        times = [measured.get((scenario, one)) for one in (DEFAULT, choice)]
        return times[0] is None or times[1] is None or times[0] > threshold * times[1]

    decided = {scenario: selection.best(scenario) for scenario in scenarios}
    return {s: c if (s.collective, c) not in broken and promising(s, c) else DEFAULT for s, c in decided.items()}


def _candidates(
    workbench: Workbench,
    decided: Mapping[str, Mapping[Scenario, Choice]],
    medians: Mapping[tuple[Scenario, Choice], float],
) -> dict[Scenario, Choice]:
    """The decisions that depart from the default, the most promising first."""

    def gain(scenario: Scenario, choice: Choice) -> float:
        """Of the whole job before its parts, and by the ratio that was measured."""
        default, chosen = medians.get((scenario, DEFAULT)), medians.get((scenario, choice))
        ratio = default / chosen if default and chosen else 1.0
        return ratio * math.sqrt(scenario.ranks / (workbench.nodes * workbench.ppn))

    found = [(s, c) for choices in decided.values() for s, c in choices.items() if c != DEFAULT]
    return dict(sorted(found, key=lambda pair: gain(*pair), reverse=True))


def _judge_one_launch(scenario: Scenario, choice: Choice, samples: Sequence[Sample], threshold: float) -> GateResult:
    """The gate without fresh launches: the repetitions of the campaign's own launch, cut into groups."""
    groups = fewest_groups()
    found = {s.choice: s for s in samples if s.scenario == scenario and s.status is Status.OK}
    pair = [found[one].times_s for one in (DEFAULT, choice) if one in found]
    ratios: list[float] = []
    if len(pair) == 2 and min(map(len, pair)) >= groups:
        parts = [
            [times[i * len(times) // groups : (i + 1) * len(times) // groups] for i in range(groups)] for times in pair
        ]
        ratios = [median(default) / median(chosen) for default, chosen in zip(*parts, strict=True)]
    result = judge(scenario, choice, ratios, groups, max(threshold, _ONE_LAUNCH_THRESHOLD))
    verdict = Verdict.KEPT if result.verdict is Verdict.KEPT else Verdict.REFUSED
    return GateResult(
        scenario, choice, verdict, result.ratios, f"{result.reason}, all of one launch: the job was ended"
    )


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


def _proven_rules(
    workbench: Workbench,
    spaces: Mapping[str, Space],
    decided: Mapping[str, Mapping[Scenario, Choice]],
    gate: Sequence[GateResult],
) -> dict[str, RuleSet]:
    kept = {result.scenario for result in gate if result.verdict is Verdict.KEPT}
    return {
        name: distill_proven(
            {scenario: choice if scenario in kept else DEFAULT for scenario, choice in choices.items()},
            spaces[name],
            workbench.catalogue.collective(name).basis,
        )
        for name, choices in decided.items()
    }


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
