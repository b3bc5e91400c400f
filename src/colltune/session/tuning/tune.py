"""Tunes: measures, decides, proves, writes. What `colltune tune` and the Python API do, on a real job and a simulated.

Where no library loads the files (``bench.library`` is None) they are not compared, and no conformance is replayed.
"""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from colltune.bench.contract import Bench, LibraryBench
from colltune.catalog.read import check_collectives
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.interval import SpeedVerdict
from colltune.core.medians import broken_choices, medians_of
from colltune.core.proven import Decision, Summary, Verdict, refused
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, REDUCTIONS, Choice, Sample, Scenario, element_bytes
from colltune.core.space import Space
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.core.switchback import Standing
from colltune.core.units import format_count
from colltune.deploy.live_selector import by_selector_alone
from colltune.distill.decide import ClaimCosts, Decided, decide
from colltune.distill.few_rules import MOST_RULES, with_few_rules
from colltune.distill.overlay import Layers
from colltune.distill.reproducible import distill_reproducible
from colltune.judge import wording
from colltune.measure.watch import PATIENT_SHARE, Watch
from colltune.prove.audit.audit import EFFORT as PROOF_EFFORT
from colltune.prove.audit.claims import COMPARISONS
from colltune.prove.in_run.in_application import said_of, without_slower
from colltune.prove.proof import Before, Judged, Proof, judge_one_launch, provisional, workplace
from colltune.prove.replay.on_workbench import UncheckedError, make_safe, non_default
from colltune.search.reuse import begin_journal
from colltune.session.tuning.decisions import WRONG_UNDER_FILE, Decisions
from colltune.session.tuning.measuring import CampaignResult, Measuring
from colltune.session.tuning.merging import Held, hold, keep_apart
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult, budget_of
from colltune.session.tuning.site_memory import SiteMemory
from colltune.store.tuning import JOURNAL, Tuning, save_tuning


# The cores belong to the ranks that are measured, and our matrices are too small for several threads.
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def tune(
    bench: Bench,
    options: TuneOptions,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
    began_s: float | None = None,
) -> TuneResult:
    """Measures the collectives, and leaves in ``out`` the files that the library loads, and every measurement.

    ``options.budget_s`` holds for all of it, from ``began_s`` (on the bench's clock; None: from now) on. Raises
    ColltuneError; what was measured by then is in the journal, and ``options.resume`` goes on from it.
    """
    return _Tuner(bench, options, out, listener or Listener(), stop or StopRequest()).run(began_s)


