"""Starts from earlier campaigns as far as they still hold, and says where they do not."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from colltune.bench.contract import Bench
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, grouped
from colltune.core.space import Point, Space
from colltune.judge.sentinels import Sentinel, Validity, is_uncertain, recheck, sentinels, verdicts
from colltune.measure.contract import Effort, Launch
from colltune.store.earlier import Earlier, archive, read_history, recall
from colltune.store.journal import Journal

# Sentinels of each collective.
_FEW = 6
# Launches in which they are measured, where the first is not enough.
_LOOKS = 6
# Of the budget, what the look at earlier measurements should take at most.
LOOK_SHARE = 0.04


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
    source: Launch,
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
    beside = cheap(beside, look_s / (_FEW * len({sample.scenario.collective for sample in beside} or {""})))
    return reuse(
        replace(earlier, samples=tuple(samples), side_by_side=tuple(beside)),
        source,
        effort,
        journal.append,
        note,
        defaults_of(bench, spaces),
    )


def defaults_of(bench: Bench, spaces: Mapping[str, Space]) -> Callable[[Scenario], Choice]:
    """What the default is measured as."""

    def default_of(scenario: Scenario) -> Choice:
        return DEFAULT if DEFAULT in spaces[scenario.collective].choices(scenario) else bench.baseline(scenario)

    return default_of


def cheap(samples: Sequence[Sample], most_s: float) -> list[Sample]:
    """Of the scenarios where two measurements took ``most_s`` at most; of the cheapest where there are too few."""
    kept: list[Sample] = []
    for name in sorted({sample.scenario.collective for sample in samples}):
        own = (sample for sample in samples if sample.scenario.collective == name)
        mine = grouped(own, lambda sample: sample.scenario)
        pairs_s = {scenario: 2.0 * median(sample.cost_s for sample in some) for scenario, some in mine.items()}
        cheapest = sorted(pairs_s, key=lambda scenario: (pairs_s[scenario], scenario))[: 2 * _FEW]
        cheap = {scenario for scenario, pair_s in pairs_s.items() if pair_s <= most_s} | set(cheapest)
        kept += [sample for sample in samples if sample.scenario in cheap]
    return kept


def _together(own: Earlier | None, of_others: Earlier | None) -> Earlier | None:
    if own is None or of_others is None:
        return own or of_others
    known = {sample.scenario for sample in own.samples}
    new = [sample for sample in of_others.samples if sample.scenario not in known]
    beside = of_others.samples if of_others.side_by_side is None else of_others.side_by_side
    new_beside = [sample for sample in beside if sample.scenario not in known]
    return replace(of_others, date=own.date, samples=(*own.samples, *new), side_by_side=(*own.samples, *new_beside))


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
    earlier: Earlier,
    source: Launch,
    effort: Effort,
    record: Callable[[Sequence[Sample]], None],
    note: Callable[[str], None],
    default_of: Callable[[Scenario], Choice] = lambda _scenario: DEFAULT,
) -> Reused:
    """Of what is ``earlier`` that which holds, collective by collective, by a look at a few of them on ``source``.

    ``record`` gets the new samples of that look as they come; then those that are used again. ``default_of``: what the
    default was measured as. Where a launch is not enough, ``source`` is launched anew for another look.
    """
    samples, date, proven = earlier.samples, earlier.date, earlier.proven
    beside = samples if earlier.side_by_side is None else earlier.side_by_side
    chosen = sentinels(beside, _FEW, (proven or {}).get, default_of, earlier.compared)
    unproven = [sentinel.scenario for sentinel in chosen if proven is not None and not sentinel.promised]
    looks = [_measured(source, chosen, effort, record)]
    while len(looks) < _LOOKS and is_uncertain(recheck(chosen, looks), unproven):
        source.kill()
        looks.append(_measured(source, chosen, effort, record))
    new, validities = [sample for look in looks for sample in look], verdicts(recheck(chosen, looks), unproven)
    kept: list[Sample] = []
    counts: defaultdict[str, int] = defaultdict(int)
    nothing = Validity("there is nothing to see that by")
    for sample in samples:
        if validities.get(sample.scenario.collective, nothing).holds:
            kept.append(sample)
            counts[sample.scenario.collective] += 1
    for name in sorted({sample.scenario.collective for sample in samples}):
        why = validities.get(name, nothing).why_not
        if counts[name]:
            note(f"{name}: {counts[name]} measurements of {date} still hold and are used again")
        else:
            note(f"{name}: measurements of {date} are not used: {why}")
    record(kept)
    changed = frozenset(name for name, validity in validities.items() if not validity.holds)
    return Reused([*kept, *new], frozenset(name for name, count in counts.items() if count), changed)


def _measured(
    source: Launch, chosen: Sequence[Sentinel], effort: Effort, record: Callable[[Sequence[Sample]], None]
) -> list[Sample]:
    measured: list[Sample] = []
    points = [Point(sentinel.scenario, (sentinel.default, sentinel.choice)) for sentinel in chosen]
    for _, samples in source.measure(points, effort):
        record(samples)
        measured += samples
    return measured
