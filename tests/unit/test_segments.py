"""Decision tables: their laws, few wide segments of them, and a campaign laid over what a directory holds."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.decision_table import DecisionTable
from colltune.core.inner_calls import InnerCall
from colltune.core.rules import Region, Rule, RuleSet, Span, Steps
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Space
from colltune.distill.decide import ClaimCosts, Decided, decide
from colltune.distill.few_rules import with_few_rules
from colltune.distill.minimal_rules import distill_proven
from colltune.distill.overlay import Overlay
from colltune.distill.segments import Segments
from colltune.search.campaign import MeasuredModel

RING, TREE = Choice("ring"), Choice("tree")
SIZES = (8, 16, 32, 64, 128)


def at(size: int, nodes: int = 4) -> Scenario:
    return Scenario("bcast", nodes, 1, size)


def segments(
    worth: Mapping[Scenario, Mapping[Choice, float]], price: float, luck: Mapping[tuple[int, int], float] | None = None
) -> dict[Scenario, Choice]:
    """What is decided by ``worth``; a choice that is missing is not to be made."""
    choices = (RING, TREE)
    rows = np.array([[some.get(choice, math.nan) for choice in choices] for some in worth.values()])
    return Segments(tuple(worth), choices, rows, dict.fromkeys(SIZES, price), luck or {}).decide()


def worth_of(path: Sequence[Choice], gains: Sequence[dict[Choice, float]], price: float, luck: float) -> float:
    """A choice in place of another has to make up for twice the luck of one in place of the default."""
    begun = [before for one, before in zip(path, (DEFAULT, *path), strict=False) if one not in (DEFAULT, before)]
    costs = sum(price + (0.5 * luck if before == DEFAULT else luck) for before in begun)
    return sum(gain.get(one, 0.0) for one, gain in zip(path, gains, strict=True)) - costs


@given(
    st.lists(st.tuples(*[st.floats(-1.0, 1.0)] * 2), min_size=5, max_size=5), st.floats(0.0, 1.0), st.floats(0.0, 1.0)
)
def test_over_the_sizes_no_other_choices_are_worth_more(
    drawn: list[tuple[float, float]], price: float, luck: float
) -> None:
    gains = [dict(zip((RING, TREE), one, strict=True)) for one in drawn]
    worth = dict(zip(map(at, SIZES), gains, strict=True))
    found = segments(worth, price, {(4, 1): luck})
    best = max(worth_of(path, gains, price, luck) for path in product((DEFAULT, RING, TREE), repeat=5))
    assert worth_of([found[at(size)] for size in SIZES], gains, price, luck) == pytest.approx(best)


def test_shapes_join_unless_what_each_has_of_its_own_pays_for_another_claim() -> None:
    gains = {2: {RING: 0.3, TREE: 0.2}, 4: {RING: 0.2, TREE: 0.3}}
    worth = {at(size, nodes): some for nodes, some in gains.items() for size in SIZES}

    def choices(price: float) -> list[set[Choice]]:
        found = segments(worth, price)
        return [{found[at(size, nodes)] for size in SIZES} for nodes in (2, 4)]

    assert choices(0.1) == [{RING}, {TREE}]
    assert choices(0.6) in ([{RING}, {RING}], [{TREE}, {TREE}])
    assert choices(9.9) == [{DEFAULT}, {DEFAULT}]


def test_what_is_excluded_keeps_the_default_and_breaks_no_wide_segment() -> None:
    found = segments({at(size): {RING: 0.3 if size != 32 else -math.inf} for size in SIZES}, 0.2)
    assert [found[at(size)] for size in SIZES] == [RING, RING, DEFAULT, RING, RING]


@pytest.mark.parametrize(("claim_s", "expected"), [(0.0, {RING, TREE}), (2.0, {RING, TREE}), (4.0, {RING})])
def test_a_claim_costs_nothing_while_there_is_time_for_all_and_then_what_another_gains_in_it(
    claim_s: float, expected: set[Choice]
) -> None:
    """The tree gains a third more at the last two sizes only; the proof has 10 s for five sizes."""
    choices = (DEFAULT, RING, TREE)
    times = {at(size): dict(zip(choices, (8.0, 5.0, 4.0 if size > 32 else 7.0), strict=True)) for size in SIZES}
    medians = {(scenario, choice): time_s for scenario, some in times.items() for choice, time_s in some.items()}
    samples = [Sample(*pair, Status.OK, (time_s,)) for pair, time_s in medians.items()]
    spaces, models = {"bcast": Space("bcast", tuple(times), lambda _one: choices)}, {"bcast": MeasuredModel(medians)}
    costs = ClaimCosts(10.0, lambda _default_s, _gain: claim_s)
    found = decide(models, spaces, samples, lambda _one: DEFAULT, 1.03, costs=costs)["bcast"]
    assert set(found.choices.values()) == expected
    assert found.gains[at(8)] == pytest.approx(math.log(8.0 / 5.0))


def test_what_scenarios_share_is_agreed_on_in_few_looks_whatever_disagrees() -> None:
    """Each shape has another best choice, and all shapes of a size share what runs below theirs."""
    choices = tuple(Choice("composed", (("below", number),)) for number in range(6))
    shapes = tuple(2**power for power in range(1, 7))
    scenarios = [Scenario("bcast", nodes, 2, size) for nodes in shapes for size in SIZES]

    def time_s(scenario: Scenario, choice: Choice) -> float:
        if choice == DEFAULT:
            return 1.0
        # The more nodes, the more is gained, so that the largest shape prevails.
        place, number = shapes.index(scenario.nodes), int(dict(choice.parameters)["below"])
        return 0.8 - 0.05 * place if number == place else 0.9

    medians = {(s, c): time_s(s, c) for s in scenarios for c in (DEFAULT, *choices)}
    looks = []

    def inner(collective: str, choice: Choice) -> list[InnerCall]:
        looks.append(choice)
        return [InnerCall("below", collective, across=False, choice=choice)]

    space = Space("bcast", tuple(scenarios), lambda _scenario: (DEFAULT, *choices))
    found = decide({"bcast": MeasuredModel(medians)}, {"bcast": space}, [], lambda _one: DEFAULT, 1.03, inner)["bcast"]
    assert {c for c in found.choices.values() if c != DEFAULT} == {choices[-1]}
    assert all(found.choices[Scenario("bcast", shapes[-1], 2, size)] == choices[-1] for size in SIZES)
    assert len(looks) <= 3 * len(medians)


@pytest.mark.parametrize("most", [1, 30, 60, 1000])
def test_rules_are_few_and_say_what_gains_most(most: int) -> None:
    """Every shape decides otherwise than its neighbours, so that each has a list of sizes of its own."""
    shapes = [(nodes, ppn) for nodes in (2, 4, 8, 16) for ppn in (1, 2, 3)]
    scenarios = [Scenario("bcast", nodes, ppn, size) for nodes, ppn in shapes for size in SIZES]
    names = [Choice(name) for name in ("ring", "tree", "chain")]
    choices = {s: names[(place + s.nodes) % 3] for place, s in enumerate(scenarios)}
    gains = {s: float(s.nodes) for s in scenarios}
    whole = Decided(choices, gains, dict.fromkeys(scenarios, 1.0))
    space = Space("bcast", tuple(scenarios), lambda _s: (DEFAULT, *names), lambda s: 100.0 if s.ppn == 2 else 1.0)
    fewer = with_few_rules(whole, space, SizeBasis.MESSAGE, most)
    rules = distill_proven(fewer.choices, space, SizeBasis.MESSAGE).rules
    assert len(rules) <= most
    assert all(choice in (DEFAULT, choices[s]) for s, choice in fewer.choices.items())
    assert all(fewer.gains[s] == (0.0 if choice == DEFAULT else gains[s]) for s, choice in fewer.choices.items())
    left_out = {(s.ppn == 2, s.nodes) for s, choice in fewer.choices.items() if choice == DEFAULT}
    kept = {(s.ppn == 2, s.nodes) for s, choice in fewer.choices.items() if choice != DEFAULT}
    assert (fewer == whole) == (most == 1000)
    assert not kept or not left_out or max(left_out) <= min(kept), "something that gains less has a rule"
    assert bool(kept) == (most > 1)


BINOMIAL = Choice("binomial")
OVERLAID = tuple(1 << power for power in range(3, 13))


def proven(choices: dict[Scenario, Choice], basis: SizeBasis = SizeBasis.MESSAGE) -> RuleSet:
    name = next(iter(choices)).collective
    return distill_proven(choices, Space(name, tuple(choices), lambda _s: (DEFAULT, RING, BINOMIAL)), basis)


def over(
    older: dict[Scenario, Choice],
    newer: dict[Scenario, Choice],
    opened: Sequence[Scenario] = (),
    basis: SizeBasis = SizeBasis.MESSAGE,
) -> RuleSet:
    overlay = Overlay(newer.keys(), newer.keys() - set(opened))
    (merged,) = overlay.rule_sets(
        {s.collective: proven(older, basis) for s in older}, {s.collective: proven(newer, basis) for s in newer}
    ).values()
    return merged


def of_ppn(ppn: int, size: int, nodes: int = 1) -> Scenario:
    return Scenario("bcast", nodes, ppn, size)


def test_sizes_that_were_not_looked_at_stay_and_between_them_both_must_agree() -> None:
    older = {of_ppn(2, size): RING for size in OVERLAID}
    merged = over(older, {of_ppn(2, 64): DEFAULT, of_ppn(2, 128): BINOMIAL})
    assert merged.evaluate(of_ppn(2, 32)) == RING
    assert merged.evaluate(of_ppn(2, 48)) == DEFAULT
    assert [merged.evaluate(of_ppn(2, size)) for size in (64, 128)] == [DEFAULT, BINOMIAL]
    assert merged.evaluate(of_ppn(2, 200)) == DEFAULT
    assert merged.evaluate(of_ppn(2, 256)) == RING
    agreed = over(older, {of_ppn(2, 64): RING, of_ppn(2, 128): RING})
    assert {agreed.evaluate(of_ppn(2, size)) for size in range(8, 4097)} == {RING}


def test_what_was_not_tried_stays_proven_as_before() -> None:
    older = {of_ppn(2, size): RING for size in OVERLAID}
    merged = over(older, dict.fromkeys((of_ppn(2, size) for size in OVERLAID), DEFAULT), opened=[of_ppn(2, 512)])
    assert [size for size in OVERLAID if merged.evaluate(of_ppn(2, size)) == RING] == [512]


def test_a_collective_whose_bits_are_fixed_is_replaced_whole_and_another_stays_as_it_was() -> None:
    older, newer = proven({of_ppn(2, 64): RING}), proven({of_ppn(4, 64): BINOMIAL})
    overlay = Overlay([of_ppn(4, 64)], [of_ppn(4, 64)], whole={"bcast"})
    other = {"allreduce": RuleSet.always("allreduce", SizeBasis.MESSAGE, RING)}
    assert overlay.rule_sets({"bcast": older, **other}, {"bcast": newer}) == {"bcast": newer, **other}


_CHOICES = st.sampled_from((DEFAULT, RING, BINOMIAL))
_SCENARIOS = st.builds(
    Scenario, st.just("allgather"), st.sampled_from((1, 2)), st.sampled_from((2, 3, 4)), st.sampled_from(OVERLAID)
)
_DECIDED = st.dictionaries(_SCENARIOS, _CHOICES, min_size=1, max_size=20)


@given(older=_DECIDED, newer=_DECIDED, basis=st.sampled_from((SizeBasis.MESSAGE, SizeBasis.TOTAL)), data=st.data())
def test_every_scenario_that_was_looked_at_is_as_it_was_found_last(
    older: dict[Scenario, Choice], newer: dict[Scenario, Choice], basis: SizeBasis, data: st.DataObject
) -> None:
    opened = data.draw(st.sets(st.sampled_from(sorted(newer)), max_size=3))
    newer = {s: DEFAULT if s in opened else c for s, c in newer.items()}
    merged, before = over(older, newer, sorted(opened), basis), proven(older, basis)
    for scenario, choice in newer.items():
        if scenario not in opened:
            assert merged.evaluate(scenario) == choice
    for scenario, choice in older.items():
        same_shape = [s for s in newer if (s.nodes, s.ppn) == (scenario.nodes, scenario.ppn)]
        if not same_shape or (scenario in opened and scenario in newer):
            assert merged.evaluate(scenario) in (choice, before.evaluate(scenario))
    # Nothing is made up: each choice of the union was made there by one of the two.
    alone = proven(newer, basis)
    for nodes in (1, 2):
        for ppn in (1, 2, 3, 4):
            for size in range(1, 5000, 37):
                call = Scenario("allgather", nodes, ppn, size)
                assert merged.evaluate(call) in (DEFAULT, before.evaluate(call), alone.evaluate(call))


CALLS = [(ppn, ranks, size) for ppn in range(1, 5) for ranks in range(1, 7) for size in range(8)]
MADE = {(ppn, ranks, size) for ppn, ranks, size in CALLS if ranks >= max(2, ppn)}  # by some job
CHOICES = (DEFAULT, RING, Choice("recexch", (("k", 4),)))


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    """Small ones, drawn at random."""

    def bounds(most: int) -> list[int | None]:
        return [*sorted(draw(st.sets(st.integers(1, most), max_size=2))), None]

    rules = []
    for ppn in bounds(3):
        for ranks in bounds(5):
            rules += [Rule(ppn, ranks, size, draw(st.sampled_from(CHOICES))) for size in bounds(6)]
    return RuleSet("bcast", SizeBasis.MESSAGE, tuple(rules))


tables = rule_sets().map(DecisionTable.of)
spans = st.tuples(st.integers(0, 5), st.none() | st.integers(0, 6)).map(lambda ends: Span(*ends))
regions = st.tuples(spans, spans, spans).map(lambda three: Region(*three))


def holds(region: Region, ppn: int, ranks: int, size: int) -> bool:
    return region.ppn.holds(ppn) and region.ranks.holds(ranks) and region.size.holds(size)


@given(rule_sets())
def test_a_table_decides_as_its_rules_and_the_regions_of_both_hold_each_call_once(rule_set: RuleSet) -> None:
    table = DecisionTable.of(rule_set)
    walked, regions = list(table.walk()), {rule: rule_set.region_of(rule) for rule in rule_set.rules}
    assert DecisionTable.of(table.rule_set()) == table
    for call in CALLS:
        deciding = next(rule for rule in rule_set.rules if rule.matches(*call))
        assert table.at(*call) == deciding.choice
        assert [choice for region, choice in walked if holds(region, *call)] == [deciding.choice]
        if call in MADE:
            assert [rule for rule, region in regions.items() if holds(region, *call)] == [deciding]


@given(tables, tables)
def test_operations_of_two_tables_act_call_by_call(one: DecisionTable, other: DecisionTable) -> None:
    differences = one.differences(other)
    assert one.differences(one) == []
    for call in CALLS:
        a, b = one.at(*call), other.at(*call)
        assert one.merge(other).at(*call) == (b if a == DEFAULT else a)
        if call in MADE:
            differing = [(found.one, found.other) for found in differences if holds(found.region, *call)]
            assert differing == ([(a, b)] if a != b else [])


def test_neighbouring_differences_are_one() -> None:
    rules = tuple(Rule(ppn, ranks, size, RING) for ppn in (2, None) for ranks in (4, None) for size in (8, None))
    one, other = DecisionTable.always("bcast", SizeBasis.MESSAGE), RuleSet("bcast", SizeBasis.MESSAGE, rules)
    (found,) = one.differences(DecisionTable.of(other))
    assert found.region == Region(Span(1, None), Span(2, None), Span(0, None))


@given(tables, tables, tables)
def test_merging_does_not_depend_on_the_grouping(one: DecisionTable, two: DecisionTable, three: DecisionTable) -> None:
    assert one.merge(one) == one
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


@given(tables, regions)
def test_a_restricted_table_is_the_default_outside(table: DecisionTable, region: Region) -> None:
    restricted = table.restrict(region)
    for call in CALLS:
        assert restricted.at(*call) == (table.at(*call) if holds(region, *call) else DEFAULT)


@given(tables, st.sampled_from(CHOICES))
def test_mapping_replaces_choices_and_nothing_else(table: DecisionTable, new: Choice) -> None:
    mapped = table.map(lambda choice: DEFAULT if choice == new else choice)
    replaced = table.replaced(lambda _region, choice: DEFAULT if choice == new else choice)
    assert mapped == replaced
    for call in CALLS:
        assert mapped.at(*call) == (DEFAULT if table.at(*call) == new else table.at(*call))


@given(rule_sets())
def test_a_shape_has_its_own_decisions_and_all_others_the_rest(rule_set: RuleSet) -> None:
    shapes = {(2, 2): Steps.of([(8, RING), (None, DEFAULT)]), (4, 2): Steps.always(TREE), (3, 1): Steps.always(RING)}
    table = DecisionTable.of_shapes("bcast", rule_set.basis, shapes)
    for ppn, ranks, size in CALLS:
        decided = {(p, n * p): some for (n, p), some in shapes.items()}
        expected = decided[ppn, ranks].at(size) if (ppn, ranks) in decided else DEFAULT
        assert table.at(ppn, ranks, size) == expected


def test_between_two_shapes_of_one_ppn_decides_who_is_asked() -> None:
    asked: list[tuple[int, Span]] = []

    def between(ppn: int, counts: Span, one: Steps[Choice], _other: Steps[Choice]) -> Steps[Choice]:
        asked.append((ppn, counts))
        return one

    shapes = {(2, 2): Steps.always(RING), (4, 2): Steps.always(TREE)}
    table = DecisionTable.of_shapes("bcast", SizeBasis.MESSAGE, shapes, between=between)
    assert asked == [(2, Span(5, 7))]
    assert [table.at(2, ranks, 1) for ranks in (3, 4, 7, 8, 9)] == [DEFAULT, RING, RING, TREE, DEFAULT]


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
