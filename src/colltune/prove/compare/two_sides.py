"""Compares any two sides in launches of their own, by turns: settings, files or builds of an MPI."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from statistics import median

from colltune.bench.contract import LibraryBench
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import LaunchError
from colltune.core.sample import Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import REFUSED, Convention, Effort
from colltune.prove.compare.verdict import Comparison, compare_all
from colltune.prove.time_plan import FEWEST_FILE_LAUNCHES

EFFORT = Effort(relative_width=0.01, box_s=0.02, fewest=20, most=400)
_FEWEST_COMPARED = 2
# With fewer launches of each side the difference between launches is unknown.
FEWEST_LAUNCHES = FEWEST_FILE_LAUNCHES
# Another program's time of each scenario, in seconds, under variables that are set for every rank.
Medians = Callable[[Mapping[str, str], Sequence[Scenario]], Mapping[Scenario, float]]


def _default(scenario: Scenario) -> Choice:  # noqa: ARG001
    return DEFAULT


@dataclass(frozen=True)
class Side:
    """What is compared: ``bench`` with ``variables`` set for every rank. ``decides``: what its rules say of a call."""

    name: str
    bench: LibraryBench
    variables: Mapping[str, str] = field(default_factory=dict)
    decides: Callable[[Scenario], Choice] = _default


def compare_sides(
    a: Side,
    b: Side,
    scenarios: Sequence[Scenario],
    launches: int,
    seed: int,
    *,
    osu: Medians | None = None,
    effort: Effort = EFFORT,
    deadline_s: float = math.inf,
    until_s: float = math.inf,
    note: Callable[[str], None] = lambda _note: None,
) -> list[Comparison]:
    """Compares ``launches`` launches of ``a`` with as many of ``b``, in random order, side by side.

    With ``osu`` that program measures in place of the agent. There are fewer launches, but at least FEWEST_LAUNCHES of
    each side, if more would end after ``deadline_s``, which is on the clock of the bench of ``a``. Measuring ends at
    ``until_s``, and scenarios with fewer than two launches of each side by then are left out. ``note`` hears of the
    scenarios that the agent refused to measure. Raises LaunchError where a launch fails: then that side is not in
    order, whatever its speed.
    """
    order, sides = random.Random(seed), (a, b)
    times: tuple[_Times, _Times] = (defaultdict(list), defaultdict(list))
    kept_s: defaultdict[Scenario, dict[tuple[int, int], float]] = defaultdict(dict)
    refused: dict[Scenario, str] = {}
    bench = a.bench
    started_s = bench.now_s()
    mark = None if bench.watch is None else bench.watch.tally.mark
    for launch in range(launches):
        each_s = (bench.now_s() - started_s) / max(launch, 1)
        if launch >= FEWEST_LAUNCHES and bench.now_s() + each_s > deadline_s:
            break
        for which in order.sample((1, 0), 2):
            if osu is None:
                found, kept = _medians_of_launch(sides[which], scenarios, seed + launch, effort, until_s, refused)
                for scenario, time_s in kept.items():
                    kept_s[scenario][which, len(times[which][scenario])] = time_s
            else:
                found = dict(osu(sides[which].variables, scenarios))
            for scenario, time_s in found.items():
                times[which][scenario].append(time_s)
        if mark is not None and bench.watch is not None and bench.watch.tally.found(mark).is_busy:
            break  # there is no verdict on a busy machine
    for scenario, why in refused.items():
        note(f"{scenario} was not measured: {why}")
    both = {s: (times[0][s], times[1][s]) for s in scenarios}
    fewest = min(_FEWEST_COMPARED, launches)
    both = {s: of_sides for s, of_sides in both.items() if min(map(len, of_sides)) >= fewest}
    # All by as many launches: the last one may have been cut off.
    used = [min(len(of_sides[which]) for of_sides in both.values()) for which in (0, 1)] if both else [0, 0]
    times_s = {(s, _decided(a, b, s)): (a_s[: used[0]], b_s[: used[1]]) for s, (a_s, b_s) in both.items()}
    # Where no page fault was met, the state of the heap makes no difference.
    with_kept = {
        (s, choice): (
            [kept_s[s].get((0, n), time_s) for n, time_s in enumerate(a_s)],
            [kept_s[s].get((1, n), time_s) for n, time_s in enumerate(b_s)],
        )
        for (s, choice), (a_s, b_s) in times_s.items()
        if s in kept_s
    }
    beside = {one.scenario: one for one in compare_all({**times_s, **with_kept}) if one.scenario in kept_s}
    return [replace(one, kept=beside.get(one.scenario)) for one in compare_all(times_s)]


_Times = defaultdict[Scenario, list[float]]


def _decided(a: Side, b: Side, scenario: Scenario) -> Choice:
    """The choice to be named beside a comparison: that of ``b``, or where this is the default that of ``a``."""
    decided = b.decides(scenario)
    return a.decides(scenario) if decided == DEFAULT else decided


def _medians_of_launch(
    side: Side,
    scenarios: Sequence[Scenario],
    seed: int,
    effort: Effort,
    until_s: float,
    refused: dict[Scenario, str],
) -> tuple[dict[Scenario, float], dict[Scenario, float]]:
    """And those with a heap that keeps what is freed. ``refused`` takes what the agent would not measure, and why."""
    found: dict[Scenario, float] = {}
    kept: dict[Scenario, float] = {}
    if side.bench.now_s() >= until_s:
        return found, kept
    with closing(side.bench.launch(seed, side.variables)) as source:
        source.until_s = until_s
        for point, samples in source.measure([Point(scenario, (DEFAULT,)) for scenario in scenarios], effort):
            if samples and samples[0].status is Status.INAPPLICABLE and samples[0].detail != REFUSED:
                continue  # there is no such call, on either side: less than one element for each rank
            if samples and samples[0].status is Status.DISTURBED:
                continue
            if samples and samples[0].status is Status.UNMEASURED:
                refused[point.scenario] = samples[0].detail
                continue
            if not samples or samples[0].status is not Status.OK:
                what = samples[0].status if samples else "lost"
                under = dict(side.variables) or side.name
                raise LaunchError(f"{point.scenario} was {what} with {under}", "Run `colltune verify --results`")
            time_s = samples[0].osu_mean_s
            if effort.convention is Convention.SLOWEST_RANK or time_s is None:
                time_s = median(samples[0].times_s)
            found[point.scenario] = time_s
            if samples[0].kept_s is not None:
                kept[point.scenario] = samples[0].kept_s
    return ({}, {}) if source.disturbed else (found, kept)
