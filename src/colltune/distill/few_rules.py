"""Decisions whose rules are few enough for a file that every rank reads at its start."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from colltune.core.decision_table import DecisionTable
from colltune.core.sample import DEFAULT, Scenario, SizeBasis
from colltune.core.space import Space
from colltune.distill.decide import Decided
from colltune.distill.minimal_rules import distill_proven

# Of one collective. `make bench-scale` says what 256 add to the start of a program (`init_ms`).
MOST_RULES = 300


class _Block(NamedTuple):
    """The shapes of some ranks per node that have one list of sizes; ``rules``: these, and the one that ends it."""

    scenarios: Sequence[Scenario]
    rules: int
    gain: float


def with_few_rules(decided: Decided, space: Space, basis: SizeBasis, most: int = MOST_RULES) -> Decided:
    """``decided`` such that ``most`` rules say it: the default stays in the blocks that gain least for their rules.

    They are not proven then, which leaves the time of the proof to the others.
    """
    rule_set, allowed = distill_proven(decided.choices, space, basis), most
    blocks = _blocks(DecisionTable.of(rule_set), decided, space) if len(rule_set.rules) > most else []
    fewer = decided
    while len(rule_set.rules) > most:
        kept: set[Scenario] = set()
        left = allowed
        for block in blocks:
            if block.rules <= left:
                left -= block.rules
                kept.update(block.scenarios)
        choices = {scenario: choice if scenario in kept else DEFAULT for scenario, choice in decided.choices.items()}
        gains = {scenario: gain if scenario in kept else 0.0 for scenario, gain in decided.gains.items()}
        fewer, rule_set = replace(decided, choices=choices, gains=gains), distill_proven(choices, space, basis)
        # Blocks that were left out may have joined others: their neighbours may take more rules than before.
        allowed = min(allowed * most // len(rule_set.rules), allowed - 1)
    return fewer


def _blocks(table: DecisionTable, decided: Decided, space: Space) -> list[_Block]:
    """Those with a choice, what gains most for its rules first."""
    inside: defaultdict[tuple[int, int], list[Scenario]] = defaultdict(list)
    for scenario, choice in decided.choices.items():
        if choice != DEFAULT:
            of_ppn = bisect_left(table.by_ppn.bounds, scenario.ppn)
            by_ranks = table.by_ppn.pairs[of_ppn][1]
            inside[of_ppn, bisect_left(by_ranks.bounds, scenario.ranks)].append(scenario)
    blocks = []
    for (of_ppn, of_ranks), scenarios in inside.items():
        rules = len(table.by_ppn.pairs[of_ppn][1].pairs[of_ranks][1].pairs) + 1
        gain = sum(space.weight(scenario) * decided.gains[scenario] for scenario in scenarios)
        blocks.append(_Block(scenarios, rules, gain))
    return sorted(blocks, key=lambda block: -block.gain / block.rules)
