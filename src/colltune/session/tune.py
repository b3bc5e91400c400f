"""Tunes: measures, decides, proves, writes. What `colltune tune` and the Python API do."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from colltune.bench.workbench import Workbench, check_collectives
from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.medians import broken_choices, medians_of
from colltune.core.model import Model
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample, Status
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import Space
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.core.topology import Topology
from colltune.core.units import format_count
from colltune.distill.decide import decide
from colltune.distill.reproducible import distill_reproducible
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.learn.forest import ForestLearner
from colltune.mpi.job import Scheduler
from colltune.prove.candidates import candidates_of, judge_one_launch, provisional
from colltune.prove.proof import Judged, Proof, workplace
from colltune.prove.replay import ReplaySlice, departing, make_safe, replay_slice
from colltune.prove.time_plan import TimePlan
from colltune.schedule.topology_files import load_topology, site_file
from colltune.search.campaign import Campaign, Outcome
from colltune.search.models import models_of
from colltune.search.parallel import packer_of
from colltune.search.reuse import begin_journal, reused
from colltune.session.decisions import Decisions
from colltune.session.merging import Held, hold
from colltune.session.options import Listener, TuneOptions, TuneResult, budget_summary, summarize
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning

# A launch with its end, over a launch until it is ready.
_LAUNCH_AND_END = 1.3


def tune(
    workbench: Workbench,
    options: TuneOptions,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
    began_s: float | None = None,
) -> TuneResult:
    """Measures the collectives, and leaves in ``out`` the files that the library loads, and every measurement.

    ``options.budget_s`` holds for all of it, from ``began_s`` (of time.monotonic; None: from now) on. Raises
    ColltuneError; what was measured by then is in the journal, and ``options.resume`` goes on from it.
    """
    listener, stop = listener or Listener(), stop or StopRequest()
    options.require_something()
    collectives, nothing = check_collectives(options.collectives, workbench.catalogue)
    for name, reason in nothing.items():
        listener.note(f"{name}: {reason}")
    spaces = {name: _space(workbench, options, name) for name in collectives}
    spaces = {name: space for name, space in spaces.items() if space.scenarios}
    if not spaces:
        raise InputError(
            f"this job of {workbench.nodes} x {workbench.ppn} ranks can form none of the calls to tune",
            "Give --ppn, sizes or a profile that fit it",
        )
    began_s, since_s = time.monotonic() if began_s is None else began_s, time.time()
    held = hold(out, workbench.environment, listener.note, gated=options.gate)
    with begin_journal(out / JOURNAL, workbench.environment, options.resume, listener.note) as journal:
        outcome, models, share, plan = _measure(workbench, options, spaces, journal, listener, stop, began_s)
    decisions = _decided(workbench, options, spaces, models, outcome, held, listener)
    gate: Sequence[ProvenDecision] = []
    rest_s = 0.0
    if options.gate:
        judged = _gate(_proof(decisions, options, out, plan, listener, stop), decisions)
        gate, rest_s = judged.gate, judged.rest_s
    else:
        listener.note("the gate is off: nothing was measured twice, and rules may be slower than the default")
    replayed = None if stop.made else _replayed(decisions, gate, out, listener, stop)
    unsafe: set[str] = set()
    if replayed is None:
        gate = provisional(gate, "the files were not replayed")
        tuning = decisions.put_off(gate)
    else:
        tuning, unsafe = replayed
        tuning = decisions.handed_over(gate, tuning, unsafe, options.threshold)
        gate = _after_replay(gate, unsafe)
    outcome = replace(outcome, interrupted=stop.made)
    summary = summarize(options, outcome, gate, share)
    summary |= {
        "reproducible": sorted(decisions.fixed.keys() & departing(tuning.rule_sets)) if replayed is not None else [],
        "job": [workbench.nodes, workbench.ppn],
    }
    summary |= budget_summary(plan, time.monotonic() - plan.began_s, gate, rest_s)
    if not options.resume:
        summary["since_s"] = since_s
    tuning = replace(tuning, summary=decisions.summary(summary, gate, unsafe, cut_off=replayed is None))
    save_tuning(out, tuning)
    return TuneResult(tuning, outcome, gate, nothing)


def _decided(
    workbench: Workbench,
    options: TuneOptions,
    spaces: Mapping[str, Space],
    models: Mapping[str, Model],
    outcome: Outcome,
    held: Held,
    listener: Listener,
) -> Decisions:
    samples = outcome.samples
    choices = {
        name: decide(models[name], spaces[name], samples, workbench.baseline, options.threshold, workbench.shared)
        for name in spaces
    }
    fixed = _reproducible(workbench, choices, outcome, listener) if options.reproducible else {}
    to_prove = {name: found for name, found in choices.items() if name not in fixed}
    return Decisions(workbench, spaces, models, samples, to_prove, fixed, held, options.gate)


def _space(workbench: Workbench, options: TuneOptions, collective: str) -> Space:
    if options.stakes is None:
        return workbench.space(collective, options.smallest_bytes, options.largest_bytes)
    fitting = [
        scenario
        for scenario in sorted(options.stakes.share)
        if scenario.collective == collective and scenario.nodes <= workbench.nodes and scenario.ppn <= workbench.ppn
    ]
    return Space(collective, tuple(fitting), workbench.legal)


def _proof(
    decisions: Decisions,
    options: TuneOptions,
    out: Path,
    plan: TimePlan,
    listener: Listener,
    stop: StopRequest,
) -> Proof:
    return Proof(
        bench=decisions.bench,
        out=out,
        seed=options.seed,
        threshold=options.threshold,
        deadline_s=plan.proven_by_s,
        grace_s=plan.grace_s,
        launch_s=plan.launch_s,
        medians=medians_of(decisions.samples),
        samples=decisions.samples,
        effort=options.effort,
        grid=[scenario for space in decisions.spaces.values() for scenario in space.scenarios],
        stage=listener.stage,
        note=listener.note,
        progress=listener.proof,
        stop=stop,
    )


def _gate(proof: Proof, decisions: Decisions) -> Judged:
    """The verdicts on what was decided; from the one launch there was, where the job is being ended."""
    bench = proof.bench
    candidates = candidates_of(bench, decisions.choices, proof.medians)
    if proof.stop.made:
        seen = [
            judge_one_launch(scenario, choice, proof.samples, bench.baseline, proof.threshold)
            for scenario, choice in candidates.items()
        ]
        return Judged(seen, 0.0)
    return proof.judge(candidates, decisions.proven, decisions.tuning)


def _replayed(
    decisions: Decisions, gate: Sequence[ProvenDecision], out: Path, listener: Listener, stop: StopRequest
) -> tuple[Tuning, set[str]] | None:
    """The tuning of what is proven, without the collectives that give a wrong result under it, and these.

    None where the replay was cut off: then nobody knows.
    """
    tuning = decisions.tuning(decisions.proven(gate))
    before = departing(tuning.rule_sets)
    if before:
        listener.stage("replaying every collective under the new file")
    try:
        with stop.cuts(), workplace(out) as place:
            tuning, found = make_safe(decisions.bench, tuning, place, decisions.tuning)
    except INTERRUPTIONS:
        listener.note("the replay was cut off, so nothing of this campaign is proven")
        return None
    for text in found:
        listener.note(text)
    for name in sorted(decisions.fixed.keys() - departing(tuning.rule_sets)):
        listener.note(f"{name} is at the library's default, so its results are not reproducible")
    return tuning, before - departing(tuning.rule_sets)


def _after_replay(gate: Sequence[ProvenDecision], unsafe: Collection[str]) -> list[ProvenDecision]:
    """``gate`` with what the replay took out refused."""
    return [
        replace(result, verdict=Verdict.REFUSED, reason="the replay gave a wrong result under its file")
        if result.verdict is Verdict.KEPT and result.scenario.collective in unsafe
        else result
        for result in gate
    ]


def _reproducible(
    workbench: Workbench,
    decided: Mapping[str, Mapping[Scenario, Choice]],
    outcome: Outcome,
    listener: Listener,
) -> dict[str, RuleSet]:
    """Rules for the reductions by which bits do not change with size.

    They need no proof of speed: the user pays for equal bits, and is told how much.
    """
    rule_sets = {}
    broken, medians = broken_choices(outcome.samples), medians_of(outcome.samples)
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
    began_s: float,
) -> tuple[Outcome, dict[str, Model], dict[str, float], TimePlan]:
    """The one launch of the campaign. Also: models by collective, how the launch's time was spent, the time plan."""
    listener.stage("looking at what the conformance replay takes")
    slice_ = replay_slice(workbench)
    source = workbench.live_source(options.seed, on_event=lambda kind, facts: journal.note(kind, _plain(facts)))
    learners = {name: _learner(space, options, listener) for name, space in spaces.items()}
    topology = _topology(workbench, options, listener)
    campaign = Campaign(
        source=source,
        spaces=spaces,
        learners=learners,
        record=journal.append,
        budget_s=options.budget_s,
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
        plan = _time_plan(options, began_s, launch_s, slice_, listener)
        source.until_s = plan.measured_by_s + plan.grace_s
        if not journal.samples:
            with suppress(*INTERRUPTIONS), stop.cuts():
                campaign.known = reused(workbench, source, spaces, journal, options.effort, listener.note)
        listener.stage("measuring")
        if spaces:
            campaign.packer = packer_of(source, topology, next(iter(spaces)), workbench.ppn, listener.note)
        campaign.budget_s = plan.measured_by_s - time.monotonic()
        outcome = campaign.run()
        _tell_refused(outcome.samples, listener)
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
    return outcome, models, share, plan


def _time_plan(
    options: TuneOptions, began_s: float, launch_s: float, slice_: ReplaySlice, listener: Listener
) -> TimePlan:
    """What is known once the first launch is ready; says so where the budget is too short for anything."""
    launch_s *= _LAUNCH_AND_END
    set_up_s = time.monotonic() - began_s
    plan = TimePlan(options.budget_s, began_s, set_up_s, launch_s, slice_.whole_s(launch_s), options.gate)
    if plan.extension is not None:
        listener.note(plan.extension)
    return plan


def _tell_refused(samples: Sequence[Sample], listener: Listener) -> None:
    refused = {sample.scenario: sample.detail for sample in samples if sample.status is Status.UNMEASURED}
    if refused:
        scenario, why = next(iter(refused.items()))
        count = format_count(len(refused), "point")
        listener.note(f"the agent refused {count}, left to the library's default, as {scenario}: {why}")


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


def _plain(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items()}
