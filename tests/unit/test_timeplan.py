"""What the budget covers, and what happens where it is too short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.prove.replay.on_workbench import ReplaySlice, short_limit_s
from colltune.prove.time_plan import TimePlan

SECONDS = st.floats(0.01, 1e4)


@given(SECONDS, SECONDS, SECONDS, SECONDS, st.booleans())
def test_the_stages_come_one_after_another_and_fit_the_whole(
    budget_s: float, set_up_s: float, launch_s: float, replay_s: float, proven: bool
) -> None:
    plan = TimePlan(budget_s, 100.0, set_up_s, launch_s, replay_s, proven)
    assert plan.total_s == max(budget_s, plan.fixed_cost_s)
    assert 100.0 + set_up_s < plan.measured_by_s < plan.proven_by_s < 100.0 + plan.total_s
    # What is left for the proof has room for its fewest launches.
    assert plan.proven_by_s - plan.measured_by_s >= plan.launches * launch_s
    assert (plan.extension is None) == (budget_s >= plan.fixed_cost_s)
    assert plan.budget_for(10.0) > plan.total_s + 10.0


def test_a_budget_below_the_fixed_cost_is_extended_and_the_line_says_why() -> None:
    plan = TimePlan(budget_s=5.0, began_s=0.0, set_up_s=2.0, launch_s=1.1, replay_s=3.0)
    assert plan.fixed_cost_s == pytest.approx(2.0 + 1.1 + 1.0 + 9 * 1.1 + 2.0 + 3.0 + 1.5)
    assert plan.extension == (
        "a tuning with proof takes at least 20.5 s here: 10 launches of 1.1 s, and 3 s for the conformance check; the "
        "budget of 5 s is extended to that"
    )
    assert TimePlan(60.0, 0.0, 2.0, 1.1, 3.0).extension is None


def test_the_replay_may_take_several_times_what_its_slice_led_to_expect() -> None:
    assert short_limit_s(0.0) == short_limit_s(20.0) == 180.0
    assert short_limit_s(300.0) == 1200.0


def test_a_slice_of_the_replay_tells_what_the_whole_takes() -> None:
    """100 cases in 1 s beside a launch of 2 s; eight rank counts of some hundred cases each."""
    assert ReplaySlice(wall_s=3.0, cases=100, rank_counts=8).whole_s(launch_s=2.0) == pytest.approx(30.0)
    assert ReplaySlice(wall_s=2.0, cases=100, rank_counts=8).whole_s(launch_s=2.5) == pytest.approx(2.5 + 2800 * 0.003)
    assert ReplaySlice(wall_s=1.0, cases=0, rank_counts=8).whole_s(launch_s=2.0) == 8.0
