"""Compares the library with the tuned file and without it, also at sizes that were not tuned."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Unpack

from colltune.bench.contract import Bench, LibraryBench
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, REDUCTIONS, Scenario
from colltune.core.space import shapes
from colltune.judge.verdict import Comparison
from colltune.prove.compare.two_sides import Side, Turns, compare_sides
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
