"""What runs below MPICH's compositions: rules for the communicators that MPICH makes inside a communicator.

A composition calls the same collective again: between the nodes on one rank of each (the leaders), inside each node on
all of its ranks. What runs there is decided by rules for these inner communicators, which know their ranks and the
size, but not which composition calls them, nor from a job of which shape. So all rules that meet in one inner call have
to agree on it (docs/design/selection-files.md). Since 5.0 the two kinds of inner communicator are not told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from colltune.catalog import Catalogue, Kind
from colltune.core.choice import DEFAULT, Choice
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import Scenario

_T = TypeVar("_T")
# In place of an algorithm of shared memory: the general one, whichever that is.
GENERAL = Choice("mpir")


class Where(StrEnum):
    """Which inner calls a rule is for."""

    LEADERS = "leaders"
    NODE = "node"
    INSIDE = "inside"  # either of them, where the library does not tell them apart
    SHARED_MEMORY = "shared memory"  # before the general algorithm: whether shared memory takes the call in the node


@dataclass(frozen=True, slots=True)
class Span:
    """From ``least`` to ``most``, both included; None is no bound."""

    least: int
    most: int | None

    def meets(self, other: Span) -> bool:
        return (other.most is None or self.least <= other.most) and (self.most is None or other.least <= self.most)

    def holds(self, value: int) -> bool:
        return self.least <= value and (self.most is None or value <= self.most)

    @property
    def is_empty(self) -> bool:
        return self.most is not None and self.most < self.least


@dataclass(frozen=True, slots=True)
class Demand:
    """That inner calls on ``ranks`` ranks, of ``sizes`` bytes, make ``choice``; the default is the library's own."""

    where: Where
    ranks: Span
    sizes: Span
    choice: Choice

    def contradicts(self, other: Demand) -> bool:
        return (
            self.where is other.where
            and self.choice != other.choice
            and self.ranks.meets(other.ranks)
            and self.sizes.meets(other.sizes)
        )


def split(catalogue: Catalogue, collective: str, choice: Choice) -> tuple[Choice, Choice, bool] | None:
    """A composition by itself, what its leaders run, and whether the node does so too; None for a flat choice."""
    if choice == DEFAULT:
        return None
    algorithm = catalogue.algorithm(collective, choice)
    if algorithm.kind is not Kind.COMPOSITION:
        return None
    plain = Choice(algorithm.key.partition("+")[0].removesuffix(".mpir"))
    leaders = DEFAULT if algorithm.leaders is None else Choice(algorithm.leaders.key, choice.parameters)
    return plain, leaders, algorithm.general_on_node


def join(plain: Choice, leaders: Choice, *, general_on_node: bool) -> Choice:
    """The inverse of ``split``."""
    key = f"{plain.algorithm}.mpir" if general_on_node else plain.algorithm
    return Choice(key) if leaders == DEFAULT else Choice(f"{key}+{leaders.algorithm}", leaders.parameters)


def demands_of(catalogue: Catalogue, rule: Rule, before: Region, collective: str) -> list[Demand] | None:
    """What the choice of ``rule`` asks of inner calls; None where it asks in vain, for want of ranks or nodes."""
    parts = split(catalogue, collective, rule.choice)
    if parts is None:
        return []
    plain, leaders, general = parts
    nodes, node_ranks, sizes = before.spans(rule)
    if (nodes.is_empty or node_ranks.is_empty) and rule.choice != plain:
        return None
    apart = catalogue.version < "5.0"
    found = []
    if catalogue.algorithm(collective, plain).leads and not nodes.is_empty:
        found.append(Demand(Where.LEADERS if apart else Where.INSIDE, nodes, sizes, leaders))
    if catalogue.algorithm(collective, plain).shares_nodes and not node_ranks.is_empty:
        found.append(Demand(Where.SHARED_MEMORY, node_ranks, sizes, GENERAL if general else DEFAULT))
    if general:
        found.append(Demand(Where.NODE if apart else Where.INSIDE, node_ranks, sizes, leaders))
    return found


def shared_by(catalogue: Catalogue, scenario: Scenario, choice: Choice) -> dict[tuple[Where, str, int, int], Choice]:
    """The inner calls that ``choice`` makes in ``scenario`` and others may make too, and what it asks of them."""
    name, nodes, ppn, size = scenario.collective, scenario.nodes, scenario.ppn, scenario.size_bytes
    parts = split(catalogue, name, choice)
    if parts is None or ppn < 2:
        return {}
    plain, leaders, general = parts
    apart = catalogue.version < "5.0"
    found = {}
    if catalogue.algorithm(name, plain).leads and nodes > 1:
        found[Where.LEADERS if apart else Where.INSIDE, name, nodes, size] = leaders
    on_node = [name] if catalogue.algorithm(name, plain).shares_nodes else _ON_NODE.get((name, plain.algorithm), [])
    for other in on_node:
        found[Where.SHARED_MEMORY, other, ppn, size] = GENERAL if general else DEFAULT
    if general:
        found[Where.NODE if apart else Where.INSIDE, name, ppn, size] = leaders
    return found


