"""The proof within the time that is left: choices in fresh launches first, then the files that a library loads.

Before it stand its candidates, and behind it the rules that follow from its decisions.
"""

import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from statistics import median
from typing import Protocol

from colltune.bench.contract import Bench, LibraryBench
from colltune.bench.parallel import Lanes
from colltune.core.disturbance import Disturbance
from colltune.core.errors import LaunchError
from colltune.core.medians import medians_of
from colltune.core.proven import Decision, Verdict, Why, fewest_groups, lower_bound
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Space, Weight
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.core.switchback import Standing
from colltune.core.topology import Topology
from colltune.core.units import format_count
from colltune.distill.decide import Baseline, Decided
from colltune.distill.minimal_rules import distill_proven
from colltune.measure.contract import Effort, Source
from colltune.prove.audit.audit import EFFORT, Audit
from colltune.prove.audit.claims import ProofTime, claims_of
from colltune.prove.audit.worth import captured_by
from colltune.prove.compare.in_force import FilesComparison, longest_s
from colltune.prove.time_plan import FEWEST_FILE_LAUNCHES
from colltune.schedule.filling import FillingPacker
from colltune.site.index_rows import PairedRatio
from colltune.store.journal import Journal
from colltune.store.tuning import CONFIRMATION, Tuning

# A job that is ended from outside leaves no time for fresh launches. Then the difference in the one launch must be
# larger.
_ONE_LAUNCH_THRESHOLD = 1.10


