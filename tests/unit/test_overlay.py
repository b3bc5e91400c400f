"""A campaign laid over what a directory holds: what it looked at is as it says, and everything else stays."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from colltune.core.choice import DEFAULT, Choice
from colltune.core.rules import RuleSet
from colltune.core.scenario import Scenario, SizeBasis
from colltune.core.space import Space
from colltune.distill.minimal_rules import distill_proven
from colltune.distill.overlay import Overlay

RING, TREE = Choice("ring"), Choice("binomial")
SIZES = tuple(1 << power for power in range(3, 13))


def proven(choices: dict[Scenario, Choice], basis: SizeBasis = SizeBasis.MESSAGE) -> RuleSet:
    name = next(iter(choices)).collective
    return distill_proven(choices, Space(name, tuple(choices), lambda _s: (DEFAULT, RING, TREE)), basis)


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


def at(ppn: int, size: int, nodes: int = 1) -> Scenario:
    return Scenario("bcast", nodes, ppn, size)


def test_another_collective_stays_as_it_was() -> None:
    before = {"allreduce": RuleSet.always("allreduce", SizeBasis.MESSAGE, RING)}
    now = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, TREE)}
    assert Overlay((), ()).rule_sets(before, now) == {**before, **now}


def test_another_shape_stays_and_the_same_shape_is_replaced() -> None:
    older = {at(2, size): RING for size in SIZES} | {at(4, size): RING for size in SIZES}
    newer = {at(3, size): TREE for size in SIZES} | {at(4, size): DEFAULT for size in SIZES}
    merged = over(older, newer)
    assert {merged.evaluate(at(2, size)) for size in SIZES} == {RING}
    assert {merged.evaluate(at(3, size)) for size in SIZES} == {TREE}
    assert {merged.evaluate(at(4, size)) for size in SIZES} == {DEFAULT}
    assert merged.evaluate(at(2, 64, nodes=2)) == DEFAULT


def test_sizes_that_were_not_looked_at_stay_and_between_them_both_must_agree() -> None:
    older = {at(2, size): RING for size in SIZES}
    merged = over(older, {at(2, 64): DEFAULT, at(2, 128): TREE})
    assert merged.evaluate(at(2, 32)) == RING
    assert merged.evaluate(at(2, 48)) == DEFAULT
    assert [merged.evaluate(at(2, size)) for size in (64, 128)] == [DEFAULT, TREE]
    assert merged.evaluate(at(2, 200)) == DEFAULT
    assert merged.evaluate(at(2, 256)) == RING
    agreed = over(older, {at(2, 64): RING, at(2, 128): RING})
    assert {agreed.evaluate(at(2, size)) for size in range(8, 4097)} == {RING}


def test_what_was_not_tried_stays_proven_as_before() -> None:
    older = {at(2, size): RING for size in SIZES}
    merged = over(older, dict.fromkeys((at(2, size) for size in SIZES), DEFAULT), opened=[at(2, 512)])
    assert [size for size in SIZES if merged.evaluate(at(2, size)) == RING] == [512]


def test_a_collective_whose_bits_are_fixed_is_replaced_whole() -> None:
    older, newer = proven({at(2, 64): RING}), proven({at(4, 64): TREE})
    overlay = Overlay([at(4, 64)], [at(4, 64)], whole={"bcast"})
    assert overlay.rule_sets({"bcast": older}, {"bcast": newer}) == {"bcast": newer}


_CHOICES = st.sampled_from((DEFAULT, RING, TREE))
_SCENARIOS = st.builds(
    Scenario, st.just("allgather"), st.sampled_from((1, 2)), st.sampled_from((2, 3, 4)), st.sampled_from(SIZES)
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