# Compositions that run other collectives inside the nodes than themselves.
_ON_NODE = {("allreduce", "alpha"): ["reduce", "bcast"]}


@dataclass(frozen=True, slots=True)
class Region:
    """The bounds that the rules before one have: it holds above them."""

    ppn: int
    ranks: int
    size: int

    def spans(self, rule: Rule) -> tuple[Span, Span, Span]:
        """Nodes, ranks per node and sizes of the calls that ``rule`` decides; of these two at least of a kind."""
        least_ppn = max(2, self.ppn + 1)
        least_nodes = 2 if rule.max_ppn is None else max(2, -(-(self.ranks + 1) // rule.max_ppn))
        nodes = Span(least_nodes, None if rule.max_ranks is None else rule.max_ranks // least_ppn)
        limits = [limit for limit in (rule.max_ppn, rule.max_ranks) if limit is not None]
        return nodes, Span(least_ppn, min(limits, default=None)), Span(self.size, rule.max_size)


def regions(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Region]]:
    """Each rule with what stands before it."""
    ppn, ranks, size = 0, 0, 0
    for rule, after in zip(rules, (*rules[1:], None), strict=True):
        yield rule, Region(ppn, ranks, size)
        if after is None:
            return
        if after.max_ppn != rule.max_ppn:
            ppn, ranks, size = rule.max_ppn or 0, 0, 0
        elif after.max_ranks != rule.max_ranks:
            ranks, size = rule.max_ranks or 0, 0
        else:
            size = (rule.max_size or 0) + 1


def agreeing(catalogue: Catalogue, rule_set: RuleSet) -> RuleSet:
    """``rule_set`` with the default where rules for fewer ranks ask for other inner calls than those for more."""
    pairs = list(regions(rule_set.rules))
    unbounded = float("inf")
    order = sorted(range(len(pairs)), key=lambda i: -(pairs[i][0].max_ranks or unbounded))
    kept: list[Demand] = []
    choices = [rule.choice for rule in rule_set.rules]
    for index in order:
        rule, before = pairs[index]
        wanted = demands_of(catalogue, rule, before, rule_set.collective)
        if wanted is None:
            parts = split(catalogue, rule_set.collective, rule.choice)
            choices[index] = parts[0] if parts is not None else DEFAULT
            plain = replace(rule, choice=choices[index])
            wanted = demands_of(catalogue, plain, before, rule_set.collective) or []
        if any(one.contradicts(other) for one in wanted for other in (*kept, *wanted)):
            choices[index] = DEFAULT
        else:
            kept += wanted
    rules = [replace(rule, choice=choice) for rule, choice in zip(rule_set.rules, choices, strict=True)]
    return replace(rule_set, rules=tuple(rules))


Steps = list[tuple[int | None, Choice]]


def table_of(demands: Sequence[Demand], where: Where) -> list[tuple[int | None, Steps]]:
    """``demands`` as blocks of ascending upper bounds on the ranks, and within each of ascending ones on the size."""
    mine = [demand for demand in demands if demand.where is where and demand.choice != DEFAULT]
    blocks: list[tuple[int | None, Steps]] = []
    for bound in _bounds([demand.ranks for demand in mine]):
        here = [demand for demand in mine if _reaches(demand.ranks, bound)]
        steps: Steps = []
        for size in _bounds([demand.sizes for demand in here]):
            choice = next((demand.choice for demand in here if _reaches(demand.sizes, size)), DEFAULT)
            _append(steps, size, choice)
        _append(blocks, bound, steps)
    return blocks


def _bounds(spans: Sequence[Span]) -> list[int | None]:
    edges = {span.least - 1 for span in spans} | {span.most for span in spans if span.most is not None}
    return [*sorted(edge for edge in edges if edge >= 0), None]


def _reaches(span: Span, bound: int | None) -> bool:
    return span.most is None if bound is None else span.holds(bound)


def _append(blocks: list[tuple[int | None, _T]], bound: int | None, value: _T) -> None:
    """Neighbours that say the same become one."""
    if blocks and blocks[-1][1] == value:
        blocks.pop()
    blocks.append((bound, value))
