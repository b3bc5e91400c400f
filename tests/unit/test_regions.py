"""Decisions as regions, as people read them, and as claims."""

import math
from collections import Counter
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.interval import Interval
from colltune.core.judged_together import judged_regions
from colltune.core.proven import Decision, Verdict, mean_of_kept
from colltune.core.rules import Region, Rule, RuleSet, Span
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.core.space import neighbours
from colltune.prove.audit.claims import COMPARISONS, Claim, ProofTime, claims_of, cut_in_two, planned_launches
from colltune.report.diff_text import format_region

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


def test_regions_in_words() -> None:
    words = [format_region(TWO.region_of(rule), "allreduce", SizeBasis.MESSAGE) for rule in TWO.rules]
    assert words == [
        "1 rank per node, any number of ranks, any size",
        "2 ranks per node, 2 to 4 ranks, up to 64 B",
        "2 ranks per node, 2 to 4 ranks, 65 B or more",
        "2 ranks per node, 5 or more ranks, any size",
        "3 or more ranks per node, any number of ranks, any size",
    ]
    some, whole = Region(Span(1, None), Span(2, 2), Span(17, 4096)), Region(Span(2, None), Span(2, None), Span(0, None))
    assert [format_region(some, "allgather", SizeBasis.TOTAL), format_region(some, "reduce_scatter", SizeBasis.TOTAL),
            format_region(some, "barrier", SizeBasis.NONE), format_region(whole, "bcast", SizeBasis.MESSAGE)] == [
        "any number of ranks per node, 2 ranks, 17 B to 4 KiB in all blocks together",
        "any number of ranks per node, 2 ranks, 17 B to 4 KiB",
        "any number of ranks per node, 2 ranks",
        "2 or more ranks per node, any number of ranks, any size",
    ]  # fmt: skip


RING, TREE = Choice("ring"), Choice("tree", (("k", 4),))
REGION = Interval(1.5, 1.3, 1.8)


def decision(
    size: int,
    choice: Choice = TREE,
    *ratios: float,
    nodes: int = 2,
    region: Interval | None = REGION,
    verdict: Verdict = Verdict.KEPT,
) -> Decision:
    return Decision(Scenario("bcast", nodes, 2, size), choice, verdict, ratios, "why", region)


def test_what_an_audit_judged_together_is_one_region_with_its_own_interval() -> None:
    found = judged_regions([decision(256, TREE, 1.9, 1.2), decision(8192, nodes=8), decision(512)])
    assert [one.place for one in found] == ["bcast 2 to 8 x 2, 256 B to 8 KiB"]
    region = found[0]
    assert region.speedup == REGION
    assert (len(region.decisions), region.compared, region.comparisons) == (3, 1, 2)
    two = judged_regions([decision(256), decision(512, region=Interval(1.2, 1.1, 1.3))])  # claims of one choice
    assert [(one.sizes, one.speedup.low) for one in two] == [("256 B", 1.3), ("512 B", 1.1)]


def test_decisions_that_were_judged_one_by_one_are_told_together_where_they_are_neighbours() -> None:
    alone = [decision(size, RING, *[ratio] * 8, region=None) for size, ratio in ((64, 2.0), (128, 8.0), (4096, 3.0))]
    found = judged_regions(alone)
    assert [(one.sizes, one.speedup.low) for one in found] == [("64 B to 128 B", 2.0), ("4 KiB", 3.0)]
    assert found[0].speedup.estimate == pytest.approx(4.0)
    assert found[0].speedup.high == 8.0


def test_verdicts_and_choices_are_not_mixed_and_what_was_not_compared_has_no_evidence() -> None:
    some = [decision(64, RING), decision(64 * 2, TREE), decision(256, TREE, verdict=Verdict.REFUSED)]
    assert len(judged_regions(some)) == 3
    [region] = judged_regions([decision(64, RING, region=None, verdict=Verdict.NOT_TRIED)])
    assert (region.has_evidence, region.speedup.estimate) == (False, 1.0)
    gain = mean_of_kept([decision(64), decision(128, TREE, 1.9)])  # one of which was compared
    assert (gain.estimate, gain.low) == pytest.approx((1.5, 1.3))


GRID = [
    Scenario(name, nodes, ppn, size)
    for name in ("bcast", "alltoall")
    for nodes in (2, 3, 4)
    for ppn in (1, 2)
    for size in (8, 64, 512, 4096)
]
tables = st.lists(st.sampled_from([DEFAULT, RING, TREE]), min_size=len(GRID), max_size=len(GRID)).map(
    lambda choices: dict(zip(GRID, choices, strict=True))
)


def claims_in(table: dict[Scenario, Choice], most: int = 0, gains: dict[Scenario, float] | None = None) -> list[Claim]:
    """In the time for ``most`` claims, of comparisons that take a second each."""
    time = ProofTime((most + 0.5) * COMPARISONS / 0.6, dict.fromkeys(table, 1.0))
    return claims_of(table, gains or dict.fromkeys(table, 0.2), dict.fromkeys(table, 1.0), time)


