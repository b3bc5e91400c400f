"""`colltune tune alltoallv`: measures settings on this job, proves the best, and writes the look-up table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from colltune.alltoallv import guided
from colltune.alltoallv.bench import PatternBench, PatternLaunch
from colltune.alltoallv.cells import runs, smooth
from colltune.alltoallv.prove import PatternProof
from colltune.alltoallv.setting import COLLECTIVE, LIBRARY, Setting, Shape, candidates
from colltune.alltoallv.source import direct_above_bytes
from colltune.alltoallv.table import FIRST_CALL, Entry, Rule, around, save_table
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.medians import medians_of
from colltune.core.proven import ProvenDecision
from colltune.core.sample import Environment, Sample
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.core.stop import StopRequest
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort, Source
from colltune.prove.time_plan import TimePlan
from colltune.search.campaign import Campaign, Outcome
from colltune.store.journal import Journal

TABLE = "alltoallv.rules"
_JOURNAL = "alltoallv.jsonl"
_EXPLORING = 0  # the first launch; those after it are of the proof
_PROMISING = 1.05  # default over best, measured once, from which a proof is tried
# What setting up may cost a program, of the time that its calls took until then.
_SET_UP_SHARE = 0.02
_FORWARDING = frozenset({"bruck", "parata", "hieata", "hieata_staggered"})


@dataclass(frozen=True)
class AlltoallvResult:
    """``table``: the file; ``rules``: what was proven; ``gate``: what was judged, library's time over candidate's.

    Where ``outcome`` was interrupted the file is that of before, if there was one.
    """

    table: Path
    rules: Sequence[Rule]
    outcome: Outcome
    gate: Sequence[ProvenDecision]
    environment: Environment


def choice_of(setting: Setting) -> Choice:
    """The same as a Choice; the library's own is the default."""
    if setting.algorithm == "library":
        return DEFAULT
    named = (("batch", setting.batch), ("radix", setting.radix), ("direct_above", setting.direct_above))
    return Choice(setting.algorithm, tuple((name, value) for name, value in named if value))


def setting_of(choice: Choice) -> Setting:
    """The inverse."""
    if choice == DEFAULT:
        return LIBRARY
    values = {name: int(value) for name, value in choice.parameters}
    return Setting(choice.algorithm, *(values.get(name, 0) for name in ("radix", "batch", "direct_above")))


@dataclass(frozen=True)
class AlltoallvOptions:
    """``largest_bytes``: of the average block. ``resume``: nothing that a run explored which was cut off is again."""

    largest_bytes: int
    budget_s: float
    seed: int = 1
    resume: bool = False


def tune_alltoallv(
    bench: PatternBench,
    options: AlltoallvOptions,
    out: Path,
    stage: Callable[[str], None] = lambda _text: None,
    note: Callable[[str], None] = lambda _text: None,
    stop: StopRequest | None = None,
) -> AlltoallvResult:
    """Measures the job's whole shape for average blocks up to the largest, and writes out/alltoallv.rules.

    A setting is in the table only where it was proven faster than the library in fresh launches, by the gate that
    all collectives pass, and not slower for other patterns that the library cannot tell from the one it was proven on.
    Where ``stop`` cuts the tuning off, the table that was there stays. Raises ColltuneError.
    """
    shape, stop = Shape(bench.nodes, bench.ppn), stop or StopRequest()
    if shape.ranks < 3:
        raise InputError("alltoallv has nothing to tune on two ranks", "Give --ppn 3 or more")
    began_s = bench.now_s()
    numbers = count(_EXPLORING)

    def open_source() -> PatternLaunch:
        number = next(numbers)
        return bench.launch(options.seed + number, number)

    with Journal.begin(out / _JOURNAL, bench.environment, options.resume) as journal:
        with closing(open_source()) as source:
            launched_s = bench.now_s()
            set_up_s = source.set_up_s()
            launch_s = bench.now_s() - launched_s
            plan = TimePlan(options.budget_s, began_s, bench.now_s() - began_s, launch_s, replay_s=0.0, files=False)
            if plan.extension is not None:
                note(plan.extension)
            outcome = _explored(bench, options, source, journal, plan, stage, stop)
        promising = _promising(outcome)
        stage(f"proving settings against the library at {len(promising)} sizes, in fresh launches")
        proof = PatternProof(shape, open_source, journal.append, plan.proven_by_s, launch_s, bench.now_s, stop)
        kept = proof.run(promising)
    rules = [rule for fill in kept for rule in _rules(kept[fill], fill)]
    if not stop.made:
        entry = Entry((shape.ranks,) * 2, (shape.ppn,) * 2, tuple(rules), _first_call(set_up_s, outcome))
        made = bench.environment
        about = {"mpi": made.mpi, "version": made.mpi_version, "machine": made.machine, "seed": options.seed}
        save_table(out / TABLE, [entry] if rules else [], about)
    return AlltoallvResult(
        out / TABLE, rules, replace(outcome, interrupted=stop.made), proof.results, bench.environment
    )


def _explored(
    bench: PatternBench,
    options: AlltoallvOptions,
    source: Source,
    journal: Journal,
    plan: TimePlan,
    stage: Callable[[str], None],
    stop: StopRequest,
) -> Outcome:
    shape = Shape(bench.nodes, bench.ppn)
    settings = candidates(shape)
    sizes = [1 << power for power in range(2, max(options.largest_bytes, 4).bit_length())]
    stage(f"measuring up to {len(settings)} settings at {len(sizes)} sizes on {shape} ranks")
    known = [sample for sample in journal.samples if sample.launch == _EXPLORING]
    left_s = plan.measured_by_s - bench.now_s()
    return Exploration(
        source, journal.append, shape, settings, sizes, left_s, options.seed, known, bench.now_s, stop
    ).run()