@dataclass(frozen=True)
class _Tuner:
    """Tunes what ``options`` say on ``bench`` into ``out``."""

    bench: Bench
    options: TuneOptions
    out: Path
    listener: Listener
    stop: StopRequest

    def run(self, began_s: float | None) -> TuneResult:
        bench, options, out, stop, note = self.bench, self.options, self.out, self.stop, self.listener.note
        collectives, nothing = self._collectives()
        applications = said_of(out, bench.environment, note)
        held = hold(out, bench.environment, note, gated=options.gate)
        spaces = keep_apart(self._spaces(collectives), held)
        spaces = {name: without_slower(space, applications) for name, space in spaces.items()}
        for text in _application_texts(applications, spaces):
            note(text)
        began_s, since_s = bench.now_s() if began_s is None else began_s, time.time()
        if bench.watch is not None:
            bench.watch.patience_s = PATIENT_SHARE * options.budget_s
        memory = SiteMemory.of(options.store, bench, spaces, out, note, options.budget_s)
        with begin_journal(out / JOURNAL, bench.environment, options.resume, note) as journal:
            measured = memory.measured(Measuring(bench, options, spaces, journal, self.listener, stop, began_s))
        decided = self._decided(spaces, measured)
        held, decided = memory.with_proven_elsewhere(held, decided, spaces)
        decisions = self._decisions(spaces, measured, decided, held)
        before, judged = Before(), Judged((), 0.0)
        if options.gate:
            before = memory.before(decided, spaces, decisions.tuning)
            proof = self._proof(decisions, measured)
            judged = _judged(replace(proof, before=before, applications=applications), decided, decisions)
        else:
            note(
                "no proof was asked for (--gate off): nothing was measured twice, and rules may be slower than the"
                " default"
            )
        layers = decisions.layers(judged.decisions)
        replayed = None if stop.made else self._replayed(decisions, layers, before, measured.plan.replay_s)
        concluded, tuning, unsafe = _concluded(decisions, judged.decisions, layers, replayed, is_stopped=stop.made)
        outcome = replace(measured.outcome, interrupted=stop.made)
        fixed = sorted(decisions.fixed.keys() & non_default(tuning.rule_sets)) if replayed is not None else []
        summary = Summary(
            seed=options.seed,
            gated=options.gate,
            samples=len(outcome.samples),
            reasons=dict(outcome.reasons),
            interrupted=outcome.interrupted,
            share=measured.share,
            decisions=tuple(concluded),
            total_s=bench.now_s() - began_s,
            reproducible=tuple(fixed),
            job=(bench.nodes, bench.ppn),
            budget=budget_of(options, measured.plan, concluded, judged.rest_s),
            since_s=None if options.resume else since_s,
            disturbance=None if bench.watch is None else _disturbance(bench.watch, concluded),
        )
        tuning = replace(tuning, summary=decisions.summary(summary, concluded, unsafe, cut_off=replayed is None))
        save_tuning(out, tuning)
        memory.add_proven(judged, tuning)
        return TuneResult(tuning, outcome, concluded, nothing)

    def _collectives(self) -> tuple[list[str], dict[str, str]]:
        """What is tuned, and why others that were asked for are not. Raises InputError where nothing can be."""
        self.options.require_something()
        if self.options.reproducible and self.bench.library is None:
            raise InputError("--reproducible is about the bits of a real library's results", "Leave it out")
        collectives, nothing = check_collectives(self.options.collectives, self.bench.catalogue)
        for name, reason in nothing.items():
            self.listener.note(f"{name}: {reason}")
        _require_selector(self.bench, collectives)
        return collectives, nothing

    def _spaces(self, collectives: Iterable[str]) -> dict[str, Space]:
        """Of the collectives of which the job can form any call. Raises InputError where there are none."""
        spaces = {name: space for name in collectives if (space := self._space(name)).scenarios}
        if not spaces:
            raise InputError(
                f"this job of {self.bench.nodes} x {self.bench.ppn} ranks can form none of the calls to tune",
                "Give --ppn, sizes or a profile that fit it",
            )
        return spaces

    def _space(self, collective: str) -> Space:
        bench, options = self.bench, self.options
        if options.expected_gain is None:
            space = _of_sizes(bench.space(collective, options.smallest_bytes, options.largest_bytes), options.sizes)
            return replace(space, weight=options.weights(bench.nodes, bench.ppn))
        share = options.expected_gain.share
        mine = (scenario for scenario in sorted(share) if scenario.collective == collective)
        fitting = tuple(scenario for scenario in mine if scenario.nodes <= bench.nodes and scenario.ppn <= bench.ppn)
        least = min(share.values())  # of counts of nodes between those of the profile
        return Space(collective, fitting, bench.legal, lambda scenario: share.get(scenario, least))

    def _decided(self, spaces: Mapping[str, Space], measured: CampaignResult) -> dict[str, Decided]:
        bench, samples = self.bench, measured.outcome.for_choosing
        overhead = self.options.effort.overhead(measured.outcome.samples)
        costs = ClaimCosts(
            max(measured.plan.proven_by_s - bench.now_s(), 0.0),
            lambda default_s, gain: COMPARISONS * overhead * PROOF_EFFORT.comparison_cost_s(default_s, gain),
        )
        threshold = self.options.threshold
        decided = decide(measured.models, spaces, samples, bench.baseline, threshold, bench.inner_calls, costs)
        entry = bench.catalogue.collective
        fewer = {name: with_few_rules(full, spaces[name], entry(name).basis) for name, full in decided.items()}
        for name, of_name in fewer.items():
            if of_name is not decided[name]:
                self.listener.note(
                    f"{name}: calls that gain least keep the default, so that {MOST_RULES} rules are enough"
                )
        return fewer

    def _decisions(
        self, spaces: Mapping[str, Space], measured: CampaignResult, decided: Mapping[str, Decided], held: Held
    ) -> Decisions:
        choices, samples = {name: of_name.choices for name, of_name in decided.items()}, measured.outcome.for_choosing
        fixed = self._reproducible(choices, samples) if self.options.reproducible else {}
        to_prove = {name: chosen for name, chosen in choices.items() if name not in fixed}
        return Decisions(self.bench, spaces, measured.models, samples, to_prove, fixed, held, self.options.gate)

    def _reproducible(
        self, decided: Mapping[str, Mapping[Scenario, Choice]], samples: Sequence[Sample]
    ) -> dict[str, RuleSet]:
        """Rules for the reductions by which bits do not change with size.

        They need no proof of speed: the user pays for equal bits, and is told how much.
        """
        rule_sets = {}
        broken, medians = broken_choices(samples), medians_of(samples)
        for name in sorted(decided.keys() & REDUCTIONS):
            failed = {choice for collective, choice in broken if collective == name}
            fixed = distill_reproducible(name, medians, decided[name], self.bench.catalogue, failed)
            self.listener.note(fixed.cost_text())
            rule_sets[name] = fixed.rule_set
        return rule_sets

    def _proof(self, decisions: Decisions, measured: CampaignResult) -> Proof:
        plan, options = measured.plan, self.options
        return Proof(
            bench=self.bench,
            out=self.out,
            seed=options.seed,
            threshold=options.threshold,
            deadline_s=plan.proven_by_s,
            grace_s=plan.grace_s,
            launch_s=plan.launch_s,
            samples=measured.outcome.samples,
            effort=options.effort,
            grid=[scenario for space in decisions.spaces.values() for scenario in space.scenarios],
            listener=self.listener,
            stop=self.stop,
            weight=next(iter(decisions.spaces.values())).weight,
            topology=measured.topology,
        )

    def _replayed(
        self, decisions: Decisions, layers: Layers, before: Before, expected_s: float
    ) -> tuple[Tuning, set[str]] | None:
        """The tuning of what is proven, without the collectives that give a wrong result under it, and these.

        ``expected_s``: what the replay is expected to take. None where it was cut off: then nobody knows. Where no
        library loads the files there is nothing to replay.
        """
        tuning, note = decisions.tuning(layers.proven.file), self.listener.note
        if (library := self.bench.library) is None:
            return tuning, set()
        if before.is_in_force(layers.proven.file):
            note("the files are those that an earlier job of this shape compared and checked")
            return tuning, set()
        departed = non_default(tuning.rule_sets)
        live = {name: rules for name, rules in layers.proven.live.items() if not _in_file(library, name)}
        if departed:
            self.listener.stage("replaying every collective under the new file")
        try:
            with self.stop.cuts(), workplace(self.out) as place:
                tuning, reasons = make_safe(library, tuning, place, decisions.tuning, expected_s=expected_s)
                wrong, more = self._wrong_by_selector(library, tuning, live, place, expected_s)
        except UncheckedError as error:
            note(f"{error.what}; so nothing of this campaign is proven. {error.next_step}")
            return None
        except INTERRUPTIONS:
            note("the conformance check was cut off, so nothing of this campaign is proven")
            return None
        for text in (*reasons, *more):
            note(text)
        for name in sorted(decisions.fixed.keys() - non_default(tuning.rule_sets)):
            note(f"{name} is at the library's default, so its results are not reproducible")
        return tuning, (departed - non_default(tuning.rule_sets)) | wrong

    def _wrong_by_selector(
        self, library: LibraryBench, tuning: Tuning, live: Mapping[str, RuleSet], place: Path, expected_s: float
    ) -> tuple[set[str], list[str]]:
        """The collectives of ``live``, which no file decides, that fail the replay by the live selector, and why."""
        if not non_default(live):
            return set(), []
        names = ", ".join(sorted(non_default(live)))
        self.listener.stage("replaying every collective by the live selector")
        self.listener.note(f"no file of this MPI decides {names}: `colltune run --via live` does")
        alone = partial(by_selector_alone, library, tuning, environment=os.environ)
        safe, reasons = make_safe(library, alone(live), place, alone, expected_s=expected_s)
        return non_default(live) - non_default(safe.rule_sets), reasons


