"""`colltune tune alltoallv`: measures settings on this job and its parts, proves the best, writes the look-up table."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from colltune.alltoallv.launches import EFFORT, AlltoallvExploration, AlltoallvOptions, Launches, PatternLaunch
from colltune.alltoallv.lookup_table import (
    BOUND_TO,
    FIRST_CALL,
    FORWARDING,
    TABLE,
    AlltoallvRule,
    Setting,
    Shape,
    TableEntry,
    around,
    parts_of,
    places,
    runs,
    save_table,
    setting_of,
)
from colltune.alltoallv.matrices import RecordedMatrix, saved_s
from colltune.alltoallv.prove import Cell, Kept, PatternProof
from colltune.alltoallv.samples import Blocks, direct_above_bytes
from colltune.bench.contract import Place
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.sample import Choice, Environment, Sample, Scenario, grouped
from colltune.core.stop import StopRequest
from colltune.core.units import format_count, format_duration
from colltune.distill.decide import Decided
from colltune.measure.watch import PATIENT_SHARE
from colltune.profile.application_profile import Profile
from colltune.prove.time_plan import TimePlan
from colltune.search.campaign import Outcome
from colltune.store.journal import Journal

_JOURNAL = "alltoallv.jsonl"
_EXPLORING = 0  # the first launch; those after it are of the proof
# What setting up may cost a program, of the time that its calls took until then.
_SET_UP_SHARE = 0.02
_Rules = Mapping[Shape, Sequence[AlltoallvRule]]


@dataclass(frozen=True)
class AlltoallvResult:
    """``table``: the file; ``rules``: what was proven, by part of the job; ``decisions``: what was judged.

    Ratios of the decisions are the library's time over the candidate's.

    Where ``outcome`` was interrupted the file is that of before, if there was one.
    """

    table: Path
    rules: _Rules
    outcome: Outcome
    decisions: Sequence[Decision]
    environment: Environment


def sizes_up_to(largest_bytes: int) -> list[int]:
    """The average blocks that are tuned: powers of two from 4 bytes on."""
    return [1 << power for power in range(2, max(largest_bytes, 4).bit_length())]


def tune_alltoallv(
    bench: Place,
    launch: Launches,
    options: AlltoallvOptions,
    out: Path,
    stage: Callable[[str], None] = lambda _text: None,
    note: Callable[[str], None] = lambda _text: None,
    stop: StopRequest | None = None,
) -> AlltoallvResult:
    """Measures the job and its parts for average blocks up to the largest, and writes out/alltoallv.rules.

    A setting is in the table only where its region was proven faster than the library in fresh launches, by the audit
    that all collectives pass, and not slower for other patterns that the library cannot tell from the one it was proven
    on. Where ``stop`` cuts the tuning off, the table that was there stays. Raises ColltuneError.
    """
    stop, parts = stop or StopRequest(), _parts(bench, options)
    began_s, numbers = bench.now_s(), count(_EXPLORING)
    if bench.watch is not None:
        bench.watch.patience_s = PATIENT_SHARE * options.budget_s

    def open_source() -> PatternLaunch:
        number = next(numbers)
        return launch(options.seed + number, number)

    with Journal.begin(out / _JOURNAL, bench.environment, options.resume) as journal:
        with closing(open_source()) as source:
            set_up_s, launch_s = _set_up(bench, source)
            plan = TimePlan(options.budget_s, began_s, bench.now_s() - began_s, launch_s, replay_s=0.0, files=False)
            if plan.extension is not None:
                note(plan.extension)
            stage(f"measuring {format_count(len(parts), 'part')} of the job at {len(options.sizes)} sizes")
            budget_s = plan.measured_by_s - bench.now_s()
            known = [sample for sample in journal.samples if _is_explored(sample)]
            explored = AlltoallvExploration(source, journal.append, options, parts, budget_s, known, bench.now_s, stop)
            outcome, decided = explored.run()
        stage("proving settings against the library, with every kind of blocks that looks the same, in fresh launches")
        proof = PatternProof(
            whole=Shape(bench.nodes, bench.ppn),
            open_source=open_source,
            record=journal.append,
            deadline_s=plan.proven_by_s,
            launch_s=launch_s,
            overhead=max(EFFORT.overhead(outcome.samples), 1.0),
            seed=options.seed,
            recorded=_by_cell(options.recorded),
            fills=options.fills,
            clock=bench.now_s,
            stop=stop,
        )
        kept = proof.run(decided)
    results, disturbance = proof.results, Disturbance() if bench.watch is None else bench.watch.tally.total()
    if disturbance.is_busy:
        kept = {}
        results = [replace(result, verdict=Verdict.NOT_TRIED, why=Why.NOT_CALM, reason="") for result in results]
    rules, unpaid = _paying(_rules(kept), decided, set_up_s, options.profile, results)
    for text in filter(None, (disturbance.sentence, unpaid)):
        note(text)
    if not stop.made:
        save_table(out / TABLE, _entries(rules, decided, set_up_s), _about(bench, options, disturbance))
    return AlltoallvResult(out / TABLE, rules, replace(outcome, interrupted=stop.made), results, bench.environment)


def _parts(bench: Place, options: AlltoallvOptions) -> Sequence[Shape]:
    parts = options.parts or parts_of(bench.nodes, bench.ppn)
    if not parts:
        raise InputError("alltoallv has nothing to tune on two ranks", "Give --ppn 3 or more")
    return parts


def _set_up(bench: Place, source: PatternLaunch) -> tuple[float, float]:
    """The seconds in which a program sets up the algorithms, and those in which they were asked for: of a launch."""
    began_s = bench.now_s()
    set_up_s = source.set_up_s()
    return set_up_s, bench.now_s() - began_s


def _about(bench: Place, options: AlltoallvOptions, disturbance: Disturbance) -> dict[str, object]:
    """The facts at the head of the table."""
    about: dict[str, object] = {name: getattr(bench.environment, name) for name in BOUND_TO}
    about["seed"] = options.seed
    return about | ({"remark": disturbance.remark} if disturbance.remark else {})


def _is_explored(sample: Sample) -> bool:
    """Whether it was explored by a run before; matrices are measured anew, for they may be others."""
    return sample.launch == _EXPLORING and not Blocks.of(sample.scenario).is_recorded


def _by_cell(recorded: Iterable[RecordedMatrix]) -> dict[Cell, list[Scenario]]:
    by_cell = grouped(recorded, lambda matrix: (matrix.plain, matrix.fill))
    return {cell: [matrix.scenario for matrix in some] for cell, some in by_cell.items()}


def _rules(kept: Kept) -> dict[Shape, list[AlltoallvRule]]:
    """By part of the job, the densest blocks first."""
    rules: dict[Shape, list[AlltoallvRule]] = {}
    for fill in sorted(kept, reverse=True):
        of_shape: dict[Shape, dict[int, Setting]] = {}
        for scenario, choice in kept[fill].items():
            sizes = of_shape.setdefault(Shape(scenario.nodes, scenario.ppn), {})
            sizes[scenario.size_bytes] = _as_run(choice, scenario.size_bytes)
        for shape, sizes in of_shape.items():
            rules.setdefault(shape, []).extend(
                AlltoallvRule(around(together[0])[0], around(together[-1])[1], sizes[together[0]], (fill,))
                for together in runs(sizes)
            )
    return dict(sorted(rules.items()))


def _as_run(choice: Choice, size_bytes: int) -> Setting:
    """With what was forwarded when it was measured."""
    setting = setting_of(choice)
    return replace(setting, direct_above=direct_above_bytes(size_bytes)) if choice.algorithm in FORWARDING else setting


def _entries(rules: _Rules, decided: Decided, set_up_s: float) -> list[TableEntry]:
    """Of each part that has rules, for all communicators that it is the nearest one to of all that were looked at."""
    library_s: dict[Shape, list[float]] = {}
    for scenario, time_s in decided.default_s.items():  # a recorded matrix is of the whole job
        library_s.setdefault(Shape(scenario.nodes, scenario.ppn), []).append(time_s)
    nearest = places(library_s)
    return [
        TableEntry(ranks, ppn, tuple(mine), first_call(set_up_s, library_s[shape]))
        for shape, mine in rules.items()
        for ranks, ppn in nearest[shape]
    ]


def _paying(
    rules: _Rules, decided: Decided, set_up_s: float, profile: Profile | None, results: Iterable[Decision]
) -> tuple[_Rules, str]:
    """``rules``; or none, and why, where a run as profiled would lose by preloading what carries them."""
    first = min((entry.first_call for entry in _entries(rules, decided, set_up_s)), default=0)
    if profile is None or first == 0:
        return rules, ""
    most_s = saved_s(profile, first, max(one.speedup.estimate for one in results if one.verdict is Verdict.KEPT))
    if most_s > profile.start_s:
        return rules, ""
    return {}, (
        f"no table: a run as profiled would save at most {format_duration(most_s)} of MPI_Alltoallv by it, from call"
        f" {first} on, and preloading took {format_duration(profile.start_s)}. Are your runs longer? Profile one"
    )


def first_call(set_up_s: float, library_s: Iterable[float]) -> int:
    """From which call on what is set up for the algorithms is little beside the calls that went before.

    ``set_up_s``: on the whole job, where it takes longest. ``library_s``: of calls on this part, seconds.
    """
    known = list(library_s)
    if not known or math.isnan(set_up_s):
        return FIRST_CALL
    return max(FIRST_CALL, math.ceil(set_up_s / (_SET_UP_SHARE * min(known))))
