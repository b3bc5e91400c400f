"""The evidence of launches: how often it is wrong, and how soon it tells what is there."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.judge.evidence import (
    ALPHA,
    FEWEST_LAUNCHES,
    Scatter,
    Yardstick,
    high_bound,
    is_above,
    is_below,
    log_evidence,
    low_bound,
    scatter_of,
    share_of_nulls,
)

FLOOR = math.log(1.03)
# Each of two algorithms is 1.38 times as slow in half of the launches, for itself.
MODES = (0.0, 0.0, math.log(1.38), -math.log(1.38))
MODES_SCALE = math.log(1.38) / math.sqrt(2.0)
launches_of_any_kind = st.lists(st.floats(-2.0, 2.0), max_size=20)


def ever_above(gain: float, launches: int, scale: float, seed: int, *, modes: bool) -> bool:
    """Whether a campaign that looks after every launch ever calls it faster."""
    random = np.random.default_rng(seed)
    drawn = gain + (random.choice(MODES, launches) if modes else random.standard_t(3, launches) * scale)
    return any(is_above(drawn[:count].tolist(), scale, FLOOR) for count in range(1, launches + 1))


@pytest.mark.parametrize("modes", [False, True])
def test_what_is_as_fast_as_the_default_is_hardly_ever_called_faster(modes: bool) -> None:
    """At the floor itself, with tails or with two modes, and a look after each of 30 launches."""
    scale = MODES_SCALE if modes else 0.1
    wrong = sum(ever_above(FLOOR, 30, scale, seed, modes=modes) for seed in range(1500))
    assert wrong <= 1.5 * ALPHA * 1500


def test_what_is_a_quarter_faster_is_found_in_spite_of_two_modes() -> None:
    found = sum(ever_above(math.log(1.25), 40, MODES_SCALE, seed, modes=True) for seed in range(200))
    assert found >= 160


def test_clear_gains_need_few_launches() -> None:
    found = sum(ever_above(math.log(1.25), 5, 0.03, seed, modes=False) for seed in range(200))
    assert found >= 190


@given(launches_of_any_kind, st.floats(0.01, 0.5), st.floats(-0.2, 0.5))
def test_what_is_above_a_floor_has_its_bound_above_it(launches: list[float], scale: float, floor: float) -> None:
    if is_above(launches, scale, floor):
        assert low_bound(launches, scale) >= floor - 0.02


def test_too_few_launches_tell_nothing() -> None:
    few = [1.0] * (FEWEST_LAUNCHES - 1)
    assert not is_above(few, 0.02, 0.0)
    assert (low_bound(few, 0.02), high_bound(few, 0.02)) == (-math.inf, math.inf)
    assert log_evidence([], 0.1, 0.0) == 0.0


@given(launches_of_any_kind, st.floats(0.01, 0.5))
def test_bounds_lie_about_the_mean_and_are_mirrored(launches: list[float], scale: float) -> None:
    low, high = low_bound(launches, scale), high_bound(launches, scale)
    if len(launches) >= FEWEST_LAUNCHES:
        assert low <= float(np.mean(launches)) <= high
    assert low_bound([-value for value in launches], scale) == -high


@given(launches_of_any_kind, st.floats(0.01, 0.5))
def test_nothing_is_above_and_below_the_same_floor(launches: list[float], scale: float) -> None:
    assert not (is_above(launches, scale, 0.0) and is_below(launches, scale, 0.0, ALPHA))


def drawn(between: float, within: float, looks: int, seed: int = 0) -> list[list[list[float]]]:
    """60 regions of 6 launches, each with so many comparisons."""
    random = np.random.default_rng(seed)
    return [
        [(mean + random.normal(0.0, between) + random.normal(0.0, within, looks)).tolist() for _ in range(6)]
        for mean in np.linspace(-1.0, 1.0, 60)
    ]


@pytest.mark.parametrize("between", [0.05, 0.3])
def test_the_scatter_is_found_between_launches_and_within(between: float) -> None:
    found = scatter_of(drawn(between, 0.2, 4))
    assert found.within == pytest.approx(0.2, rel=0.1)
    assert found.between == pytest.approx(between, rel=0.35)


def test_a_few_regions_with_two_modes_do_not_make_all_others_look_unsure() -> None:
    random = np.random.default_rng(1)
    bimodal = [[(random.choice([-1.4, 1.1]) + random.normal(0.0, 0.1, 2)).tolist() for _ in range(9)] for _ in range(4)]
    usual = drawn(0.1, 0.1, 2)
    assert scatter_of([*usual, *bimodal]).of(1.0) == pytest.approx(scatter_of(usual).of(1.0), rel=0.1)
    assert scatter_of(bimodal).between > 0.8  # and where all have them, they count


def test_with_one_comparison_a_launch_the_scatter_of_a_launch_is_found() -> None:
    assert scatter_of(drawn(0.2, 0.2, 1)).of(1.0) == pytest.approx(0.2 * math.sqrt(2.0), rel=0.1)
    assert scatter_of([]).of(1.0) == pytest.approx(Scatter().of(1.0))


def test_a_dear_comparison_is_made_once_in_a_launch_and_a_cheap_one_as_often_as_it_tells_something() -> None:
    scatter = Scatter(between=0.1, within=0.1)
    assert scatter.best_looks(launch_s=1.0, look_s=4.0) == 1
    assert scatter.best_looks(launch_s=1.0, look_s=0.04) == 5
    # What differs between launches no comparison within one can tell.
    assert Scatter(between=0.5, within=0.1).best_looks(launch_s=1.0, look_s=0.04) == 1

    def variance(looks: int, time_s: float = 100.0) -> float:
        return scatter.of(looks) ** 2 / (time_s / (1.0 + 0.04 * looks))

    assert min(range(1, 20), key=variance) == 5


def test_the_share_of_claims_that_are_no_gain_is_found() -> None:
    random = np.random.default_rng(0)
    null = [log_evidence(random.normal(0.0, 0.1, 6).tolist(), 0.1, FLOOR) for _ in range(100)]
    true = [log_evidence(random.normal(0.3, 0.1, 6).tolist(), 0.1, FLOOR) for _ in range(100)]
    assert share_of_nulls(null + true) == pytest.approx(0.5, abs=0.1)
    assert share_of_nulls(null) > 0.9
    assert share_of_nulls(true) < 0.1
    assert Yardstick(nulls=share_of_nulls(null)).alpha < ALPHA < Yardstick(nulls=share_of_nulls(true)).alpha