def _application_texts(standings: Iterable[Standing], collectives: Collection[str]) -> Iterator[str]:
    """What the application says that changes what is proposed here."""
    for standing in standings:
        if standing.collective not in collectives:
            continue
        if standing.verdict is SpeedVerdict.SLOWER:
            yield (
                f"{standing.place}: {standing.choice} is not proposed again, for it was slower in the application"
                f": speed-up {wording.text(standing.faster)}"
            )
        elif standing.verdict is SpeedVerdict.FASTER:
            yield (
                f"{standing.place}: {standing.choice} was faster in the application: speed-up of the calls"
                f" {wording.text(standing.faster_in_calls)};"
                f" {format_count(len({date for date, _ in standing.launches}), 'run')} of it count as evidence"
            )


def _of_sizes(space: Space, sizes: Sequence[int]) -> Space:
    """``space`` over these sizes, in bytes, in place of its own; a barrier has none to choose."""
    if not sizes or space.collective == "barrier":
        return space
    element = element_bytes(space.collective)
    fitting = sorted({max(size // element, 1) * element for size in sizes})
    shapes = dict.fromkeys((scenario.nodes, scenario.ppn) for scenario in space.scenarios)
    grid = (Scenario(space.collective, *shape, size) for shape in shapes for size in fitting)
    return replace(space, scenarios=tuple(grid))


def _disturbance(watch: Watch, concluded: Sequence[Decision]) -> Disturbance:
    proven = any(decision.verdict is Verdict.KEPT for decision in concluded)
    return replace(watch.tally.total(names=watch.nodes), proven=proven)


def _judged(proof: Proof, decided: Mapping[str, Decided], decisions: Decisions) -> Judged:
    """The verdicts on what was decided; from the one launch there was, where the job is being ended."""
    if proof.stop.made:
        baseline = proof.bench.baseline
        measured = {sample.scenario for sample in proof.samples}
        seen = [
            judge_one_launch(scenario, choice, proof.samples, baseline, proof.threshold)
            for choices in decisions.choices.values()
            for scenario, choice in choices.items()
            if choice != DEFAULT and scenario in measured
        ]
        return Judged(seen, 0.0)
    to_prove = {name: of_name for name, of_name in decided.items() if name in decisions.choices}
    return proof.judge(to_prove, decisions.proven, decisions.tuning)


def _concluded(
    decisions: Decisions,
    concluded: Sequence[Decision],
    layers: Layers,
    replayed: tuple[Tuning, set[str]] | None,
    is_stopped: bool,
) -> tuple[Sequence[Decision], Tuning, set[str]]:
    """The last verdicts, the tuning by them, and the collectives that the replay found wrong; None: was cut off.

    ``is_stopped``: since the job was ended, and not since the replay took too long.
    """
    if replayed is None:
        why = "the job was ended" if is_stopped else "the check did not end in its time"
        unloaded = decisions.bench.library is None
        untested = "the tuning was not finished" if unloaded else "the results under the files were not checked"
        concluded = provisional(concluded, untested, why)
        return concluded, decisions.handed_over(decisions.layers(concluded, cut_off=True)), set()
    tuning, unsafe = replayed
    return (
        refused(concluded, dict.fromkeys(unsafe, WRONG_UNDER_FILE)),
        decisions.handed_over(layers, tuning, unsafe),
        unsafe,
    )


def _require_selector(bench: Bench, collectives: Iterable[str]) -> None:
    """Raises InputError where nothing could put the rules of ``collectives`` in force."""
    unsaid = [name for name in collectives if bench.library is not None and not _in_file(bench.library, name)]
    if unsaid and bench.environment.thread_level == "multiple":
        raise InputError(
            f"no file of this MPI decides {', '.join(unsaid)}, and the live selector does not work where several"
            " threads call MPI at once",
            "Leave it out, or give another --thread-level",
        )


def _in_file(library: LibraryBench, collective: str) -> bool:
    return library.catalogue.collective(collective).in_file
