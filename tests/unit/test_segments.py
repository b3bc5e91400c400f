"""Few wide segments: the optimum over sizes, shapes that join, and what breaks a rule."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.distill.decide import ClaimCosts, decide
from colltune.distill.segments import Segments
from colltune.search.models import MeasuredModel

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
    times = {at(size): (8.0, 5.0, 4.0 if size > 32 else 7.0) for size in SIZES}
    samples = [
        Sample(scenario, choice, Status.OK, (time_s,))
        for scenario, some in times.items()
        for choice, time_s in zip((DEFAULT, RING, TREE), some, strict=True)
    ]
    medians = {(one.scenario, one.choice): one.times_s[0] for one in samples}
    space = Space("bcast", tuple(times), lambda _scenario: (DEFAULT, RING, TREE))
    costs = ClaimCosts(10.0, lambda _default_s, _gain: claim_s)
    found = decide(
        {"bcast": MeasuredModel(medians)}, {"bcast": space}, samples, lambda _one: DEFAULT, 1.03, costs=costs
    )["bcast"]
    assert set(found.choices.values()) == expected
    assert found.gains[at(8)] == pytest.approx(math.log(8.0 / 5.0))


def test_what_scenarios_share_is_agreed_on_in_few_looks_whatever_disagrees() -> None:
    """Each shape has another best choice, and all shapes of a size share what runs below theirs."""
    choices = tuple(Choice("composed", (("below", number),)) for number in range(6))
    shapes = tuple(2**power for power in range(1, 7))
    scenarios = [at(size, nodes) for nodes in shapes for size in SIZES]

    def time_s(scenario: Scenario, choice: Choice) -> float:
        if choice == DEFAULT:
            return 1.0
        # The more nodes, the more is gained, so that the largest shape prevails.
        place, number = shapes.index(scenario.nodes), int(dict(choice.parameters)["below"])
        return 0.8 - 0.05 * place if number == place else 0.9

    medians = {(s, c): time_s(s, c) for s in scenarios for c in (DEFAULT, *choices)}
    looks = []

    def shared(scenario: Scenario, choice: Choice) -> dict[int, Choice]:
        looks.append(scenario)
        return {} if choice == DEFAULT else {scenario.size_bytes: choice}

    space = Space("bcast", tuple(scenarios), lambda _scenario: (DEFAULT, *choices))
    found = decide({"bcast": MeasuredModel(medians)}, {"bcast": space}, [], lambda _one: DEFAULT, 1.03, shared)["bcast"]
    assert {c for c in found.choices.values() if c != DEFAULT} == {choices[-1]}
    assert all(found.choices[at(size, shapes[-1])] == choices[-1] for size in SIZES)
    assert len(looks) <= 3 * len(medians)
