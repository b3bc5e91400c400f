"""Rules for files that know ranks and sizes, but not how the ranks lie on the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from colltune.core.choice import DEFAULT, Choice
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis


def merge_ppn(
    rule_set: RuleSet, shapes: Sequence[tuple[int, int]], fits: Callable[[Choice, int], bool] = lambda _c, _n: True
) -> RuleSet:
    """``rule_set`` without its ppn: a choice stays where all of ``shapes`` with as many ranks make it.

    ``shapes``: the (nodes, ppn) that were looked at. Where two of them disagree, and for rank counts that none of them
    has, the default stands: the file would decide for both alike, and for one of them it would be unproven. A set
    without any bound on ppn keeps its rank counts. ``fits`` says whether a choice can run on a number of ranks at all;
    a rule that holds for several counts is cut to those.
    """
    blocks: list[tuple[int | None, list[tuple[int | None, Choice]]]] = []
    for low, high, ppns in _intervals(rule_set, shapes):
        steps = _steps(rule_set, low, ppns)
        for bound, some in _cut(steps, low, high, fits):
            if blocks and blocks[-1][1] == some:
                blocks.pop()
            blocks.append((bound, some))
    rules = [Rule(None, ranks, size, choice) for ranks, steps in blocks for size, choice in steps]
    return RuleSet(rule_set.collective, rule_set.basis, tuple(rules))


def _intervals(
    rule_set: RuleSet, shapes: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int | None, tuple[int, ...]]]:
    """(least, most, ppns): rank counts that the rules treat alike, and the ppn of the shapes that have as many."""
    bounds = {rule.max_ranks for rule in rule_set.rules if rule.max_ranks is not None}
    if all(rule.max_ppn is None for rule in rule_set.rules):
        low = 1
        for high in (*sorted(bounds), None):
            yield low, high, (1,)
            low = (high or 0) + 1
        return
    counts = {nodes * ppn for nodes, ppn in shapes}
    edges = sorted(bounds | counts | {count - 1 for count in counts if count > 1})
    low = 1
    for high in (*edges, None):
        inside = [count for count in counts if low <= count and (high is None or count <= high)]
        yield low, high, tuple(sorted({p for n, p in shapes if n * p in inside})) if len(inside) == 1 else ()
        low = (high or 0) + 1


def _steps(rule_set: RuleSet, ranks: int, ppns: tuple[int, ...]) -> list[tuple[int | None, Choice]]:
    """The choices by size at ``ranks``: what all of ``ppns`` say."""
    bounds: list[int | None] = [None]
    if rule_set.basis is not SizeBasis.NONE:
        bounds = [*sorted({rule.max_size for rule in rule_set.rules if rule.max_size is not None}), None]
    steps: list[tuple[int | None, Choice]] = []
    for bound in bounds:
        found = {_at(rule_set, ppn, ranks, bound) for ppn in ppns}
        choice = found.pop() if len(found) == 1 else DEFAULT
        if steps and steps[-1][1] == choice:
            steps.pop()
        steps.append((bound, choice))
    return steps


def _at(rule_set: RuleSet, ppn: int, ranks: int, size: int | None) -> Choice:
    """The choice at the upper end of a range of sizes; None is beyond every bound."""
    for rule in rule_set.rules:
        if rule.matches(ppn, ranks, size if size is not None else 0) and (size is not None or rule.max_size is None):
            return rule.choice
    raise AssertionError("unreachable: a rule set is total")


def _cut(
    steps: list[tuple[int | None, Choice]], low: int, high: int | None, fits: Callable[[Choice, int], bool]
) -> Iterator[tuple[int | None, list[tuple[int | None, Choice]]]]:
    """``steps`` for the ranks from ``low`` to ``high``: once for two ranks, where some choice needs just two."""
    kept = [(bound, choice if fits(choice, max(low, 3)) else DEFAULT) for bound, choice in steps]
    pair = [(bound, choice if fits(choice, 2) else DEFAULT) for bound, choice in steps]
    if kept != pair and low <= 2 and (high is None or high >= 2):
        yield 2, _joined(pair)
        if high == 2:
            return
    yield high, _joined(kept)


def _joined(steps: list[tuple[int | None, Choice]]) -> list[tuple[int | None, Choice]]:
    """Neighbours that say the same become one, with the later bound."""
    joined: list[tuple[int | None, Choice]] = []
    for step in steps:
        if joined and joined[-1][1] == step[1]:
            joined.pop()
        joined.append(step)
    return joined


def start_at_one(rule_set: RuleSet) -> RuleSet:
    """``rule_set`` with the default at size 0.

    Where a library computes the size of a call in place from arguments that do not matter there, it mostly finds 0:
    such calls keep what they have.
    """
    if rule_set.basis is SizeBasis.NONE:
        return rule_set
    rules: list[Rule] = []
    previous: tuple[int | None, int | None] | None = None
    for rule in rule_set.rules:
        block = (rule.max_ppn, rule.max_ranks)
        first = block != previous
        previous = block
        if first and rule.choice != DEFAULT:
            rules.append(Rule(*block, 0, DEFAULT))
            if rule.max_size == 0:
                continue
        rules.append(rule)
    return RuleSet(rule_set.collective, rule_set.basis, tuple(rules))
