"""Compares two sides in launches of their own, by turns: settings, files or builds of an MPI, default and tuning."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypedDict, Unpack

from colltune.bench.contract import Bench, LibraryBench
from colltune.core.errors import LaunchError
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario, Status, element_bytes
from colltune.core.space import Point, shapes
from colltune.judge.verdict import Comparison, compare_all
from colltune.measure.contract import REFUSED, Effort
from colltune.prove.time_plan import FEWEST_FILE_LAUNCHES
from colltune.store.tuning import Tuning

EFFORT = Effort(relative_width=0.01, box_s=0.02, fewest=20, most=400)
_FEWEST_COMPARED = 2
# With fewer launches of each side the difference between launches is unknown.
FEWEST_LAUNCHES = FEWEST_FILE_LAUNCHES


@dataclass(frozen=True)
class Side:
    """What is compared: ``bench`` with ``variables`` set for every rank. ``decides``: what its rules say of a call."""

    name: str
    bench: LibraryBench
    variables: Mapping[str, str] = field(default_factory=dict)
    decides: Callable[[Scenario], Choice] = lambda _scenario: DEFAULT


class Turns(TypedDict, total=False):
    """What ``launch_by_turns`` may be told."""

    effort: Effort
    deadline_s: float
    until_s: float
    launch_s: float
    note: Callable[[str], None]


def compare_sides(
    a: Side, b: Side, scenarios: Sequence[Scenario], launches: int, seed: int, **turns: Unpack[Turns]
) -> list[Comparison]:
    """Compares ``launches`` launches of ``a`` with as many of ``b``, in random order, as pairs of neighbours.

    The rest is as in ``launch_by_turns``. Scenarios with fewer than two launches of each side are left out.
    """
    first, second = launch_by_turns((a, b), scenarios, launches, seed, **turns)
    both = {s: (first.times_s[s], second.times_s[s]) for s in scenarios}
    fewest = min(_FEWEST_COMPARED, launches)
    both = {s: of_sides for s, of_sides in both.items() if min(map(len, of_sides)) >= fewest}
    # All by as many launches: the last one may have been cut off.
    used = [min(len(of_sides[which]) for of_sides in both.values()) for which in (0, 1)] if both else [0, 0]
    times_s = {(s, _decided(a, b, s)): (a_s[: used[0]], b_s[: used[1]]) for s, (a_s, b_s) in both.items()}
    # Where no page fault was met, the state of the heap makes no difference.
    with_kept = {
        (s, choice): (first.kept(s, len(a_s)), second.kept(s, len(b_s)))
        for (s, choice), (a_s, b_s) in times_s.items()
        if first.kept_s[s] or second.kept_s[s]
    }
    beside = {c.scenario: c for c in compare_all({**times_s, **with_kept}, paired=True)}
    kept, judged = {s for s, _ in with_kept}, compare_all(times_s, paired=True)
    return [replace(c, kept=beside[c.scenario] if c.scenario in kept else None) for c in judged]


@dataclass(frozen=True)
class Launched:
    """What launches of one side measured: a median for each launch in which there is one, in seconds.

    ``kept_s``: by position in these, with a heap that keeps what is freed, where a call meets page faults without.
    """

    times_s: defaultdict[Scenario, list[float]] = field(default_factory=lambda: defaultdict(list))
    kept_s: defaultdict[Scenario, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))

    def kept(self, scenario: Scenario, count: int) -> list[float]:
        """The first ``count`` times with such a heap."""
        return [self.kept_s[scenario].get(n, time_s) for n, time_s in enumerate(self.times_s[scenario][:count])]


def launch_by_turns(
    sides: Sequence[Side],
    scenarios: Sequence[Scenario],
    launches: int,
    seed: int,
    *,
    effort: Effort = EFFORT,
    deadline_s: float = math.inf,
    until_s: float = math.inf,
    launch_s: float = math.inf,
    note: Callable[[str], None] = lambda _note: None,
) -> list[Launched]:
    """Measures ``scenarios`` in ``launches`` launches of each side, which take turns in random order.

    There are fewer launches, but at least FEWEST_LAUNCHES of each side, if more would end after ``deadline_s``, on
    the clock of the bench of the first. A launch that other programs disturbed is made again, as often as there are
    launches. Measuring ends at ``until_s``, and in each launch after ``launch_s``, so that the first of ``scenarios``
    are measured in all.
    ``note`` hears of the scenarios that the agent refused to measure. Raises LaunchError where a launch fails: then
    that side is not in order, whatever its speed.
    """
    order, bench, refused = random.Random(seed), sides[0].bench, dict[Scenario, str]()
    measured = [Launched() for _ in sides]
    started_s = bench.now_s()
    mark = None if bench.watch is None else bench.watch.tally.mark
    calm = [0 for _ in sides]
    for launch in range(2 * launches):
        lacking = [which for which, count in enumerate(calm) if count < launches]
        each_s = (bench.now_s() - started_s) / max(launch, 1)
        if not lacking or (launch >= FEWEST_LAUNCHES and bench.now_s() + each_s > deadline_s):
            break
        for which in order.sample(lacking[::-1], len(lacking)):
            ends_s = min(until_s, bench.now_s() + launch_s)
            medians = _medians_of_launch(sides[which], scenarios, seed + launch, effort, ends_s, refused)
            if medians is None:
                continue
            calm[which] += 1
            medians_s, kept = medians
            for scenario, time_s in kept.items():
                measured[which].kept_s[scenario][len(measured[which].times_s[scenario])] = time_s
            for scenario, time_s in medians_s.items():
                measured[which].times_s[scenario].append(time_s)
        if launch + 1 < FEWEST_LAUNCHES or mark is None or bench.watch is None:
            continue  # a launch may take a tenth of a second: less than what an editor does now and then
        if bench.watch.tally.total(mark).is_busy:
            break  # there is no verdict on a busy machine
    for scenario, why in refused.items():
        note(f"{scenario} was not measured: {why}")
    return measured


def _decided(a: Side, b: Side, scenario: Scenario) -> Choice:
    """The choice to be named beside a comparison: that of ``b``, or where this is the default that of ``a``."""
    decided = b.decides(scenario)
    return a.decides(scenario) if decided == DEFAULT else decided


def _medians_of_launch(
    side: Side, scenarios: Sequence[Scenario], seed: int, effort: Effort, until_s: float, refused: dict[Scenario, str]
) -> tuple[dict[Scenario, float], dict[Scenario, float]] | None:
    """And those with a heap that keeps what is freed; None where other programs disturbed the launch.

    ``refused`` takes what the agent would not measure, and why.
    """
    medians_s: dict[Scenario, float] = {}
    kept: dict[Scenario, float] = {}
    if side.bench.now_s() >= until_s:
        return medians_s, kept
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
            medians_s[point.scenario] = median(samples[0].times_s)
            if samples[0].kept_s is not None:
                kept[point.scenario] = samples[0].kept_s
    return None if source.disturbed else (medians_s, kept)


# The most scenarios of each shape and collective, so that verification takes minutes.
_MOST_SIZES = 16
_CONTROLS = 3


def held_out(rules: RuleSet, sizes: Sequence[int], nodes: int, ppn: int) -> list[Scenario]:
    """Scenarios of one shape to verify: where a rule departs from the default, and a few where none does.

    ``sizes`` are those that were tuned. Between each two of them the size half way, which was not, is taken too.
    """
    element = element_bytes(rules.collective)
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
    scenarios: list[Scenario] = []
    for nodes, ppn in reversed(shapes(bench.nodes, bench.ppn)):
        for name, rules in tuning.rule_sets.items():
            scenarios += held_out(rules, tuned_sizes.get(name, ()), nodes, ppn)
    return scenarios


def tuned_side(name: str, bench: LibraryBench, tuning: Tuning, directory: Path) -> Side:
    """``bench`` with ``tuning``, whose files are in ``directory``."""
    return Side(name, bench, tuning.variables_at(directory), partial(RuleSet.decided, tuning.rule_sets))


def verify(
    bench: LibraryBench,
    tuning: Tuning,
    directory: Path,
    scenarios: Sequence[Scenario],
    launches: int,
    seed: int,
    **turns: Unpack[Turns],
) -> list[Comparison]:
    """``compare_sides`` of the library's own choice and the tuning; raises as it does."""
    sides = Side("default", bench), tuned_side("tuned", bench, tuning, directory)
    return compare_sides(*sides, scenarios, launches, seed, **turns)
