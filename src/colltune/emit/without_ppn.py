"""Rules for files that know ranks and sizes, but not how the ranks lie on the nodes."""

from collections.abc import Callable, Sequence
from functools import reduce

from colltune.core.decision_table import LEAST_RANKS, ByRanks, BySize, DecisionTable, agreed
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Span, Steps
from colltune.core.sample import DEFAULT, Choice, SizeBasis, grouped

_DEFAULT: BySize = Steps.always(DEFAULT)


def merge_ppn(
    rule_set: RuleSet, shapes: Sequence[tuple[int, int]], fits: Callable[[Choice, int], bool] = lambda _c, _n: True
) -> RuleSet:
    """``rule_set`` without its ppn: a choice stays where all of ``shapes`` with as many ranks make it.

    ``shapes``: the tuned (nodes, ppn). The default is used where two of them disagree, because the file decides for
    both alike and one would be unproven, and for rank counts that none of them has. A set without any bound on ppn
    keeps its rank counts. ``fits`` tells whether a choice can run on a number of ranks at all; a rule for several
    counts is cut to those.
    """
    table = DecisionTable.of(rule_set)
    by_ranks = table.by_ppn.last
    if table.by_ppn.bounds:
        alike = grouped(shapes, lambda shape: shape[0] * shape[1])
        by_count = {
            ranks: reduce(agreed, (table.by_ppn.at(ppn).at(ranks) for _, ppn in some)) for ranks, some in alike.items()
        }
        bounds = [bound for ranks in by_count for bound in (ranks - 1, ranks)]
        by_ranks = Steps.cut(bounds, lambda span: by_count.get(span.low, _DEFAULT), least=1)

    def fitting(span: Span) -> BySize:
        # A choice that needs exactly two ranks runs on no greater number, so three ranks represent all of these.
        ranks = span.low if span.low <= LEAST_RANKS else max(span.low, LEAST_RANKS + 1)
        return by_ranks.at(span.low).map(lambda choice: choice if fits(choice, ranks) else DEFAULT)

    cut = Steps.cut((LEAST_RANKS, *by_ranks.bounds), fitting, least=LEAST_RANKS)
    return DecisionTable(rule_set.collective, rule_set.basis, Steps.always(cut)).rule_set()


def by_ranks_of(rule_set: RuleSet, reader: str) -> ByRanks:
    """The decisions of rules without ppn. Raises InputError for others, which ``reader`` cannot take."""
    table = DecisionTable.of(rule_set)
    if table.by_ppn.bounds:
        raise InputError(
            f"the rules of {rule_set.collective} ask for ranks per node, which {reader} cannot",
            "Reduce them by `expressible` first, or use the live selector",
        )
    return table.by_ppn.last


def start_at_one(rule_set: RuleSet) -> RuleSet:
    """``rule_set`` with the default at size 0.

    A library computes the size of a call in place from arguments that do not matter there, and mostly gets 0: such
    calls keep the default.
    """
    if rule_set.basis is SizeBasis.NONE:
        return rule_set
    return DecisionTable.of(rule_set).by_size(lambda steps: steps.restrict(Span(1, None), DEFAULT)).rule_set()
