"""Starts from earlier campaigns as far as they still hold, and says where they do not."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.measure.contract import Effort, Source
from colltune.store.history import Earlier, archive, entries, read_history
from colltune.store.journal import Journal, read_journal
from colltune.store.tuning import JOURNAL, Tuning
from colltune.verify.drift import Recheck, Sentinel, recheck, sentinels, verdicts
from colltune.workbench import Workbench

# Sentinels of each collective: of a tuning that begins, and of the check by itself.
_FEW, _MANY = 6, 12
_EFFORT = Effort(relative_width=0.02, box_s=0.01, fewest=10, most=200)
_LAUNCHES = 3
# A sentinel with longer calls than this would take all the time there is.
_LONGEST_SHARE = 0.05


def begin_journal(path: Path, environment: Environment, resume: bool, note: Callable[[str], None]) -> Journal:
    """A new one, or with ``resume`` that of a campaign that was cut off; an earlier one goes into the history."""
    if not resume and (place := archive(path.parent)) is not None:
        note(f"what was measured here before is kept in {place}")
    return Journal.begin(path, environment, resume)


def reused(
    bench: Workbench,
    source: Source,
    spaces: Mapping[str, Space],
    journal: Journal,
    effort: Effort,
    note: Callable[[str], None],
) -> Sequence[Sample]:
    """What earlier campaigns here measured in the same environment, as far as it still holds, and the look at it."""
    earlier, remarks = read_history(journal.path.parent, bench.environment)
    for text in remarks:
        note(text)
    samples = [] if earlier is None else fitting(earlier, spaces, bench.legal)
    return reuse(samples, earlier.date, source, effort, journal.append, note) if earlier and samples else ()


def fitting(
    earlier: Earlier, spaces: Mapping[str, Space], legal: Callable[[Scenario], Sequence[Choice]]
) -> list[Sample]:
    """The samples of ``earlier`` that a campaign over ``spaces`` can use: what is legal, on shapes of this job."""
    shapes = {(s.nodes, s.ppn) for space in spaces.values() for s in space.scenarios}
    return [
        sample
        for sample in earlier.samples
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
) -> list[Sample]:
    """Of ``samples`` those that hold, collective by collective, by a look at a few of them on ``source``.

    ``record`` gets the new samples of that look as they come; then those that are used again.
    """
    wanted = sentinels(samples, _FEW)
    new = _measured(source, wanted, effort, record)
    found = verdicts(recheck(wanted, [new]))
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
    return [*kept, *new]


def _measured(
    source: Source, wanted: Sequence[Sentinel], effort: Effort, record: Callable[[Sequence[Sample]], None]
) -> list[Sample]:
    found: list[Sample] = []
    for _, samples in source.measure([Point(one.scenario, (DEFAULT, one.choice)) for one in wanted], effort):
        record(samples)
        found += samples
    return found


def drift(
    bench: Workbench, tuning: Tuning, directory: Path, budget_s: float, seed: int
) -> tuple[list[Recheck], Mapping[str, str]]:
    """What became of the decisions and measurements of ``directory``: sentinels, and a verdict by collective.

    Takes fewer sentinels and fewer launches where they would not be over within ``budget_s``. Raises InputError where
    nothing of the tuning can be measured here.
    """
    started_s = time.monotonic()

    def chosen(scenario: Scenario) -> Choice | None:
        """What a rule runs there; where none does, what was the best beside the default."""
        rules = tuning.rule_sets.get(scenario.collective)
        choice = DEFAULT if rules is None else rules.evaluate(scenario)
        return choice if choice != DEFAULT else None

    samples = [
        sample
        for sample in _measurements(directory)
        if sample.status is Status.OK
        and sample.scenario.nodes <= bench.nodes
        and sample.scenario.ppn <= bench.ppn
        and _EFFORT.expected_cost_s(sample.time_s) < _LONGEST_SHARE * budget_s
        and sample.choice in bench.legal(sample.scenario)
    ]
    wanted = sentinels(samples, _MANY, chosen)
    if not wanted:
        raise InputError(f"{directory} holds nothing that could be measured again here", "Tune anew")
    launches: list[list[Sample]] = []
    while len(launches) < _LAUNCHES:
        spent_s = time.monotonic() - started_s
        if launches and spent_s + spent_s / len(launches) > budget_s:
            break
        with closing(bench.live_source(seed + len(launches))) as source:
            launches.append(_measured(source, wanted, _EFFORT, lambda _samples: None))
    found = recheck(wanted, launches)
    return found, verdicts(found)


def _measurements(directory: Path) -> list[Sample]:
    """Of the last campaign; where one was begun and has measured nothing, of the one before."""
    for place in (directory, *entries(directory)):
        if (place / JOURNAL).exists() and (found := read_journal(place / JOURNAL).samples):
            return list(found)
    raise InputError(f"{directory} holds no measurements", "Give a directory that `colltune tune` wrote")
