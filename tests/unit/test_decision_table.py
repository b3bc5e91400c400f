"""The laws of decision tables: what they say is what the rules say, and operations act call by call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_sets import CHOICES, rule_sets

from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import DecisionTable
from colltune.core.rules import Region, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.steps import Span, Steps

CALLS = [(ppn, ranks, size) for ppn in range(1, 5) for ranks in range(1, 7) for size in range(8)]


tables = rule_sets().map(DecisionTable.of)
spans = st.tuples(st.integers(0, 5), st.none() | st.integers(0, 6)).map(lambda ends: Span(*ends))
regions = st.tuples(spans, spans, spans).map(lambda three: Region(*three))
steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2))).map(
    lambda pairs: Steps.of([*sorted(pairs, key=lambda pair: pair[0]), (None, 0)])
)


@given(rule_sets())
def test_a_table_decides_as_its_rules(rule_set: RuleSet) -> None:
    table = DecisionTable.of(rule_set)
    for call in CALLS:
        assert table.at(*call) == next(rule.choice for rule in rule_set.rules if rule.matches(*call))


@given(tables)
def test_from_a_table_to_rules_and_back(table: DecisionTable) -> None:
    assert DecisionTable.of(table.rule_set()) == table


@given(tables)
def test_the_regions_of_a_walk_hold_each_call_once(table: DecisionTable) -> None:
    walked = list(table.walk())
    for ppn, ranks, size in CALLS:
        hits = [c for r, c in walked if r.ppn.holds(ppn) and r.ranks.holds(ranks) and r.size.holds(size)]
        assert hits == [table.at(ppn, ranks, size)]


@given(tables, tables)
def test_operations_of_two_tables_act_call_by_call(one: DecisionTable, other: DecisionTable) -> None:
    for call in CALLS:
        a, b = one.at(*call), other.at(*call)
        assert one.merge(other).at(*call) == (b if a == DEFAULT else a)


@given(tables)
def test_what_is_merged_with_itself_stays(one: DecisionTable) -> None:
    assert one.merge(one) == one


@given(tables, tables, tables)
def test_merging_does_not_depend_on_the_grouping(one: DecisionTable, two: DecisionTable, three: DecisionTable) -> None:
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


@given(tables, regions)
def test_a_restricted_table_is_the_default_outside(table: DecisionTable, region: Region) -> None:
    restricted = table.restrict(region)
    for ppn, ranks, size in CALLS:
        inside = region.ppn.holds(ppn) and region.ranks.holds(ranks) and region.size.holds(size)
        assert restricted.at(ppn, ranks, size) == (table.at(ppn, ranks, size) if inside else DEFAULT)


@given(tables, st.sampled_from(CHOICES))
def test_mapping_replaces_choices_and_nothing_else(table: DecisionTable, new: Choice) -> None:
    mapped = table.map(lambda choice: DEFAULT if choice == new else choice)
    replaced = table.replaced(lambda _region, choice: DEFAULT if choice == new else choice)
    assert mapped == replaced
    for call in CALLS:
        assert mapped.at(*call) == (DEFAULT if table.at(*call) == new else table.at(*call))


@given(steps, steps)
def test_steps_combine_number_by_number(one: Steps[int], other: Steps[int]) -> None:
    combined = one.combine(other, lambda a, b: (a, b))
    for number in range(12):
        assert combined.at(number) == (one.at(number), other.at(number))


@given(steps, st.integers(0, 9))
def test_the_spans_of_steps_follow_one_another(some: Steps[int], least: int) -> None:
    following = least
    for span, value in some.spans(least):
        assert span.low == following
        assert value == some.at(span.low) == (some.last if span.high is None else some.at(span.high))
        following = span.low if span.high is None else span.high + 1
    assert span.high is None


@given(rule_sets())
def test_a_shape_has_its_own_decisions_and_all_others_the_rest(rule_set: RuleSet) -> None:
    ring, tree = Choice("ring"), Choice("tree")
    shapes = {(2, 2): Steps.of([(8, ring), (None, DEFAULT)]), (4, 2): Steps.always(tree), (3, 1): Steps.always(ring)}
    table = DecisionTable.of_shapes("bcast", rule_set.basis, shapes)
    for ppn, ranks, size in CALLS:
        decided = {(p, n * p): some for (n, p), some in shapes.items()}
        expected = decided[ppn, ranks].at(size) if (ppn, ranks) in decided else DEFAULT
        assert table.at(ppn, ranks, size) == expected


def test_between_two_shapes_of_one_ppn_decides_who_is_asked() -> None:
    ring = Choice("ring")
    asked: list[tuple[int, Span]] = []

    def between(ppn: int, counts: Span, one: Steps[Choice], _other: Steps[Choice]) -> Steps[Choice]:
        asked.append((ppn, counts))
        return one

    shapes = {(2, 2): Steps.always(ring), (4, 2): Steps.always(Choice("tree"))}
    table = DecisionTable.of_shapes("bcast", SizeBasis.MESSAGE, shapes, between=between)
    assert asked == [(2, Span(5, 7))]
    assert [table.at(2, ranks, 1) for ranks in (3, 4, 7, 8, 9)] == [DEFAULT, ring, ring, Choice("tree"), DEFAULT]


@pytest.mark.parametrize(
    "pairs", [(), ((3, 1),), ((5, 1), (3, 2), (None, 1)), ((3, 1), (None, 1)), ((None, 1), (None, 2))]
)
def test_steps_that_are_none_are_refused(pairs: tuple[tuple[int | None, int], ...]) -> None:
    with pytest.raises(ValueError, match=r"step|bounds"):
        Steps(pairs)


def test_tables_of_two_collectives_are_not_compared() -> None:
    one = DecisionTable.always("bcast", SizeBasis.MESSAGE)
    with pytest.raises(ValueError, match="bcast and reduce"):
        one.differences(DecisionTable.always("reduce", SizeBasis.MESSAGE))
