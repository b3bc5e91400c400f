"""Tunes: measures, decides, proves, writes. What `colltune tune` and the Python API do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from colltune.campaign import Campaign, Outcome, Progress, broken_choices
from colltune.conduct import packer_of
from colltune.core.choice import Choice
from colltune.core.errors import ColltuneError, InputError
from colltune.core.model import Model
from colltune.core.rules import RuleSet
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import Space
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.core.topology import Topology
from colltune.decide import candidates_of, decide, judge_one_launch, medians_of, models_of, proven_rules
from colltune.distill.reproducible import distill_reproducible
from colltune.distill.rules import distill
from colltune.emit.live import live_basis
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.learn.forest import ForestLearner
from colltune.learn.stakes import Stakes
from colltune.liveselect import live_files, proven_live
from colltune.measure.contract import Effort
from colltune.mpi.job import Scheduler
from colltune.priors import PriorSources
from colltune.proof import Proof, workplace
from colltune.recheck import begin_journal, reused
from colltune.replay import departing, make_safe
from colltune.schedule.topology_files import load_topology, site_file
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from colltune.verify.gate import THRESHOLD, GateResult, Verdict
from colltune.workbench import Workbench, check_collectives

# Of the budget, what the first measuring may take; the rest is for proving what it found.
_MEASURING_SHARE = 0.4
# What was measured is of no use without a proof, so this long it may take even where the budget is spent.
_SHORTEST_PROOF_S = 5.0


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


def tune(
    workbench: Workbench,
    options: TuneOptions,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
) -> TuneResult:
    """Measures the collectives, and leaves in ``out`` the files that the library loads, and every measurement.

    Raises ColltuneError; what was measured by then is in the journal, and ``options.resume`` goes on from it.
    """
    listener, stop = listener or Listener(), stop or StopRequest()
    if options.budget_s <= 0.0 or options.largest_bytes < options.smallest_bytes:
        raise InputError("the budget and the range of sizes must not be empty", "Give for example --budget 5m")
    collectives, nothing = check_collectives(options.collectives, workbench.catalogue)
    for name, reason in nothing.items():
        listener.note(f"{name}: {reason}")
    spaces = {name: _space(workbench, options, name) for name in collectives}
    spaces = {name: space for name, space in spaces.items() if space.scenarios}
    started_s = time.monotonic()
    since_s = time.time()
    with begin_journal(out / JOURNAL, workbench.environment, options.resume, listener.note) as journal:
        outcome, models, share = _measure(workbench, options, spaces, journal, listener, stop)
    decided = {
        name: decide(
            models[name], spaces[name], outcome.samples, workbench.baseline, options.threshold, workbench.shared
        )
        for name in spaces
    }
    medians = medians_of(outcome.samples)
    fixed = _reproducible(workbench, options, decided, outcome, medians, listener)
    for name in fixed:
        del decided[name]

    def rules_of(results: Sequence[GateResult]) -> dict[str, RuleSet]:
        return proven_rules(workbench, spaces, decided, results) | fixed

    def emitted(decisions: Mapping[str, RuleSet]) -> Tuning:
        return workbench.tuning({name: workbench.expressible(rules) for name, rules in decisions.items()})

    gate: list[GateResult] = []
    if options.gate:
        proof = Proof(
            bench=workbench,
            out=out,
            seed=options.seed,
            threshold=options.threshold,
            deadline_s=max(started_s + options.budget_s, time.monotonic() + _SHORTEST_PROOF_S),
            launch_s=share["launch_s"],
            medians=medians,
            samples=outcome.samples,
            effort=options.effort,
            grid=[scenario for space in spaces.values() for scenario in space.scenarios],
            stage=listener.stage,
            note=listener.note,
            progress=listener.proof,
            stop=stop,
        )
        gate = _gate(proof, decided, outcome, rules_of, emitted)
        rule_sets = rules_of(gate)
    else:
        listener.note("the gate is off: nothing was measured twice, and rules may be slower than the default")
        rule_sets = fixed | {
            name: distill(models[name], spaces[name], medians, workbench.catalogue.collective(name).basis)
            for name in decided
        }
    tuning = emitted(rule_sets)
    rule_sets = dict(tuning.rule_sets)
    if not stop.made:
        tuning = _replayed(workbench, tuning, out, emitted, listener, stop)
        for name in sorted(fixed.keys() - departing(tuning.rule_sets)):
            listener.note(f"{name} is at the library's default, so its results are not reproducible")
    live = dict(fixed if options.gate else rule_sets)
    if options.gate:
        basis_of = partial(live_basis, workbench.catalogue)
        live |= proven_rules(workbench, spaces, decided, proven_live(gate, options.threshold), basis_of)
    unsafe = departing(rule_sets) - departing(tuning.rule_sets)
    live = {name: rules for name, rules in live.items() if name not in unsafe}
    tuning = replace(tuning, files={**tuning.files, **live_files(workbench, live)})
    outcome = replace(outcome, interrupted=stop.made)
    summary = summarize(options, outcome, gate, share)
    summary |= {"reproducible": sorted(fixed), "total_s": time.monotonic() - started_s}
    if not options.resume:
        summary["since_s"] = since_s
    tuning = replace(tuning, summary=summary)
    save_tuning(out, tuning)
    return TuneResult(tuning, outcome, gate, nothing)


def _space(workbench: Workbench, options: TuneOptions, collective: str) -> Space:
    if options.stakes is None:
        return workbench.space(collective, options.smallest_bytes, options.largest_bytes)
    fitting = [
        scenario
        for scenario in sorted(options.stakes.share)
        if scenario.collective == collective and scenario.nodes <= workbench.nodes and scenario.ppn <= workbench.ppn
    ]
    return Space(collective, tuple(fitting), workbench.legal)


def _gate(
    proof: Proof,
    decided: Mapping[str, Mapping[Scenario, Choice]],
    outcome: Outcome,
    rules_of: Callable[[Sequence[GateResult]], dict[str, RuleSet]],
    emit: Callable[[Mapping[str, RuleSet]], Tuning],
) -> list[GateResult]:
    """The verdicts on what was decided; from the one launch there was, where the job is being ended."""
    bench = proof.bench
    candidates = candidates_of(bench, decided, proof.medians)
    if proof.stop.made:
        return [
            judge_one_launch(scenario, choice, outcome.samples, bench.baseline, proof.threshold)
            for scenario, choice in candidates.items()
        ]
    return proof.run(candidates, rules_of, emit)


def _replayed(
    workbench: Workbench,
    tuning: Tuning,
    out: Path,
    emitted: Callable[[Mapping[str, RuleSet]], Tuning],
    listener: Listener,
    stop: StopRequest,
) -> Tuning:
    """``tuning`` without the collectives that give a wrong result under it; as it is, where that was cut off."""
    listener.stage("replaying every collective under the new file")
    try:
        with stop.cuts(), workplace(out) as place:
            tuning, found = make_safe(workbench, tuning, place, emitted)
    except INTERRUPTIONS:
        found = ["the replay was cut off; make up for it by colltune check"]
    for text in found:
        listener.note(text)
    return tuning


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


def _measure(
    workbench: Workbench,
    options: TuneOptions,
    spaces: Mapping[str, Space],
    journal: Journal,
    listener: Listener,
    stop: StopRequest,
) -> tuple[Outcome, dict[str, Model], dict[str, float]]:
    """The one launch of the campaign. Also: models by collective, and how the launch's time was spent."""
    source = workbench.live_source(options.seed, on_event=lambda kind, facts: journal.note(kind, _plain(facts)))
    learners = {name: _learner(space, options, listener) for name, space in spaces.items()}
    topology = _topology(workbench, options, listener)
    campaign = Campaign(
        source=source,
        spaces=spaces,
        learners=learners,
        record=journal.append,
        budget_s=options.budget_s * _MEASURING_SHARE,
        effort=options.effort,
        known=journal.samples,
        progress=listener.progress,
        stakes=options.stakes,
        stop=stop,
    )
    try:
        listener.stage("starting the MPI job")
        before_s = time.monotonic()
        source.start()
        launch_s = time.monotonic() - before_s
        if not journal.samples:
            with suppress(*INTERRUPTIONS), stop.cuts():
                campaign.known = reused(workbench, source, spaces, journal, options.effort, listener.note)
        listener.stage("measuring")
        if spaces:
            campaign.packer = packer_of(source, topology, next(iter(spaces)), workbench.ppn, listener.note)
        outcome = campaign.run()
        if outcome.interrupted:
            source.kill()
    finally:
        before_s = time.monotonic()
        source.close()
    launch_s += time.monotonic() - before_s
    models = models_of(learners, outcome, medians_of(outcome.samples), grid_alone=options.gate)
    share = {
        "launches": source.launches,
        "launch_s": launch_s,
        "wall_s": outcome.elapsed_s,
        "inside_collectives_s": source.inside_s,
    }
    return outcome, models, share


