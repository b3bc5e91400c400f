"""Regions of the decision table as claims: what they hold, and where they are cut."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.core.space import neighbours
from colltune.prove.audit.claims import claims_of, cut_in_two

RING, TREE = Choice("ring"), Choice("tree")
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


def flat(gain: float = 0.2) -> dict[Scenario, float]:
    return dict.fromkeys(GRID, gain)


@given(tables, st.integers(0, 30))
def test_claims_hold_what_departs_from_the_default_once_each(table: dict[Scenario, Choice], most: int) -> None:
    claims = claims_of(table, flat(), flat(1.0), most)
    held = Counter((scenario, claim.choice) for claim in claims for scenario in claim.scenarios)
    assert held == Counter(pair for pair in table.items() if pair[1] != DEFAULT)
    whole = claims_of(table, flat(), flat(1.0), 0)
    assert len(claims) <= max(most, len(whole))


@given(tables)
def test_uncut_claims_are_the_largest_that_hang_together(table: dict[Scenario, Choice]) -> None:
    beside = neighbours(GRID)
    claims = claims_of(table, flat(), flat(1.0), 0)
    number = {scenario: place for place, claim in enumerate(claims) for scenario in claim.scenarios}
    for scenario, mine in number.items():
        assert all(number[o] == mine for o in beside[scenario] if table[o] == table[scenario])


def test_neighbours_are_one_step_away_in_one_direction() -> None:
    found = neighbours(GRID)
    beside = ((2, 1, 64), (4, 1, 64), (3, 2, 64), (3, 1, 8), (3, 1, 512))
    assert set(found[Scenario("bcast", 3, 1, 64)]) == {Scenario("bcast", *one) for one in beside}


def test_shapes_with_sizes_of_their_own_lie_beside_each_other() -> None:
    """As those of recorded and profiled calls: 128 B on 4 nodes, 131 B on 8, and nothing near 4 KiB."""
    few, more = (
        [Scenario("bcast", nodes, 1, size) for size in sizes] for nodes, sizes in ((4, (128, 4096)), (8, (131,)))
    )
    found = neighbours([*few, *more])
    assert found == {few[0]: [few[1], more[0]], few[1]: [few[0]], more[0]: [few[0]]}


def test_a_region_is_cut_where_its_gain_changes_most() -> None:
    table = dict.fromkeys(GRID[:24], RING)
    gains = {scenario: 0.4 if scenario.size_bytes <= 64 else 0.05 for scenario in table}
    first, second = claims_of(table, gains, dict.fromkeys(table, 1.0), 2)
    assert {s.size_bytes for s in first.scenarios} == {8, 64}
    assert {s.size_bytes for s in second.scenarios} == {512, 4096}
    assert first.stake > second.stake


def test_one_scenario_cannot_be_cut() -> None:
    (claim,) = claims_of({GRID[0]: RING}, flat(), flat(1.0), 10)
    assert cut_in_two(claim) is None
    assert str(claim) == "bcast, 2 x 1 ranks, 8 B: ring"
