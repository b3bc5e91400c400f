"""Compares the library with the tuned file and without it, in separate launches, also at sizes that were not tuned."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from colltune.bench.contract import Bench, LibraryBench
from colltune.core.choice import DEFAULT
from colltune.core.errors import LaunchError
from colltune.core.rules import RuleSet
from colltune.core.sample import Status
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import Point, shapes
from colltune.measure.contract import REFUSED, Convention, Effort
from colltune.prove.compare.verdict import Comparison, compare_all
from colltune.prove.time_plan import FEWEST_FILE_LAUNCHES
from colltune.store.tuning import Tuning

EFFORT = Effort(relative_width=0.01, box_s=0.02, fewest=20, most=400)
# The most scenarios of each shape and collective, so that verification takes minutes.
_MOST_SIZES = 16
_CONTROLS = 3
_FEWEST_COMPARED = 2
# With fewer launches of each kind the difference between launches is unknown.
FEWEST_LAUNCHES = FEWEST_FILE_LAUNCHES
# Another program's time of each scenario, in seconds, under variables that are set for every rank.
Medians = Callable[[Mapping[str, str], Sequence[Scenario]], Mapping[Scenario, float]]


def held_out(rules: RuleSet, sizes: Sequence[int], nodes: int, ppn: int) -> list[Scenario]:
    """Scenarios of one shape to verify: where a rule departs from the default, and a few where none does.

    ``sizes`` are those that were tuned. Between each two of them the size half way, which was not, is taken too.
    """
    element = 4 if rules.collective in REDUCTIONS else 1
    between = [(a + b) // 2 // element * element for a, b in pairwise(sizes)]
    scenarios = [Scenario(rules.collective, nodes, ppn, size) for size in sorted({*sizes, *between})]
    tuned = [s for s in scenarios if rules.evaluate(s) != DEFAULT]
    controls = [s for s in scenarios if rules.evaluate(s) == DEFAULT]
    return sorted([*_spread(tuned, _MOST_SIZES), *_spread(controls, _CONTROLS)])


def _spread(scenarios: Sequence[Scenario], most: int) -> list[Scenario]:
    """At most ``most`` of them, evenly taken, the first and the last included."""
    if len(scenarios) <= most:
        return list(scenarios)
    return [scenarios[round(i * (len(scenarios) - 1) / (most - 1))] for i in range(most)]


def scenarios_to_verify(tuning: Tuning, tuned_sizes: Mapping[str, Sequence[int]], bench: Bench) -> list[Scenario]:
    """Over all collectives and the shapes that the job at hand can form."""
    found: list[Scenario] = []
    for nodes, ppn in reversed(shapes(bench.nodes, bench.ppn)):
        for name, rules in tuning.rule_sets.items():
            found += held_out(rules, tuned_sizes.get(name, ()), nodes, ppn)
    return found


def verify(
    bench: LibraryBench,
    tuning: Tuning,
    directory: Path,
    scenarios: Sequence[Scenario],
    launches: int,
    seed: int,
    *,
    osu: Medians | None = None,
    effort: Effort = EFFORT,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    deadline_s: float = math.inf,
    until_s: float = math.inf,
    note: Callable[[str], None] = lambda _note: None,
) -> list[Comparison]:
    """Compares ``launches`` launches with the file in force to as many without it, in random order, side by side.

    With ``osu`` that program measures in place of the agent. There are fewer launches, but at least FEWEST_LAUNCHES of
    each kind, if more would end after ``deadline_s``, which is on the bench's clock. Measuring ends at ``until_s``, and
    scenarios with fewer than two launches of each kind by then are left out. ``note`` hears of the
    scenarios that the agent refused to measure. Raises LaunchError where a launch fails: then the file is not in order,
    whatever its speed.
    """
    variables = tuning.variables_at(directory)
    order = random.Random(seed)
    times: dict[bool, defaultdict[Scenario, list[float]]] = {True: defaultdict(list), False: defaultdict(list)}
    kept_s: defaultdict[Scenario, dict[tuple[bool, int], float]] = defaultdict(dict)
    refused: dict[Scenario, str] = {}
    started_s = bench.now_s()
    mark = None if bench.watch is None else bench.watch.tally.mark
    for launch in range(launches):
        each_s = (bench.now_s() - started_s) / max(launch, 1)
        if launch >= FEWEST_LAUNCHES and bench.now_s() + each_s > deadline_s:
            break
        for position, tuned in enumerate(order.sample((True, False), 2)):
            setting = variables if tuned else {}
            if osu is None:
                found, kept = _medians_of_launch(bench, setting, scenarios, seed + launch, effort, until_s, refused)
                for scenario, time_s in kept.items():
                    kept_s[scenario][tuned, len(times[tuned][scenario])] = time_s
            else:
                found = dict(osu(setting, scenarios))
            for scenario, time_s in found.items():
                times[tuned][scenario].append(time_s)
            progress(2 * launch + position + 1, 2 * launches)
        if mark is not None and bench.watch is not None and bench.watch.tally.found(mark).is_busy:
            break  # there is no verdict on a busy machine
    for scenario, why in refused.items():
        note(f"{scenario} was not measured: {why}")
    both = {s: (times[False][s], times[True][s]) for s in scenarios}
    fewest = min(_FEWEST_COMPARED, launches)
    both = {s: sides for s, sides in both.items() if min(map(len, sides)) >= fewest}
    # All by as many launches: the last one may have been cut off.
    kept_launches = [min(len(sides[kind]) for sides in both.values()) for kind in (0, 1)] if both else [0, 0]
    sides = {
        (s, tuning.rule_sets[s.collective].evaluate(s)): (default_s[: kept_launches[0]], tuned_s[: kept_launches[1]])
        for s, (default_s, tuned_s) in both.items()
    }
    # Where no page fault was met, the state of the heap makes no difference.
    with_kept = {
        (s, choice): (
            [kept_s[s].get((False, n), time_s) for n, time_s in enumerate(default_s)],
            [kept_s[s].get((True, n), time_s) for n, time_s in enumerate(tuned_s)],
        )
        for (s, choice), (default_s, tuned_s) in sides.items()
        if s in kept_s
    }
    beside = {one.scenario: one for one in compare_all({**sides, **with_kept}) if one.scenario in kept_s}
    return [replace(one, kept=beside.get(one.scenario)) for one in compare_all(sides)]


def _medians_of_launch(
    bench: LibraryBench,
    variables: Mapping[str, str],
    scenarios: Sequence[Scenario],
    seed: int,
    effort: Effort,
    until_s: float,
    refused: dict[Scenario, str],
) -> tuple[dict[Scenario, float], dict[Scenario, float]]:
    """And those with a heap that keeps what is freed. ``refused`` takes what the agent would not measure, and why."""
    found: dict[Scenario, float] = {}
    kept: dict[Scenario, float] = {}
    if bench.now_s() >= until_s:
        return found, kept
    with closing(bench.launch(seed, variables)) as source:
        source.until_s = until_s
        for point, samples in source.measure([Point(scenario, (DEFAULT,)) for scenario in scenarios], effort):
            if samples and samples[0].status is Status.INAPPLICABLE and samples[0].detail != REFUSED:
                continue  # there is no such call, with or without a file: less than one element for each rank
            if samples and samples[0].status is Status.DISTURBED:
                continue
            if samples and samples[0].status is Status.UNMEASURED:
                refused[point.scenario] = samples[0].detail
                continue
            if not samples or samples[0].status is not Status.OK:
                what = samples[0].status if samples else "lost"
                raise LaunchError(
                    f"{point.scenario} was {what} with {dict(variables)}", "Run `colltune verify --results`"
                )
            time_s = samples[0].osu_mean_s
            if effort.convention is Convention.SLOWEST_RANK or time_s is None:
                time_s = median(samples[0].times_s)
            found[point.scenario] = time_s
            if samples[0].kept_s is not None:
                kept[point.scenario] = samples[0].kept_s
    return ({}, {}) if source.disturbed else (found, kept)