@given(tables, st.integers(0, 30))
def test_claims_hold_what_departs_from_the_default_once_each(table: dict[Scenario, Choice], most: int) -> None:
    claims = claims_in(table, most)
    held = Counter((scenario, claim.choice) for claim in claims for scenario in claim.scenarios)
    assert held == Counter(pair for pair in table.items() if pair[1] != DEFAULT)
    # Where there is no time for all, half of it is for cuts.
    assert len(claims) <= max(most, len(claims_in(table)) + most // 2 + 1)


@given(tables)
def test_uncut_claims_are_the_largest_that_hang_together(table: dict[Scenario, Choice]) -> None:
    beside = neighbours(GRID)
    claims = claims_in(table)
    number = {scenario: place for place, claim in enumerate(claims) for scenario in claim.scenarios}
    for scenario, mine in number.items():
        assert all(number[o] == mine for o in beside[scenario] if table[o] == table[scenario])


def test_neighbours_are_one_step_away_in_one_direction() -> None:
    found = neighbours(GRID)
    beside = ((2, 1, 64), (4, 1, 64), (3, 2, 64), (3, 1, 8), (3, 1, 512))
    assert set(found[Scenario("bcast", 3, 1, 64)]) == {Scenario("bcast", *one) for one in beside}


def test_shapes_with_sizes_of_their_own_lie_beside_each_other() -> None:
    """As those of recorded and profiled calls: 128 B on 4 nodes, 131 B on 8, and nothing near 4 KiB."""
    short, long, other = (Scenario("bcast", nodes, 1, size) for nodes, size in ((4, 128), (4, 4096), (8, 131)))
    assert neighbours([short, long, other]) == {short: [long, other], long: [short], other: [short]}


def test_a_region_is_cut_only_where_there_is_time_for_one_claim_more_of_its_calls() -> None:
    """24 comparisons of each claim, in six tenths of the time."""
    table = dict.fromkeys(GRID[:24], RING)
    gains = {scenario: {8: 0.8, 64: 0.5, 512: 0.05, 4096: 0.05}[scenario.size_bytes] for scenario in table}
    costs_s = {scenario: 0.1 if scenario.size_bytes <= 64 else 1.0 for scenario in table}

    def claims(time_s: float) -> list[set[int]]:
        made = claims_of(table, gains, dict.fromkeys(table, 1.0), ProofTime(time_s, costs_s))
        return [{s.size_bytes for s in claim.scenarios} for claim in made]

    whole_s = 24 * median(costs_s.values()) / 0.6
    assert claims(0.99 * whole_s) == [{8, 64, 512, 4096}]
    # Where the gain changes most; what gains more comes first.
    assert claims(24 * 1.11 / 0.6) == [{8, 64}, {512, 4096}]
    # What is left is enough for one more claim of short calls, and not for one of long ones.
    assert {frozenset(one) for one in claims(24 * 1.25 / 0.6)} == {frozenset(s) for s in ({8}, {64}, {512, 4096})}
    assert len(claims(1e6)) == 3  # what is even and narrow is not cut


def test_where_few_launches_fit_a_claim_takes_fewer_comparisons() -> None:
    """Two in each launch that is planned; where there is no time for all claims, half of it is for cuts."""
    gains = {scenario: 0.1 * math.log2(scenario.size_bytes) for scenario in GRID}

    def count(table: dict[Scenario, Choice], cost_s: float, launch_s: float) -> int:
        time = ProofTime(60.0, dict.fromkeys(table, cost_s), launch_s)
        return len(claims_of(table, gains, dict.fromkeys(table, 1.0), time))

    one, two = dict.fromkeys(GRID[:24], RING), dict.fromkeys(GRID, RING)
    # 36 s for comparisons, of which one more claim may take 18: twelve comparisons in six launches, 24 in twelve.
    assert [count(one, cost_s, 5.0) for cost_s in (1.5, 1.6)] == [2, 1]
    assert [count(one, cost_s, 0.0) for cost_s in (0.75, 0.8)] == [2, 1]
    assert [count(two, cost_s, 0.0) for cost_s in (0.75, 0.8)] == [3, 2]


def test_launches_are_as_many_as_fit_and_no_fewer_than_prove_anything() -> None:
    fitting = [planned_launches(time_s, 5.0) for time_s in (0.0, 15.0, 20.0, 25.0, 36.0, 60.0, 150.0, 300.0, 1e4)]
    assert fitting == [3, 3, 3, 4, 6, 6, 10, 12, 12]
    assert planned_launches(60.0, 0.0) == 12
    assert [planned_launches(300.0, 5.0, done) for done in (4, 11, 12, 30)] == [8, 1, 1, 1]
    assert [planned_launches(12.0, 5.0, done) for done in (0, 1, 2, 5)] == [3, 2, 2, 1]


def test_one_scenario_cannot_be_cut() -> None:
    (claim,) = claims_in({GRID[0]: RING}, 10)
    assert cut_in_two(claim) is None
