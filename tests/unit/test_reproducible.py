"""Reproducible reductions: one choice per shape for all sizes, and its price."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.catalog import Need, load
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, REDUCTIONS, Choice, Scenario
from colltune.distill.reproducible import distill_reproducible, reproducible_choices

CATALOGUE = load("mpich", "5.0.2")
VERSIONS = ("4.0", "4.1", "4.2", "4.3", "5.0")
DOUBLING, RING = Choice("recursive_doubling"), Choice("ring")
TREE = Choice("tree", (("k", 2),))


def at(size: int, nodes: int = 1, ppn: int = 4, collective: str = "allreduce") -> Scenario:
    return Scenario(collective, nodes, ppn, size)


def test_the_fastest_over_all_sizes_is_taken_for_all() -> None:
    measured = {(at(4), DOUBLING): 1.0, (at(4), TREE): 2.0, (at(4), RING): 9.0}
    measured |= {(at(64), DOUBLING): 8.0, (at(64), TREE): 2.0, (at(64), RING): 1.0}
    found = distill_reproducible("allreduce", measured, {at(4): DOUBLING, at(64): RING}, CATALOGUE)
    assert {found.rule_set.evaluate(at(size)) for size in (0, 4, 64, 1 << 30)} == {TREE}
    assert [cost.ratio for cost in found.costs] == [2.0, 2.0]
    assert found.slowdown == pytest.approx(2.0)
    assert "2.00 times the time of the unrestricted choice" in found.cost_text()
    assert "1 x 4, 4 B: tree(k=2) in place of recursive_doubling" in found.cost_text()


def test_other_shapes_get_what_is_legal_everywhere() -> None:
    measured = {(at(4, ppn=4), TREE): 1.0, (at(4, ppn=4), DOUBLING): 2.0}
    rules = distill_reproducible("allreduce", measured, {}, CATALOGUE).rule_set
    assert rules.evaluate(at(4, ppn=4)) == TREE
    for nodes, ppn in ((1, 2), (1, 3), (2, 4), (1, 5), (7, 1)):
        assert rules.evaluate(at(4, nodes, ppn)) == DOUBLING


def test_nothing_measured_is_still_reproducible() -> None:
    found = distill_reproducible("reduce", {}, {}, CATALOGUE)
    assert found.rule_set.evaluate(at(4, collective="reduce")) == Choice("binomial")
    assert (found.slowdown, found.costs) == (1.0, ())
    assert "not measured" in found.cost_text()


def test_what_failed_or_was_measured_at_some_sizes_alone_is_not_used() -> None:
    gap = {(at(4), DOUBLING): 1.0, (at(64), DOUBLING): 10.0, (at(4), TREE): 0.5}
    assert distill_reproducible("allreduce", gap, {}, CATALOGUE).rule_set.evaluate(at(4)) == DOUBLING
    measured = {(at(4), DOUBLING): 2.0, (at(4), TREE): 1.0}
    found = distill_reproducible("allreduce", measured, {}, CATALOGUE, broken=[TREE])
    assert found.rule_set.evaluate(at(4)) == DOUBLING
    with pytest.raises(InputError, match="failed here"):
        distill_reproducible("allreduce", measured, {}, CATALOGUE, broken=[DOUBLING])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("collective", sorted(REDUCTIONS))
def test_every_version_has_one_that_is_legal_everywhere(version: str, collective: str) -> None:
    catalogue = load("mpich", version)
    first, *others = reproducible_choices(catalogue, collective)
    assert not catalogue.algorithm(collective, first).needs
    for choice in others:
        assert catalogue.algorithm(collective, choice).needs <= {Need.COMMUTATIVE, Need.POWER_OF_TWO}
    assert DEFAULT not in (first, *others)


@given(st.data())
def test_no_two_sizes_of_a_shape_are_decided_differently(data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=5))
    choices = reproducible_choices(CATALOGUE, "allreduce")
    scenarios = [at(size, n, p) for n, p in shapes for size in (4, 64, 1024) if n * p > 1]
    measured = {
        (scenario, choice): data.draw(st.floats(1e-6, 1e-3))
        for scenario in scenarios
        for choice in data.draw(st.lists(st.sampled_from(choices), unique=True))
    }
    rules = distill_reproducible("allreduce", measured, {}, CATALOGUE).rule_set
    assert all(rule.max_size is None for rule in rules.rules)
    assert {rule.choice for rule in rules.rules} <= set(choices)


def test_a_library_without_a_reproducible_algorithm_and_collectives_that_add_nothing_up_are_refused() -> None:
    for collective in REDUCTIONS:
        with pytest.raises(InputError, match=f"{collective} has no reproducible algorithm"):
            reproducible_choices(load("openmpi", "5.0.11"), collective)
    with pytest.raises(InputError, match="bcast adds nothing up"):
        reproducible_choices(CATALOGUE, "bcast")
