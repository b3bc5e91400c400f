"""Starts from earlier campaigns as far as they still hold, and says where they do not."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import median

from colltune.bench.contract import Bench
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.proven import Verdict
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.measure.contract import Effort, Source
from colltune.prove.compare.sentinels import Recheck, Sentinel, recheck, sentinels, spread, verdicts
from colltune.prove.in_run.holding import FEWEST_LAUNCHES, MOST_LAUNCHES, Holding, Promise, add_launch
from colltune.prove.in_run.holding import verdicts as holding_verdicts
from colltune.store.earlier import Earlier, archive, measurements, read_history, recall
from colltune.store.journal import Journal
from colltune.store.tuning import Tuning

# Sentinels of each collective: of a tuning that begins, and of the check by itself.
_FEW, _MANY = 6, 12
# Points of each collective without a rule that are looked at beside these.
_OTHERS = 4
# Of the budget, what the look at earlier measurements should take at most.
LOOK_SHARE = 0.04
_EFFORT = Effort(relative_width=0.02, box_s=0.01, fewest=40, most=200)
_LAUNCHES = 3
# Of the time for a check, what its first launches may measure for.
_MEASURING_SHARE = 0.3
# A sentinel with longer calls than this would take all the time there is.
_LONGEST_SHARE = 0.05


def begin_journal(path: Path, environment: Environment, resume: bool, note: Callable[[str], None]) -> Journal:
    """A new one, or with ``resume`` that of a campaign that was cut off; an earlier one goes into the history."""
    if resume:
        if (place := recall(path.parent, environment)) is not None:
            note(f"going on with the last campaign in this shape of job, from {place}")
    elif (place := archive(path.parent)) is not None:
        note(f"what was measured here before is kept in {place}")
    return Journal.begin(path, environment, resume)


@dataclass(frozen=True)
class Reused:
    """``samples``: those of before that still hold, and the look at them. ``holding``: the collectives that do.

    ``changed``: those of which the look found that they do not.
    """

    samples: Sequence[Sample] = ()
    holding: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


def reused(
    bench: Bench,
    source: Source,
    spaces: Mapping[str, Space],
    journal: Journal,
    effort: Effort,
    note: Callable[[str], None],
    of_others: Earlier | None = None,
    look_s: float = math.inf,
) -> Reused:
    """What earlier campaigns here measured in the same environment, as far as it still holds, and the look at it.

    ``of_others``: what other jobs of this machine measured, of which those scenarios count that are not known here. Of
    a campaign that is resumed, what ``journal`` has comes first. ``look_s``: what the look should take at most.
    """
    earlier, remarks = (None, []) if journal.samples else read_history(journal.path.parent, bench.environment)
    for text in remarks:
        note(text)
    earlier = _together(earlier, of_others)
    known = {sample.scenario for sample in journal.samples}
    samples = [] if earlier is None else fitting(earlier.samples, spaces, bench.legal)
    samples = [sample for sample in samples if sample.scenario not in known]

    if earlier is None or not samples:
        return Reused()
    beside = samples
    if earlier.side_by_side is not None:
        beside = fitting(earlier.side_by_side, spaces, bench.legal)
    beside = cheap(beside, look_s / (_FEW * len({one.scenario.collective for one in beside} or {""})))
    return reuse(
        samples, earlier.date, source, effort, journal.append, note, defaults_of(bench, spaces), beside, earlier.proven
    )


def defaults_of(bench: Bench, spaces: Mapping[str, Space]) -> Callable[[Scenario], Choice]:
    """What the default is measured as."""

    def default_of(scenario: Scenario) -> Choice:
        return DEFAULT if DEFAULT in spaces[scenario.collective].choices(scenario) else bench.baseline(scenario)

    return default_of


def cheap(samples: Sequence[Sample], most_s: float) -> list[Sample]:
    """Of the scenarios where two measurements took ``most_s`` at most; of the cheapest where there are too few."""
    found: list[Sample] = []
    for name in sorted({one.scenario.collective for one in samples}):
        costs_s: defaultdict[Scenario, list[float]] = defaultdict(list)
        for one in samples:
            if one.scenario.collective == name:
                costs_s[one.scenario].append(one.cost_s)
        pairs_s = {scenario: 2.0 * median(some) for scenario, some in costs_s.items()}
        cheapest = sorted(pairs_s, key=lambda scenario: (pairs_s[scenario], scenario))[: 2 * _FEW]
        cheap = {scenario for scenario, pair_s in pairs_s.items() if pair_s <= most_s} | set(cheapest)
        found += [one for one in samples if one.scenario in cheap]
    return found


def _together(own: Earlier | None, of_others: Earlier | None) -> Earlier | None:
    if own is None or of_others is None:
        return own or of_others
    known = {sample.scenario for sample in own.samples}
    new = [one for one in of_others.samples if one.scenario not in known]
    beside = of_others.samples if of_others.side_by_side is None else of_others.side_by_side
    new_beside = [one for one in beside if one.scenario not in known]
    return Earlier(own.date, (*own.samples, *new), (*own.samples, *new_beside), of_others.proven)


def fitting(
    samples: Sequence[Sample], spaces: Mapping[str, Space], legal: Callable[[Scenario], Sequence[Choice]]
) -> list[Sample]:
    """Those of ``samples`` that a campaign over ``spaces`` can use: what is legal, on shapes of this job."""
    shapes = {(s.nodes, s.ppn) for space in spaces.values() for s in space.scenarios}
    return [
        sample
        for sample in samples
        if sample.scenario.collective in spaces
        and (sample.scenario.nodes, sample.scenario.ppn) in shapes
        and sample.choice in legal(sample.scenario)
    ]


def reuse(
    samples: Sequence[Sample],
    date: str,
    source: Source,
    effort: Effort,
    record: Callable[[Sequence[Sample]], None],
    note: Callable[[str], None],
    default_of: Callable[[Scenario], Choice] = lambda _scenario: DEFAULT,
    side_by_side: Sequence[Sample] | None = None,
    proven: Mapping[Scenario, Choice] | None = None,
) -> Reused:
    """Of ``samples`` those that hold, collective by collective, by a look at a few of them on ``source``.

    ``record`` gets the new samples of that look as they come; then those that are used again. ``default_of``: what the
    default was measured as. ``side_by_side``: those of which a gain can be told; None: all.
    ``proven``: see Earlier.
    """
    told = samples if side_by_side is None else side_by_side
    wanted = sentinels(told, _FEW, (proven or {}).get, default_of)
    new = _measured(source, wanted, effort, record)
    unproven = [one.scenario for one in wanted if proven is not None and not one.promised]
    found = verdicts(recheck(wanted, [new]), unproven)
    kept: list[Sample] = []
    counts: defaultdict[str, int] = defaultdict(int)
    for sample in samples:
        if found.get(sample.scenario.collective) == "":
            kept.append(sample)
            counts[sample.scenario.collective] += 1
    for name in sorted({sample.scenario.collective for sample in samples}):
        why = found.get(name, "there is nothing to see that by")
        if counts[name]:
            note(f"{name}: {counts[name]} measurements of {date} still hold and are used again")
        else:
            note(f"{name}: measurements of {date} are not used: {why}")
    record(kept)
    changed = frozenset(name for name, why in found.items() if why)
    return Reused([*kept, *new], frozenset(name for name, count in counts.items() if count), changed)


def _measured(
    source: Source, wanted: Sequence[Sentinel], effort: Effort, record: Callable[[Sequence[Sample]], None]
) -> list[Sample]:
    found: list[Sample] = []
    for _, samples in source.measure([Point(one.scenario, (one.default, one.choice)) for one in wanted], effort):
        record(samples)
        found += samples
    return found


@dataclass(frozen=True)
class TuningDrift:
    """What became of a tuning. ``rules``: those in force, judged. ``others``: points without a rule, which only inform.

    ``verdicts``: why a collective does not hold, "" where it does. ``left_out``: rules whose calls take too long to be
    measured in the time there was.
    """

    rules: Sequence[Holding]
    others: Sequence[Recheck]
    verdicts: Mapping[str, str]
    launches: int
    left_out: int


def drift(bench: Bench, tuning: Tuning, directory: Path, budget_s: float, seed: int) -> TuningDrift:
    """Measures rules in force again beside the default, in up to 30 fresh launches, as long as any looks lost.

    Raises InputError where nothing of the tuning can be measured here.
    """
    deadline_s = bench.now_s() + budget_s
    samples = _usable(_measurements(directory), bench, budget_s)
    promises = _promises(tuning, samples, bench)
    kept, left_out = _affordable(promises, budget_s)
    ruled = {one.scenario for one in promises}
    others = sentinels([s for s in samples if s.scenario not in ruled], _OTHERS, lambda s: _choice_of(tuning, s))
    if not kept and not others:
        raise InputError(f"{directory} holds nothing that could be measured again here", "Tune anew")
    rules = [Holding(one, (), len(kept), legal=one.choice in bench.legal(one.scenario)) for one in kept]
    rules, launches = look_again(
        rules,
        {one.scenario: bench.baseline(one.scenario) for one in kept},
        lambda launch: bench.launch(seed + launch),
        deadline_s,
        [Point(one.scenario, (DEFAULT, one.choice)) for one in others],
        bench.now_s,
    )
    found = recheck(others, launches[:_LAUNCHES])
    return TuningDrift(rules, found, holding_verdicts(rules), len(launches), left_out)


def look_again(
    rules: Sequence[Holding],
    baselines: Mapping[Scenario, Choice],
    open_source: Callable[[int], Source],
    deadline_s: float = math.inf,
    beside: Sequence[Point] = (),
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Holding], list[list[Sample]]]:
    """``rules`` after as many launches as it takes to tell, and what was measured in each.

    ``baselines``: what each is compared with. ``open_source``: begins the launch of a number. ``beside``: points that
    the first launches measure too. ``deadline_s`` is that of ``clock``.
    """
    rules, launches, longest_s = list(rules), list[list[Sample]](), 0.0
    while len(launches) < MOST_LAUNCHES:
        points = [Point(p.scenario, (baselines[p.scenario], p.choice)) for p in (r.promise for r in rules if r.open)]
        points += beside if len(launches) < _LAUNCHES else ()
        began_s = clock()
        if not points or (launches and began_s + longest_s > deadline_s):
            break
        with closing(open_source(len(launches))) as source:
            in_time = takewhile(lambda _point: clock() < deadline_s, points)
            samples = [sample for _, some in source.measure(in_time, _EFFORT) for sample in some]
        launches.append([] if source.disturbed else samples)
        longest_s = max(longest_s, clock() - began_s)
        rules = add_launch(rules, launches[-1], baselines)
    return rules, launches


def _choice_of(tuning: Tuning, scenario: Scenario) -> Choice:
    rules = tuning.rule_sets.get(scenario.collective)
    return DEFAULT if rules is None else rules.evaluate(scenario)


def _usable(samples: Sequence[Sample], bench: Bench, budget_s: float) -> list[Sample]:
    """Those with a time, of shapes that this job can form and calls that are short enough."""
    return [
        sample
        for sample in samples
        if sample.status is Status.OK
        and _fits(sample.scenario, bench)
        and _EFFORT.expected_cost_s(sample.time_s) < _LONGEST_SHARE * budget_s
        and sample.choice in bench.legal(sample.scenario)
    ]


def _fits(scenario: Scenario, bench: Bench) -> bool:
    return scenario.nodes <= bench.nodes and scenario.ppn <= bench.ppn


def _promises(tuning: Tuning, samples: Sequence[Sample], bench: Bench) -> list[Promise]:
    """The rules in force at scenarios that were compared or measured, with the proof of each.

    Without those that make equal bits: these need not pay.
    """
    proofs = {one.scenario: one for one in tuning.summary.having(Verdict.KEPT) if one.has_evidence}
    compared = {one.scenario for one in tuning.summary.decisions if one.ratios}
    default_s: defaultdict[Scenario, list[float]] = defaultdict(list)
    for sample in samples:
        if sample.choice == DEFAULT:
            default_s[sample.scenario].append(sample.time_s)
    found = []
    for scenario in sorted({*compared, *(sample.scenario for sample in samples)}):
        choice = _choice_of(tuning, scenario)
        equal_bits = scenario.collective in tuning.summary.reproducible
        if equal_bits or not _fits(scenario, bench) or choice in (DEFAULT, bench.baseline(scenario)):
            continue
        proof, then_s = proofs.get(scenario), default_s[scenario]
        found.append(Promise(scenario, choice, proof, median(then_s) if then_s else None))
    return found


def _affordable(promises: Sequence[Promise], budget_s: float) -> tuple[list[Promise], int]:
    """At most 12 of each collective, and so many that all launches fit into the time. Also: how many had no room."""
    by_name: defaultdict[str, list[Promise]] = defaultdict(list)
    for one in promises:
        by_name[one.scenario.collective].append(one)
    chosen = [one for mine in by_name.values() for one in spread(mine, _MANY)]
    kept: list[Promise] = []
    spent_s = 0.0
    for one in sorted(chosen, key=lambda promise: promise.default_s or 0.0):
        spent_s += 2.0 * _EFFORT.expected_cost_s(one.default_s or 0.0)
        if not kept or spent_s * FEWEST_LAUNCHES < _MEASURING_SHARE * budget_s:
            kept.append(one)
    return sorted(kept, key=lambda promise: promise.scenario), len(chosen) - len(kept)


def _measurements(directory: Path) -> list[Sample]:
    """Of all campaigns."""
    if found := measurements(directory):
        return list(found)
    raise InputError(f"{directory} holds no measurements", "Give a directory that `colltune tune` wrote")
