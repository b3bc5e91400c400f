"""Tunes a simulated cluster: the same learners, gate and rules as ``tune``, with no MPI and no hardware.

The simulator gives the same time for the same call always. So that the gate has something to do, repetitions and
launches carry noise (``STEADY``); the comparison of files in force is left out, for no library reads these rules.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.bench.simulated import Simulation
from colltune.bench.workbench import check_collectives
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.medians import medians_of
from colltune.core.model import Model
from colltune.core.proven import ProvenDecision
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.core.topology import Top
from colltune.distill.decide import decide, unproven_rules
from colltune.emit.simulated import SimulatedEmitter
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.measure.smpi import STEADY, SmpiSource
from colltune.prove.candidates import candidates_of, proven_rules
from colltune.prove.fresh_launches import Confirmation
from colltune.schedule.contract import Packer
from colltune.schedule.filling import FillingPacker
from colltune.schedule.topology_files import load_topology
from colltune.search.campaign import Campaign, Outcome
from colltune.search.models import models_of
from colltune.session.options import Listener, TuneOptions, TuneResult, summarize
from colltune.store.journal import Journal
from colltune.store.tuning import CONFIRMATION, JOURNAL, Tuning, save_tuning

_MEASURING_SHARE = 0.6
_PROOF_EFFORT = Effort(fewest=20)


@dataclass
class _Clock:
    """The time of whoever waits longer: the user for the simulator, or the owner of the machine that is simulated."""

    begin_s: float = field(default_factory=time.monotonic)
    sources: list[SmpiSource] = field(default_factory=list)

    def __call__(self) -> float:
        return max(time.monotonic() - self.begin_s, self.machine_s)

    @property
    def machine_s(self) -> float:
        return sum(source.now_s for source in self.sources)

    def watched(self, source: SmpiSource) -> SmpiSource:
        self.sources.append(source)
        return source


def tune_simulated(
    simulation: Simulation,
    options: TuneOptions,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
) -> TuneResult:
    """Tunes, and leaves in ``out`` the rules (of our own format: no MPI reads them) and every measurement.

    ``options.budget_s`` holds for the time on the clock and for that of the simulated machine. Raises ColltuneError.
    """
    listener, stop = listener or Listener(), stop or StopRequest()
    if options.reproducible:
        raise InputError("--reproducible is about the bits of a real library's results", "Leave it out with --simulate")
    options.require_something()
    collectives, nothing = check_collectives(options.collectives, simulation.catalogue)
    listener.stage("checking the simulator's algorithms")
    spaces = {
        name: _candidates(simulation.space(name, options.smallest_bytes, options.largest_bytes)) for name in collectives
    }
    clock = _Clock()
    with Journal.begin(out / JOURNAL, simulation.environment, options.resume) as journal:
        outcome, models = _measure(simulation, options, spaces, journal, listener, clock, stop)
    share = {"launches": 1, "launch_s": 0.0, "wall_s": outcome.elapsed_s, "inside_collectives_s": clock.machine_s}
    decided = {
        name: decide(models[name], spaces[name], outcome.samples, simulation.baseline, options.threshold)
        for name in spaces
    }
    gate: list[ProvenDecision] = []
    if options.gate:
        gate = _prove(simulation, options, decided, outcome, out, listener, clock, stop)
        rule_sets = proven_rules(simulation, spaces, decided, gate)
    else:
        rule_sets = unproven_rules(simulation, spaces, models, outcome.samples)
    outcome = replace(outcome, interrupted=stop.made)
    files = SimulatedEmitter().emit(list(rule_sets.values()))
    summary = summarize(options, outcome, gate, share)
    summary |= {"reproducible": [], "total_s": time.monotonic() - clock.begin_s, "machine_s": clock.machine_s}
    named = {f"simulated/{name}": data for name, data in files.items()}
    tuning = Tuning(simulation.environment, rule_sets, named, {}, summary)
    save_tuning(out, tuning)
    return TuneResult(tuning, outcome, gate, nothing)


def _candidates(space: Space) -> Space:
    """Without the default, which is one of the others: it need not be measured twice."""

    def legal(scenario: Scenario) -> tuple[Choice, ...]:
        return tuple(choice for choice in space.choices(scenario) if choice != DEFAULT)

    return Space(space.collective, space.scenarios, legal)


def _measure(
    simulation: Simulation,
    options: TuneOptions,
    spaces: Mapping[str, Space],
    journal: Journal,
    listener: Listener,
    clock: _Clock,
    stop: StopRequest,
) -> tuple[Outcome, dict[str, Model]]:
    source = clock.watched(simulation.source(options.seed, noise=STEADY))
    learners = {name: DecisionLearner(space, options.seed) for name, space in spaces.items()}
    listener.stage("measuring")
    campaign = Campaign(
        source=source,
        spaces=spaces,
        learners=learners,
        record=journal.append,
        budget_s=options.budget_s * _MEASURING_SHARE,
        effort=options.effort,
        known=journal.samples,
        progress=listener.progress,
        clock=clock,
        stop=stop,
        packer=_packer(simulation, options),
    )
    outcome = campaign.run()
    return outcome, models_of(learners, outcome, medians_of(outcome.samples), grid_alone=options.gate)


def _packer(simulation: Simulation, options: TuneOptions) -> Packer | None:
    """For the parts of the network that measure at once, as far as ``options`` do not say otherwise."""
    topology = simulation.cluster.topology()
    if options.topology is not None:
        topology = load_topology(options.topology, topology.hosts)
    return None if topology.top is Top.ALONE else FillingPacker(topology)


def _prove(
    simulation: Simulation,
    options: TuneOptions,
    decided: Mapping[str, Mapping[Scenario, Choice]],
    outcome: Outcome,
    out: Path,
    listener: Listener,
    clock: _Clock,
    stop: StopRequest,
) -> list[ProvenDecision]:
    """The gate on fresh launches, whose noise is drawn anew."""
    candidates = candidates_of(simulation, decided, medians_of(outcome.samples))
    if not candidates:
        return []
    listener.stage(f"proving {len(candidates)} choices against the default in fresh simulated launches")
    (out / CONFIRMATION).unlink(missing_ok=True)
    with Journal.create(out / CONFIRMATION, simulation.environment) as journal:

        def launch() -> SmpiSource:
            number = 1 + len(clock.sources)
            return clock.watched(simulation.source(options.seed, number, STEADY))

        confirmation = Confirmation(
            open_source=launch,
            record=journal.append,
            baseline=simulation.baseline,
            threshold=options.threshold,
            effort=_PROOF_EFFORT,
            progress=listener.proof,
            clock=clock,
        )
        try:
            with stop.cuts():
                return confirmation.run(candidates, options.budget_s)
        except INTERRUPTIONS:
            listener.note("proving ended early; what is not proven stays with the default")
            return confirmation.results(candidates)