def _first_call(set_up_s: float, outcome: Outcome) -> int:
    """From which call on what is set up for the algorithms is little beside the calls that went before."""
    library_s = [time_s for found in _times(outcome).values() for choice, time_s in found.items() if choice == DEFAULT]
    if not library_s or math.isnan(set_up_s):
        return FIRST_CALL
    return max(FIRST_CALL, math.ceil(set_up_s / (_SET_UP_SHARE * min(library_s))))


@dataclass
class Exploration:
    """Measures ``settings`` at average blocks of ``sizes`` bytes within ``budget_s``: all of them where it can.

    Where it cannot, a few of every family come first, and then those that a model of these times points at. ``known``:
    samples of an earlier run, which are not measured again.
    """

    source: Source
    record: Callable[[Sequence[Sample]], None]
    shape: Shape
    settings: Sequence[Setting]
    sizes: Sequence[int]
    budget_s: float
    seed: int
    known: Sequence[Sample] = ()
    clock: Callable[[], float] = time.monotonic
    stop: StopRequest = field(default_factory=StopRequest)

    def run(self) -> Outcome:
        before = Outcome(tuple(self.known), {}, 0.0, False)
        first = guided.first(self.settings)
        outcome = self._joined(before, self._measure(dict.fromkeys(self.sizes, first), self.budget_s))
        remaining = [setting for setting in self.settings if setting not in first]
        rest = dict.fromkeys(self.sizes, remaining)
        left_s = self.budget_s - outcome.elapsed_s
        pairs = max(len(outcome.samples) - len(self.known), 1)
        if outcome.elapsed_s / pairs * sum(map(len, rest.values())) <= left_s:
            return self._joined(outcome, self._measure(rest, left_s))
        for _ in range(guided.ROUNDS):
            known = {
                size: {setting_of(choice): time_s for choice, time_s in found.items()}
                for size, found in _times(outcome).items()
            }
            wanted = guided.following(self.shape, self.settings, known, self.seed)
            left_s = self.budget_s - outcome.elapsed_s
            if outcome.interrupted or not wanted or left_s <= 0.0:
                break
            outcome = self._joined(outcome, self._measure(wanted, left_s))
        return outcome

    def _measure(self, wanted: Mapping[int, Sequence[Setting]], budget_s: float) -> Outcome:
        done = {(sample.scenario.size_bytes, sample.choice) for sample in self.known}
        open_at = {
            size: tuple(choice for choice in map(choice_of, settings) if (size, choice) not in done)
            for size, settings in wanted.items()
        }
        choices = {size: found for size, found in open_at.items() if found}
        if not choices:
            return Outcome((), {}, 0.0, False)
        grid = tuple(Scenario(COLLECTIVE, self.shape.nodes, self.shape.ppn, size) for size in choices)
        space = Space(COLLECTIVE, grid, lambda scenario: choices.get(scenario.size_bytes, ()))
        learner = DecisionLearner(space, self.seed)
        effort = Effort(fewest=20, most=50)
        return Campaign(
            source=self.source,
            spaces={COLLECTIVE: space},
            learners={COLLECTIVE: learner},
            record=self.record,
            budget_s=budget_s,
            effort=effort,
            clock=self.clock,
            stop=self.stop,
        ).run()

    @staticmethod
    def _joined(one: Outcome, other: Outcome) -> Outcome:
        return Outcome(
            (*one.samples, *other.samples),
            {**one.reasons, **other.reasons},
            one.elapsed_s + other.elapsed_s,
            one.interrupted or other.interrupted,
        )


def _times(outcome: Outcome) -> dict[int, dict[Choice, float]]:
    """Medians by average block."""
    times: dict[int, dict[Choice, float]] = {}
    for (scenario, choice), time_s in medians_of(outcome.samples).items():
        times.setdefault(scenario.size_bytes, {})[choice] = time_s
    return times


def _promising(outcome: Outcome) -> dict[int, Choice]:
    """By average block what looked faster than the library, the greatest gain first; neighbours alike if they can."""
    times = {size: found for size, found in _times(outcome).items() if DEFAULT in found}
    chosen = smooth(times)
    gains = {size: times[size][DEFAULT] / times[size][choice] for size, choice in chosen.items()}
    chosen = {size: choice for size, choice in chosen.items() if choice != DEFAULT and gains[size] >= _PROMISING}
    for together in runs(chosen):
        setting = setting_of(chosen[together[0]])
        if setting.algorithm in _FORWARDING:
            direct = direct_above_bytes(together[-1])
            alike = Setting(setting.algorithm, setting.radix, setting.batch, direct)
            chosen |= {size: choice_of(alike) for size in together}
    return {size: chosen[size] for size in sorted(chosen, key=lambda size: -gains[size])}


def _rules(kept: Mapping[int, Choice], fill: int) -> list[Rule]:
    """Of sizes that were kept in one class of fill."""
    return [
        Rule(around(together[0])[0], around(together[-1])[1], setting_of(kept[together[0]]), (fill,))
        for together in runs(kept)
    ]
