"""The measuring of a tuning: one launch of the job, a learner for each collective, and the plan of the time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from colltune.bench.contract import Bench
from colltune.bench.parallel import lanes_of
from colltune.core.errors import LaunchError
from colltune.core.medians import medians_of
from colltune.core.proven import StopReason, TimeShare
from colltune.core.sample import Sample, Scenario, Status
from colltune.core.space import Model, Space
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.core.topology import Topology
from colltune.core.units import format_count
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Launch
from colltune.prove.replay.on_workbench import replay_slice
from colltune.prove.time_plan import TimePlan
from colltune.search.campaign import Campaign, Outcome, models_of
from colltune.search.contenders import contenders
from colltune.search.reuse import LOOK_SHARE, Reused, reused
from colltune.session.tuning.options import Listener, TuneOptions
from colltune.store.earlier import Earlier
from colltune.store.journal import Journal

# What competes is looked at again in so many launches, where one takes less than a part of the time that is left, and
# within a part of that.
_FURTHER_LAUNCHES, _CHEAP_LAUNCH, _AGAIN_SHARE = 2, 0.01, 0.1
# The time of a launch with its end, over that of a launch until it is ready.
_LAUNCH_AND_END = 1.3


@dataclass(frozen=True)
class CampaignResult:
    """The result of a campaign. ``models``: by collective. ``share``: how the time of its launches was spent.

    ``holding``: the collectives of which what was known before was found to hold; ``changed``: not to hold.
    ``topology``: of the job, where disjoint parts of it measure at once; else None.
    """

    outcome: Outcome
    models: Mapping[str, Model]
    share: TimeShare
    plan: TimePlan
    holding: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    topology: Topology | None = None


@dataclass(frozen=True)
class Measuring:
    """Measures ``spaces`` within ``options.budget_s`` from ``began_s`` on, by the bench's clock.

    ``of_others``: what other jobs of this machine measured. ``least_gain``: of collectives that it was found to hold
    of, what a second of measuring has to bring (see Campaign).
    """

    bench: Bench
    options: TuneOptions
    spaces: Mapping[str, Space]
    journal: Journal
    listener: Listener
    stop: StopRequest
    began_s: float
    of_others: Earlier | None = None
    least_gain: Callable[[Collection[str]], Mapping[str, float]] = lambda _holding: {}

    def run(self) -> CampaignResult:
        """Runs the campaign. Raises LaunchError where the job does not start."""
        bench, options, listener, now_s = self.bench, self.options, self.listener, self.bench.now_s
        slice_ = None
        if bench.library is not None:
            listener.stage("looking at how long the conformance check takes")
            slice_ = replay_slice(bench.library)

        def on_event(kind: str, facts: Mapping[str, object]) -> None:
            self.journal.note(kind, {name: str(value) for name, value in facts.items()})

        source = bench.launch(options.seed, on_event=on_event)
        learners = {name: DecisionLearner(space, options.seed) for name, space in self.spaces.items()}
        campaign = self._campaign(source, learners)
        topology = bench.topology(options.topology, listener.note)
        try:
            listener.stage(bench.start_text)
            before_s = now_s()
            source.start()
            launch_s = now_s() - before_s
            launch_with_end_s = _LAUNCH_AND_END * launch_s
            replay_s = 0.0 if slice_ is None else slice_.whole_s(launch_with_end_s, len(self.spaces))
            plan = self._plan(launch_with_end_s, replay_s)
            source.until_s = plan.measured_by_s + plan.grace_s
            before, resumed = Reused(), self.journal.samples
            if not resumed or self.of_others is not None:
                with suppress(*INTERRUPTIONS), self.stop.cuts():
                    before = reused(
                        bench,
                        source,
                        self.spaces,
                        self.journal,
                        options.effort,
                        listener.note,
                        self.of_others,
                        LOOK_SHARE * plan.total_s,
                    )
                    campaign.known = (*resumed, *before.samples)
                    campaign.least_gain = self.least_gain(before.holding)
            listener.stage("measuring")
            campaign.lanes = lanes_of(bench, source, topology, next(iter(self.spaces)), listener.note)
            campaign.budget_s = plan.measured_by_s - now_s()
            outcome = campaign.run()
            _tell_refused(outcome.samples, listener)
            if outcome.interrupted:
                source.kill()
        finally:
            before_s = now_s()
            source.close()
        launch_s += now_s() - before_s
        share = TimeShare(source.launches, outcome.elapsed_s, source.inside_s, launch_s)
        # Where the grid was more than there was time for, the proof needs the time as well.
        if options.gate and all(reason == StopReason.WHOLE for reason in outcome.reasons.values()):
            known = {sample.scenario for sample in campaign.known}
            outcome = self._with_contenders(outcome, known, plan, source.launches)
        models = models_of(learners, outcome, medians_of(outcome.for_choosing), grid_alone=options.gate)
        lanes = None if campaign.lanes is None else campaign.lanes.packer.topology
        return CampaignResult(outcome, models, share, plan, before.holding, before.changed, lanes)

    def _with_contenders(self, outcome: Outcome, known: Collection[Scenario], plan: TimePlan, launches: int) -> Outcome:
        """What competes in ``outcome``, but for what is ``known``, looked at again in further launches, where cheap."""
        bench, left_s = self.bench, plan.proven_by_s - self.bench.now_s()
        most_s = _AGAIN_SHARE * left_s / _FURTHER_LAUNCHES - plan.launch_s
        if bench.by_launches or plan.launch_s > _CHEAP_LAUNCH * left_s:
            return outcome
        new = [sample for sample in outcome.for_choosing if sample.scenario not in known]
        points = contenders(new, self.spaces, bench.baseline, most_s)
        for number in range(launches + 1, launches + 1 + _FURTHER_LAUNCHES) if points else ():
            self.listener.stage(f"looking again at {format_count(len(points), 'shape and size', 'shapes and sizes')}")
            source = bench.launch(self.options.seed + number)
            source.until_s = plan.proven_by_s - (1.0 - _AGAIN_SHARE) * left_s + plan.grace_s
            again: list[Sample] = []
            try:
                with self.stop.cuts():
                    for _, samples in source.measure(iter(points), self.options.effort):
                        looked = [replace(sample, launch=number) for sample in samples]
                        self.journal.append(looked)
                        again += looked
            except (LaunchError, *INTERRUPTIONS) as error:
                self.listener.note(f"looking again ended early: {error or type(error).__name__}")
                break
            finally:
                source.close()
                if not source.disturbed:
                    outcome = replace(outcome, samples=(*outcome.samples, *again))
        return outcome

    def _campaign(self, source: Launch, learners: Mapping[str, Learner]) -> Campaign:
        return Campaign(
            source=source,
            spaces=self.spaces,
            learners=learners,
            record=self.journal.append,
            budget_s=self.options.budget_s,
            effort=self.options.effort,
            known=self.journal.samples,
            progress=self.listener.progress,
            clock=self.bench.now_s,
            expected_gain=self.options.expected_gain,
            stop=self.stop,
        )

    def _plan(self, launch_s: float, replay_s: float) -> TimePlan:
        """The plan of the time, once the first launch is ready; tells the listener where it extends the budget."""
        options, set_up_s = self.options, self.bench.now_s() - self.began_s
        files = self.bench.library is not None
        runtime_s = None if options.allowed_s is None else options.runtime_s
        plan = TimePlan(options.budget_s, self.began_s, set_up_s, launch_s, replay_s, options.gate, files, runtime_s)
        self.listener.planned(self.began_s + plan.total_s)
        if plan.extension is not None:
            self.listener.note(plan.extension)
        return plan


def _tell_refused(samples: Sequence[Sample], listener: Listener) -> None:
    refused = {sample.scenario: sample.detail for sample in samples if sample.status is Status.UNMEASURED}
    if refused:
        scenario, why = next(iter(refused.items()))
        count = format_count(len(refused), "point")
        listener.note(f"the agent refused {count}, left to the library's default, as {scenario}: {why}")
