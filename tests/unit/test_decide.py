"""What a campaign decides from its model: where choices meet, between two counts of nodes, by the state of the heap."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from test_proof import BESIDE, FAST, MINE, RING, TREE, Bench, usual

from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status, parse_choice
from colltune.core.space import Space
from colltune.distill.decide import Decided, decide
from colltune.search.campaign import MeasuredModel


def decide_one(
    times: Mapping[tuple[Scenario, Choice], float], space: Space, samples: Sequence[Sample], *more: Any
) -> Decided:
    name = space.collective
    return decide({name: MeasuredModel(times)}, {name: space}, samples, *more)[name]


@pytest.mark.parametrize("advantage", [1.2, 0.5])
def test_choices_that_meet_below_a_composition_are_settled_by_what_gains_most(advantage: float) -> None:
    """4 x 2 and 4 x 4 have the same leaders, which cannot run two algorithms at one size."""
    two, three, flat = parse_choice("alpha+tree(k=2)"), parse_choice("alpha+tree(k=3)"), FAST
    times = {
        (MINE, DEFAULT): 8.0, (MINE, two): 4.0, (MINE, three): 6.0, (MINE, flat): 7.0,
        (BESIDE, DEFAULT): 8.0, (BESIDE, two): 9.0, (BESIDE, three): 4.0 / advantage, (BESIDE, flat): 7.0,
    }  # fmt: skip
    samples = [Sample(s, choice, Status.OK, (time_s,)) for (s, choice), time_s in times.items()]
    space = Space("bcast", (MINE, BESIDE), lambda _scenario: (DEFAULT, two, three, flat))
    bench = Bench(usual)
    settled = decide_one(times, space, samples, bench.baseline, 1.03, bench.shared).choices
    expected = {MINE: three, BESIDE: three} if advantage > 1.0 else {MINE: two, BESIDE: flat}
    assert settled == expected
    free = decide_one(times, space, samples, bench.baseline, 1.03).choices
    assert free == {MINE: two, BESIDE: three if advantage > 1.0 else flat}


@pytest.mark.parametrize(
    ("on_four", "on_six", "between"),
    [
        # Time of RING and TREE on 4 and on 6 nodes, where the default takes 8: on 5 what gains more at both.
        ((4.0, 6.0), (7.0, 4.0), TREE),
        ((2.0, 6.0), (5.0, 4.0), RING),
        ((4.0, 6.0), (4.0, 6.0), RING),
        ((8.0, 8.0), (4.0, 6.0), RING),
        ((9.0, 8.0), (7.5, 8.0), DEFAULT),
        ((8.0, 8.0), (8.0, 8.0), DEFAULT),
    ],
)
def test_a_count_of_nodes_between_two_takes_what_gains_more_at_both(
    on_four: tuple[float, float], on_six: tuple[float, float], between: Choice
) -> None:
    ends = [Scenario("bcast", nodes, 1, 64) for nodes in (4, 6)]
    times = {
        (end, choice): time_s
        for end, (ring, tree) in zip(ends, (on_four, on_six), strict=True)
        for choice, time_s in ((DEFAULT, 8.0), (RING, ring), (TREE, tree))
    }
    samples = [Sample(s, choice, Status.OK, (time_s,)) for (s, choice), time_s in times.items()]
    five = Scenario("bcast", 5, 1, 64)

    def decided_of(*legal_on_five: Choice) -> Decided:
        space = Space("bcast", tuple(ends), lambda s: legal_on_five if s == five else (DEFAULT, RING, TREE))
        return decide_one(times, space, samples, lambda _scenario: DEFAULT, 1.03)

    found = decided_of(DEFAULT, RING, TREE)
    assert found.choices[five] == between
    expected = [math.log(times[end, DEFAULT] / times[end, between]) for end in ends]
    assert found.gains[five] == pytest.approx(sum(expected) / 2.0)
    assert found.default_s[five] == pytest.approx(8.0)
    assert decided_of(DEFAULT).choices[five] == DEFAULT


@pytest.mark.parametrize(
    ("default_kept_s", "ring_kept_s", "best"), [(4.0, 3.0, RING), (2.5, 3.0, TREE), (4.0, None, RING)]
)
def test_a_choice_that_loses_where_the_heap_keeps_memory_gives_way_to_the_next(
    default_kept_s: float, ring_kept_s: float | None, best: Choice
) -> None:
    times = {(MINE, DEFAULT): 8.0, (MINE, RING): 3.0, (MINE, TREE): 5.0}
    kept_s = {DEFAULT: default_kept_s, RING: ring_kept_s, TREE: 2.0}
    samples = [Sample(s, one, Status.OK, (time_s,), kept_s=kept_s[one]) for (s, one), time_s in times.items()]
    space = Space("bcast", (MINE,), lambda _scenario: (DEFAULT, RING, TREE))
    assert decide_one(times, space, samples, lambda _scenario: DEFAULT, 1.03).choices[MINE] == best