def judge_one_launch(
    scenario: Scenario, choice: Choice, samples: Sequence[Sample], baseline: Baseline, threshold: float
) -> Decision:
    """A proof's comparison on the repetitions of the campaign's own launch, cut into groups. It proves nothing."""
    groups = fewest_groups()
    measured = {s.choice: s for s in samples if s.scenario == scenario and s.status is Status.OK}
    pair = [measured[side].times_s for side in (baseline(scenario), choice) if side in measured]
    ratios: list[float] = []
    if len(pair) == 2 and min(map(len, pair)) >= groups:
        parts = [
            [times[i * len(times) // groups : (i + 1) * len(times) // groups] for i in range(groups)] for times in pair
        ]
        ratios = [median(default) / median(chosen) for default, chosen in zip(*parts, strict=True)]
    least = max(threshold, _ONE_LAUNCH_THRESHOLD)
    faster = lower_bound(ratios) > least
    verdict = Verdict.PROVISIONAL if faster else Verdict.REFUSED
    text = f"{'' if faster else 'not '}{least:.2f} times as fast in each part of its one launch"
    return Decision(scenario, choice, verdict, tuple(ratios), f"{text}; the job was ended before the proof")


def provisional(decisions: Sequence[Decision], missing: str, why: str = "the job was ended") -> list[Decision]:
    """``decisions``, those kept made provisional: ``missing`` was not done, ``why`` is what kept it from it."""
    return [decision.if_kept(Verdict.PROVISIONAL, f"{missing}: {why}") for decision in decisions]


def proven_rules(
    bench: Bench,
    spaces: Mapping[str, Space],
    decided: Mapping[str, Mapping[Scenario, Choice]],
    decisions: Sequence[Decision],
    basis_of: Callable[[str], SizeBasis] | None = None,
    accepted: Collection[Verdict] = frozenset({Verdict.KEPT}),
) -> dict[str, RuleSet]:
    """The rules that make the choices with an ``accepted`` verdict.

    ``basis_of``: what they compare; None is what the library's file does.
    """
    basis_of = basis_of or (lambda name: bench.catalogue.collective(name).basis)
    kept = {result.scenario for result in decisions if result.verdict in accepted}
    return {
        name: distill_proven(
            {scenario: choice if scenario in kept else DEFAULT for scenario, choice in choices.items()},
            spaces[name],
            basis_of(name),
        )
        for name, choices in decided.items()
    }


# Of the time for the proof, what is kept for the comparison of the files, where that may take so long.
_IN_FORCE_SHARE = 0.2
# The comparison of the files has so many launches with the file and as many without, and a little to measure in each.
_FILES_LAUNCHES = 2 * FEWEST_FILE_LAUNCHES * 1.2
# Of a call that takes long: what differs from launch to launch is more than what more repetitions tell.
_FEWEST = 5
_UNCOMPARED = "the files were not compared with none"

Rules = Callable[[Sequence[Decision]], Mapping[str, RuleSet]]
Emit = Callable[[Mapping[str, RuleSet]], Tuning]


@dataclass(frozen=True)
class Judged:
    """Verdicts. ``rest_s``: what the comparisons would take that those need for which there was no time.

    ``compared``: the samples of these comparisons that are evidence elsewhere too, and ``looked``: those that are not,
    for they told where to cut a region.
    """

    decisions: Sequence[Decision]
    rest_s: float
    compared: Sequence[Sample] = ()
    looked: Sequence[Sample] = ()


@dataclass(frozen=True)
class Before:
    """What other jobs of this machine proved.

    ``settled``: verdicts, by scenario. ``compared``: comparisons, by scenario and choice. ``is_in_force``: whether the
    files of rules are those that another job compared and replayed. ``least_gain``: what a second of this job has to
    bring where so much is captured (``colltune.prove.audit.worth``).
    """

    settled: Mapping[Scenario, Decision] = field(default_factory=dict)
    compared: Mapping[tuple[Scenario, Choice], Sequence[PairedRatio]] = field(default_factory=dict)
    is_in_force: Callable[[Mapping[str, RuleSet]], bool] = lambda _rules: False
    least_gain: Callable[[float], float] = lambda _captured: 0.0


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """A directory beside the result, on the same file system, which all nodes see; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=".trial-", dir=out) as place:
        yield Path(place)


class Audience(Protocol):
    """Hears of what goes on."""

    @property
    def stage(self) -> Callable[[str], None]: ...

    @property
    def note(self) -> Callable[[str], None]: ...

    @property
    def proof(self) -> Callable[[Sequence[Decision]], None]: ...


@dataclass(frozen=True)
class Proof:
    """Puts candidates to the proof until ``deadline_s`` (on the bench's clock), the most gain for their time first.

    What outlasts a stage by ``grace_s`` is cut off. ``samples``: what the campaign measured, with ``effort``.
    ``launch_s``: what a launch takes. ``grid``: every scenario that was looked at. ``listener`` hears of what goes on;
    ``stop`` cuts it off. ``weight``: of a gain. ``before``: what need not be proven again. ``applications``: what runs
    of the application say, which is evidence too. ``topology``: of the job, where its disjoint parts compare at once.
    """

    bench: Bench
    out: Path
    seed: int
    threshold: float
    deadline_s: float
    grace_s: float
    launch_s: float
    samples: Sequence[Sample]
    effort: Effort
    grid: Sequence[Scenario]
    listener: Audience
    stop: StopRequest
    weight: Weight
    before: Before = field(default_factory=Before)
    applications: Sequence[Standing] = ()
    topology: Topology | None = None

    def judge(self, decided: Mapping[str, Decided], rules_of: Rules, emit: Emit) -> Judged:
        """The verdicts on what departs from the default, and what it would have taken to reach one on all of it."""
        left_s = max(self.deadline_s - self.bench.now_s(), 0.0)
        library, watch = self.bench.library, self.bench.watch
        before = None if watch is None else watch.tally.mark
        together, files_s = Decided.together(decided.values()), 0.0
        if library is not None:
            shared_s = max(_IN_FORCE_SHARE * left_s, _FILES_LAUNCHES * self.launch_s)
            files_s = min(shared_s, longest_s(together, self.launch_s, self._overhead))
        # What other jobs settled is neither claimed nor beside what is.
        left = {call: choice for call, choice in together.choices.items() if call not in self.before.settled}
        judged = self._audited(replace(together, choices=left), self.deadline_s - files_s)
        known = [self.before.settled[key] for key in sorted(self.before.settled.keys() & together.choices.keys())]
        decisions = [*known, *judged.decisions]
        if library is not None and not self.before.is_in_force(rules_of(decisions)):
            decisions = self._compared(library, decisions, together.default_s, rules_of, emit)
        if watch is not None and before is not None:
            settled, load = self.before.settled, watch.tally.total(before)
            decisions = [decision if decision.scenario in settled else _with(load, decision) for decision in decisions]
        return replace(judged, decisions=decisions)

    def _compared(
        self,
        library: LibraryBench,
        decisions: Sequence[Decision],
        default_s: Mapping[Scenario, float],
        rules_of: Rules,
        emit: Emit,
    ) -> list[Decision]:
        """``decisions`` after the comparison of the files, where there is anything to compare.

        What no file decides was proven by the control variables that the live selector sets.
        """
        beside = [
            result for result in decisions if not library.catalogue.collective(result.scenario.collective).in_file
        ]
        decisions = [result for result in decisions if result not in beside]
        if self.stop.made:
            return [*beside, *provisional(decisions, _UNCOMPARED)]
        if not any(result.verdict is Verdict.KEPT for result in decisions):
            return [*beside, *decisions]
        self.listener.stage("comparing the file in force with the default")
        try:
            with self.stop.cuts(), workplace(self.out) as place:
                comparison = FilesComparison(
                    bench=library,
                    rules_of=rules_of,
                    emit=emit,
                    workplace=place,
                    grid=self.grid,
                    seed=self.seed,
                    launch_s=self.launch_s,
                    time_s=lambda scenario: default_s.get(scenario, math.inf),
                    overhead=self._overhead,
                    deadline_s=self.deadline_s,
                    grace_s=self.grace_s,
                )
                return [*beside, *comparison.keep_what_pays(decisions)]
        except INTERRUPTIONS:
            self.listener.note("the comparison of the files was cut off, so nothing is proven")
            return [*beside, *provisional(decisions, _UNCOMPARED)]

    def _audited(self, decided: Decided, deadline_s: float) -> Judged:
        """The verdicts, and the comparisons that they rest on."""
        weights = {scenario: self.weight(scenario) for scenario in decided.choices}
        costs_s = {
            scenario: self._overhead * EFFORT.comparison_cost_s(decided.default_s[scenario], decided.gains[scenario])
            for scenario, choice in decided.choices.items()
            if choice != DEFAULT
        }
        time = ProofTime(deadline_s - self.bench.now_s(), costs_s, self.launch_s, self.bench.by_launches)
        claims = claims_of(decided.choices, decided.gains, weights, time)
        if not claims:
            return Judged((), 0.0)
        # What a model expects of the default between two sizes is off just where another choice gains most.
        measured_s = medians_of(self.samples)
        choices = format_count(sum(len(claim.scenarios) for claim in claims), "choice")
        regions = format_count(len(claims), "region")
        self.listener.stage(f"proving {choices} in {regions} against the default in fresh launches")
        with Journal.begin(self.out / CONFIRMATION, self.bench.environment, resume=True) as journal:
            count_before = len(journal.samples)
            audit = Audit(
                claims=claims,
                open_source=self._launches(deadline_s),
                record=journal.append,
                baseline=self.bench.baseline,
                cost_s=costs_s.__getitem__,
                repetitions=lambda scenario: _repetitions(decided.default_s[scenario]),
                skew_s=decided.default_s.__getitem__,
                default_s=lambda scenario: measured_s.get((scenario, self.bench.baseline(scenario)), math.inf),
                total_weight=sum(weights.values()),
                threshold=self.threshold,
                launch_s=self.launch_s,
                seed=self.seed,
                progress=self.listener.proof,
                clock=self.bench.now_s,
                before=self.before.compared,
                applications=self.applications,
                least_gain=self.before.least_gain,
                captured=captured_by(self.before.settled.values(), self.weight),
                after_s=0.0 if self.bench.library is None else _FILES_LAUNCHES * self.launch_s,
                together=self.bench.by_launches,
            )
            try:
                with self.stop.cuts():
                    audit.run(deadline_s)
            except (LaunchError, *INTERRUPTIONS) as error:
                self.listener.note(
                    f"proving ended early: {error or type(error).__name__}; what is not proven stays with the default"
                )
            if audit.unpaid:
                self.listener.note(f"{format_count(audit.unpaid, 'region')} left to later jobs: {Why.NOT_WORTH.text}")
            taken = journal.samples[count_before:]
            looked = [sample for sample in taken if audit.told_where_to_cut(sample)]
            compared = [sample for sample in taken if not audit.told_where_to_cut(sample)]
            return Judged(audit.results(), audit.rest_s(), compared, looked)

    def _launches(self, deadline_s: float) -> Callable[[], Source | Lanes]:
        """Opens one fresh launch after another, each cut off where it outlasts ``deadline_s`` by the grace.

        Parts of the job that compare at once are drawn anew in each.
        """
        seeds = count(self.seed + 1)

        def open_source() -> Source | Lanes:
            seed = next(seeds)
            source = self.bench.launch(seed)
            source.until_s = deadline_s + self.grace_s
            return source if self.topology is None else Lanes(source, FillingPacker(self.topology, seed))

        return open_source

    @cached_property
    def _overhead(self) -> float:
        return self.effort.overhead(self.samples)


def _with(disturbance: Disturbance, result: Decision) -> Decision:
    """What was compared while others had the processors was not judged, whatever it looked like."""
    if disturbance.is_busy:
        return replace(result, verdict=Verdict.NOT_TRIED, why=Why.NOT_CALM, reason="")
    if result.verdict is Verdict.KEPT and disturbance.remark:
        return replace(result, reason=disturbance.remark)
    return result


def _repetitions(time_s: float) -> int:
    """As many as the time box holds, of calls that take long; the others stop when they know enough."""
    fitting = int(EFFORT.box_s / max(time_s, 1e-9))
    return 0 if fitting >= EFFORT.most else max(fitting, _FEWEST)