def _topology(workbench: Workbench, options: TuneOptions, listener: Listener) -> Topology:
    """Of the job's nodes. Raises InputError where the user gave one that does not fit."""
    hosts = workbench.job.names[: workbench.nodes]
    if options.topology is not None:
        return load_topology(options.topology, hosts)
    of_site = site_file(workbench.process_environment)
    if workbench.job.scheduler is Scheduler.SLURM and len(hosts) > 1 and of_site is not None:
        try:
            return load_topology(str(of_site), hosts)
        except InputError as error:
            listener.note(f"{error}; points are measured one at a time")
    return Topology.serial(hosts)


def _learner(space: Space, options: TuneOptions, listener: Listener) -> Learner:
    """Starts from the prior where there is one that knows the space."""
    prior = options.prior.prior(space, listener.note) if options.prior is not None else None
    return ForestLearner(space, options.seed) if prior is None else DecisionLearner(space, options.seed, prior=prior)


def summarize(
    options: TuneOptions, outcome: Outcome, gate: Sequence[GateResult], share: Mapping[str, float]
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


def gate_summary(gate: Sequence[GateResult]) -> dict[str, Any]:
    """The verdicts, and what the kept decisions bring."""
    kept = [result for result in gate if result.verdict is Verdict.KEPT]
    summary: dict[str, Any] = {
        "gate": [
            {
                "scenario": [r.scenario.collective, r.scenario.nodes, r.scenario.ppn, r.scenario.size_bytes],
                "choice": str(r.choice),
                "verdict": r.verdict.value,
                "ratios": [round(ratio, 4) for ratio in r.ratios],
                "low": round(r.low, 4),
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
