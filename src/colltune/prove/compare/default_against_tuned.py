"""Compares the library with the tuned file and without it, also at sizes that were not tuned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from colltune.bench.contract import Bench, LibraryBench
from colltune.core.choice import DEFAULT, Choice
from colltune.core.rules import RuleSet
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import shapes
from colltune.measure.contract import Effort
from colltune.prove.compare.two_sides import EFFORT, Medians, Side, compare_sides
from colltune.prove.compare.verdict import Comparison
from colltune.store.tuning import Tuning

# The most scenarios of each shape and collective, so that verification takes minutes.
_MOST_SIZES = 16
_CONTROLS = 3


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


def sides_of(bench: LibraryBench, tuning: Tuning, directory: Path) -> tuple[Side, Side]:
    """The library's own choice, and ``tuning``, whose files are in ``directory``."""

    def decides(scenario: Scenario) -> Choice:
        return tuning.rule_sets[scenario.collective].evaluate(scenario)

    return Side("default", bench), Side("tuned", bench, tuning.variables_at(directory), decides)


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
    deadline_s: float = math.inf,
    until_s: float = math.inf,
    note: Callable[[str], None] = lambda _note: None,
) -> list[Comparison]:
    """``compare_sides`` of these two; raises as it does."""
    first, second = sides_of(bench, tuning, directory)
    return compare_sides(
        first,
        second,
        scenarios,
        launches,
        seed,
        osu=osu,
        effort=effort,
        deadline_s=deadline_s,
        until_s=until_s,
        note=note,
    )
