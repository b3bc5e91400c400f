"""What runs below MPICH's compositions: rules for the communicators that MPICH makes inside a communicator.

A composition calls the same collective again: between the nodes on one rank of each (the leaders), inside each node on
all of its ranks. Rules for these inner communicators decide what runs there. They can compare ranks and size, but not
which composition calls them, nor the shape of the job. So all rules that meet in one inner call must agree
(docs/design/selection-files.md). Since 5.0 MPICH does not distinguish the two kinds of inner communicator.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from colltune.catalog import Catalogue, Kind
from colltune.core.decision_table import ByRanks, BySize, DecisionTable
from colltune.core.inner_calls import InnerCall
from colltune.core.rules import Region, RuleSet, Span, Steps
from colltune.core.sample import DEFAULT, Choice

# In place of an algorithm of shared memory: the general one, whichever that is.
GENERAL = Choice("mpir")


class Where(StrEnum):
    """Which inner calls a rule is for."""

    LEADERS = "leaders"
    NODE = "node"
    INSIDE = "inside"  # either of them, where the library does not tell them apart
    SHARED_MEMORY = "shared memory"  # before the general algorithm: whether shared memory takes the call in the node


@dataclass(frozen=True, slots=True)
class Demand:
    """That inner calls on ``ranks`` ranks, of ``sizes`` bytes, make ``choice``; the default is the library's own."""

    where: str
    ranks: Span
    sizes: Span
    choice: Choice

    def contradicts(self, other: "Demand") -> bool:
        return (
            self.where == other.where
            and self.choice != other.choice
            and self.ranks.meets(other.ranks)
            and self.sizes.meets(other.sizes)
        )


def alone(catalogue: Catalogue, collective: str, choice: Choice) -> Choice | None:
    """A composition without what is chosen below it; None for any other choice."""
    algorithm = None if choice == DEFAULT else catalogue.algorithm(collective, choice)
    if algorithm is None or algorithm.kind is not Kind.COMPOSITION:
        return None
    return Choice(algorithm.key.partition("+")[0].removesuffix(".mpir"))


def demands_of(catalogue: Catalogue, choice: Choice, region: Region, collective: str) -> list[Demand] | None:
    """What ``choice`` demands of the inner calls of ``region``; None where there are too few ranks or nodes for any."""
    nodes, node_ranks, sizes = inner_spans(region)
    if (nodes.is_empty or node_ranks.is_empty) and alone(catalogue, collective, choice) not in (None, choice):
        return None
    calls = [call for call in inner_calls(catalogue, collective, choice) if call.collective == collective]
    demands = [Demand(call.where, nodes if call.across else node_ranks, sizes, call.choice) for call in calls]
    return [demand for demand in demands if not demand.ranks.is_empty]


@cache
def inner_calls(catalogue: Catalogue, collective: str, choice: Choice) -> tuple[InnerCall, ...]:
    """The inner calls of ``choice``. Kept, for they are asked in every scenario."""
    if (plain := alone(catalogue, collective, choice)) is None:
        return ()
    algorithm, apart = catalogue.algorithm(collective, choice), catalogue.release < (5, 0)
    below = DEFAULT if algorithm.leaders is None else Choice(algorithm.leaders.key, choice.parameters)
    shared = GENERAL if algorithm.general_on_node else DEFAULT
    calls = [InnerCall(Where.LEADERS if apart else Where.INSIDE, collective, True, below)] if algorithm.leads else []
    on_node = (collective,) if algorithm.shares_nodes else _ON_NODE.get((collective, plain.algorithm), ())
    calls += [InnerCall(Where.SHARED_MEMORY, other, False, shared) for other in on_node]
    if algorithm.general_on_node:
        calls.append(InnerCall(Where.NODE if apart else Where.INSIDE, collective, False, below))
    return tuple(calls)


# Compositions that run other collectives inside the nodes than themselves.
_ON_NODE = {("allreduce", "alpha"): ("reduce", "bcast")}


def inner_spans(region: Region) -> tuple[Span, Span, Span]:
    """Nodes, ranks per node and sizes of the calls of ``region`` in which there are two at least of the first two."""
    least_ppn = max(2, region.ppn.low)
    least_nodes = 2 if region.ppn.high is None else max(2, -(-region.ranks.low // region.ppn.high))
    nodes = Span(least_nodes, None if region.ranks.high is None else region.ranks.high // least_ppn)
    limits = [limit for limit in (region.ppn.high, region.ranks.high) if limit is not None]
    return nodes, Span(least_ppn, min(limits, default=None)), region.size


def agreeing(catalogue: Catalogue, rule_set: RuleSet) -> RuleSet:
    """``rule_set`` with the default where regions of fewer ranks contradict those of more about inner calls."""
    # Regions that have the default now become one with their neighbours, and these may contradict others then.
    while (reduced := _reduced(catalogue, rule_set)) != rule_set:
        rule_set = reduced
    return rule_set


def _reduced(catalogue: Catalogue, rule_set: RuleSet) -> RuleSet:
    table = DecisionTable.of(rule_set)
    regions = list(table.walk())
    unbounded = float("inf")
    kept: list[Demand] = []
    chosen: dict[Region, Choice] = {}
    for region, choice in sorted(regions, key=lambda pair: -(pair[0].ranks.high or unbounded)):
        demands = demands_of(catalogue, choice, region, table.collective)
        if demands is None:
            choice = alone(catalogue, table.collective, choice) or DEFAULT
            demands = demands_of(catalogue, choice, region, table.collective) or []
        if any(demand.contradicts(other) for demand in demands for other in (*kept, *demands)):
            choice = DEFAULT
        else:
            kept += demands
        chosen[region] = choice
    return table.replaced(lambda region, _choice: chosen[region]).rule_set()


def written_by_file(catalogue: Catalogue, rule_set: RuleSet) -> RuleSet:
    """``rule_set`` with the default where a choice sets what no file can say."""

    def expressible(_region: Region, choice: Choice) -> Choice:
        whole = choice == DEFAULT or catalogue.algorithm(rule_set.collective, choice).in_file
        return choice if whole else DEFAULT

    return DecisionTable.of(rule_set).replaced(expressible).rule_set()


def table_of(demands: Sequence[Demand], where: Where) -> ByRanks:
    """``demands`` by the ranks of the inner communicator, and within that by the size."""
    mine = [demand for demand in demands if demand.where == where and demand.choice != DEFAULT]

    def sizes(ranks: Span) -> BySize:
        here = [demand for demand in mine if demand.ranks.holds(ranks.low)]

        def choice(size: Span) -> Choice:
            return next((demand.choice for demand in here if demand.sizes.holds(size.low)), DEFAULT)

        return Steps.cut(_bounds(demand.sizes for demand in here), choice)

    return Steps.cut(_bounds(demand.ranks for demand in mine), sizes)


def _bounds(spans: Iterable[Span]) -> list[int | None]:
    return [bound for span in spans for bound in (span.low - 1, span.high)]
