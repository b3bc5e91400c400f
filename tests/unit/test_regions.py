"""Decisions as regions: each holds exactly the calls that it should."""

from hypothesis import given
from rule_sets import rule_sets

from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import DecisionTable, Difference
from colltune.core.rules import Region, Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.steps import Span
from colltune.report.regions import format_region

TWO = RuleSet(
    "allreduce",
    SizeBasis.MESSAGE,
    (
        Rule(1, None, None, DEFAULT),
        Rule(2, 4, 64, Choice("ring")),
        Rule(2, 4, None, DEFAULT),
        Rule(2, None, None, DEFAULT),
        Rule(None, None, None, DEFAULT),
    ),
)


def differences(one: RuleSet, other: RuleSet) -> list[Difference]:
    return DecisionTable.of(one).differences(DecisionTable.of(other))


def contains(region: Region, ppn: int, ranks: int, size: int) -> bool:
    return region.ppn.holds(ppn) and region.ranks.holds(ranks) and region.size.holds(size)


def decide(rule_set: RuleSet, ppn: int, ranks: int, size: int) -> Rule:
    return next(rule for rule in rule_set.rules if rule.matches(ppn, ranks, size))


CALLS = [(ppn, ranks, size) for ppn in range(1, 5) for ranks in range(max(2, ppn), 7) for size in range(8)]


@given(rule_sets())
def test_a_region_holds_exactly_the_calls_that_its_rule_decides(rule_set: RuleSet) -> None:
    regions = {rule: rule_set.region_of(rule) for rule in rule_set.rules}
    for call in CALLS:
        deciding = decide(rule_set, *call)
        assert [rule for rule, region in regions.items() if contains(region, *call)] == [deciding]


@given(rule_sets(), rule_sets())
def test_differences_are_the_calls_that_are_decided_differently(one: RuleSet, other: RuleSet) -> None:
    found = differences(one, other)
    for call in CALLS:
        pair = decide(one, *call).choice, decide(other, *call).choice
        hits = [(d.one, d.other) for d in found if contains(d.region, *call)]
        assert hits == ([pair] if pair[0] != pair[1] else [])


def test_a_rule_set_does_not_differ_from_itself() -> None:
    assert differences(TWO, TWO) == []


def test_neighbouring_regions_that_say_the_same_are_one() -> None:
    one = RuleSet.always("bcast", SizeBasis.MESSAGE)
    rules = tuple(
        Rule(ppn, ranks, size, Choice("ring")) for ppn in (2, None) for ranks in (4, None) for size in (8, None)
    )
    found = differences(one, RuleSet("bcast", SizeBasis.MESSAGE, rules))
    assert [d.region for d in found] == [Region(Span(1, None), Span(2, None), Span(0, None))]


def test_regions_in_words() -> None:
    words = [format_region(TWO.region_of(rule), "allreduce", SizeBasis.MESSAGE) for rule in TWO.rules]
    assert words == [
        "1 rank per node, any number of ranks, any size",
        "2 ranks per node, 2 to 4 ranks, up to 64 B",
        "2 ranks per node, 2 to 4 ranks, 65 B or more",
        "2 ranks per node, 5 or more ranks, any size",
        "3 or more ranks per node, any number of ranks, any size",
    ]


def test_from_two_on_is_any_number_of_ranks_but_not_of_ranks_per_node() -> None:
    region = Region(Span(2, None), Span(2, None), Span(0, None))
    words = format_region(region, "bcast", SizeBasis.MESSAGE)
    assert words == "2 or more ranks per node, any number of ranks, any size"


def test_sizes_in_words_say_what_they_count() -> None:
    region = Region(Span(1, None), Span(2, 2), Span(17, 4096))
    assert format_region(region, "allgather", SizeBasis.TOTAL).endswith("17 B to 4 KiB in all blocks together")
    assert format_region(region, "reduce_scatter", SizeBasis.TOTAL).endswith("17 B to 4 KiB")
    assert format_region(region, "barrier", SizeBasis.NONE) == "any number of ranks per node, 2 ranks"
