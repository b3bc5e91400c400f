"""What comparisons of a proof are expected to take."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.prove.audit.worth import ComparisonCosts

SECONDS = st.floats(1e-7, 10.0)


def test_what_short_comparisons_take_besides_their_calls_is_not_multiplied_for_long_ones() -> None:
    costs = ComparisonCosts()
    for _ in range(10):
        costs.note(20e-6, 0.1)
    assert costs.likely_s(20e-6) == pytest.approx(0.1, rel=0.01)
    assert costs.likely_s(2.0) < 2.5


def test_comparisons_that_all_take_longer_are_expected_to_take_longer() -> None:
    costs = ComparisonCosts()
    for expected_s in (1e-3, 1e-2, 1e-1, 1.0) * 3:
        costs.note(expected_s, 3.0 * expected_s)
    assert costs.likely_s(10.0) == pytest.approx(30.0, rel=0.1)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=20), SECONDS)
def test_what_is_likely_is_neither_negative_nor_less_for_longer_calls(
    took: list[tuple[float, float]], expected_s: float
) -> None:
    costs = ComparisonCosts()
    for pair in took:
        costs.note(*pair)
    assert 0.0 <= costs.likely_s(expected_s) <= costs.likely_s(2.0 * expected_s) < math.inf
