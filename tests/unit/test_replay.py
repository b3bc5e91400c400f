"""The replayed source keeps the contract of sources, and invents nothing."""

import numpy as np
import pytest

from colltune.bench.replay import MeasuringCost, ReplaySource, TimeDrift
from colltune.core.errors import MeasurementError
from colltune.core.sample import Choice, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.store.grid import Grid
from colltune_study.recorded.launch_effects import LaunchEffects

RING, TREE = Choice("ring"), Choice("tree")
SMALL, LARGE = (Scenario("bcast", 2, 4, size) for size in (8, 1 << 20))
# The tree at the large size was not recorded, nor what the ring took there.
TIMES_S = np.array([[1e-6, 2e-6], [0.1, np.nan]])
COST_S = np.array([[0.5, 0.25], [np.nan, np.nan]])
GRID = Grid("a/bcast", "bcast", (SMALL, LARGE), (RING, TREE), TIMES_S, np.full(2, np.nan), COST_S)
COST = MeasuringCost()


def source(seed: int = 1, launch: int = 0, launch_sd: float = 0.0) -> ReplaySource:
    return ReplaySource([GRID], GRID.environment, seed, COST, launch, launch_sd)


def look(replay: ReplaySource, scenario: Scenario, choice: Choice, repetitions: int = 0) -> Sample:
    [(_, [sample])] = replay.measure([Point(scenario, (choice,), repetitions)], Effort())
    return sample


def test_what_was_not_recorded_is_inapplicable_and_has_no_time() -> None:
    recorded = ((SMALL, RING), (SMALL, TREE), (LARGE, RING))
    assert [look(source(), *pair).time_s for pair in recorded] == pytest.approx([1e-6, 2e-6, 0.1], rel=0.03)
    for scenario, choice in ((LARGE, TREE), (SMALL, Choice("linear")), (Scenario("bcast", 2, 4, 9), RING)):
        sample = look(source(), scenario, choice)
        assert sample.status is Status.INAPPLICABLE
        assert sample.times_s == ()
        assert "not in the recorded data" in sample.detail


def test_a_point_is_repeated_as_often_as_it_asks_for() -> None:
    assert len(look(source(), SMALL, RING).times_s) == COST.repetitions
    assert len(look(source(), SMALL, RING, 3).times_s) == 3
    assert len(look(source(), SMALL, RING, 100).times_s) == COST.repetitions
    [(_, [sample])] = source().measure([Point(SMALL, (RING,))], Effort(most=7))
    assert len(sample.times_s) == 7


def test_costs_are_as_recorded_and_else_set_up_and_repetitions() -> None:
    replay = source()
    recorded, brief, by_model = look(replay, SMALL, RING), look(replay, SMALL, RING, 3), look(replay, LARGE, RING)
    assert recorded.cost_s == 0.5
    assert brief.cost_s == pytest.approx(COST.set_up_s + 4 * 1e-6)
    assert by_model.cost_s == pytest.approx(COST.set_up_s + 22 * 0.1)
    assert by_model.started_s == pytest.approx(recorded.cost_s + brief.cost_s)
    assert replay.now_s == pytest.approx(by_model.started_s + by_model.cost_s)


def test_each_look_draws_anew_and_equal_seeds_draw_alike_whatever_else_was_measured() -> None:
    one, other = source(), source()
    first, second = look(one, SMALL, RING), look(one, SMALL, RING)
    look(other, LARGE, RING)
    assert first.times_s != second.times_s
    assert [look(other, SMALL, RING).times_s for _ in range(2)] == [first.times_s, second.times_s]
    assert look(source(seed=2), SMALL, RING).times_s != first.times_s


def test_repetitions_have_the_recorded_quantiles() -> None:
    spread = np.tile([0.5, 0.6, 0.7, 1.0, 2.0, 4.0, 8.0], (2, 2, 1))
    grid = Grid("a/bcast", "bcast", (SMALL, LARGE), (RING, TREE), TIMES_S, np.full(2, np.nan), None, spread)
    replay = ReplaySource([grid], grid.environment, 1, MeasuringCost(repetitions=20_000))
    [(_, [sample])] = replay.measure([Point(LARGE, (RING,))], Effort(most=20_000))
    found = np.quantile(sample.times_s, [0.1, 0.25, 0.5, 0.75, 0.9]) / 0.1
    np.testing.assert_allclose(found, [0.6, 0.7, 1.0, 2.0, 4.0], rtol=0.05)


def test_a_launch_makes_a_choice_slower_or_faster_throughout() -> None:
    def factors(launch: int) -> list[float]:
        plain, replay = source(launch=launch), source(launch=launch, launch_sd=0.2)
        return [
            a / b
            for _ in range(2)
            for a, b in zip(look(replay, SMALL, RING).times_s, look(plain, SMALL, RING).times_s, strict=True)
        ]

    of_launch = [factors(launch) for launch in range(1, 400)]
    assert all(max(found) == pytest.approx(min(found)) for found in of_launch)
    logarithms = np.log([found[0] for found in of_launch])
    assert np.std(logarithms) == pytest.approx(0.2, rel=0.1)
    assert np.mean(logarithms) == pytest.approx(0.0, abs=0.03)
    one = source(launch=7, launch_sd=0.2)
    assert look(one, SMALL, RING).launch == 7
    assert look(source(launch=7, launch_sd=0.2), SMALL, RING) == look(source(launch=7, launch_sd=0.2), SMALL, RING)


def test_drift_makes_all_times_longer_or_shorter_alike_as_time_goes_by() -> None:
    factors = [TimeDrift(0.1, seed=3).factor(float(now_s)) for now_s in range(0, 6000, 5)]
    assert np.std(np.log(factors)) == pytest.approx(0.1, rel=0.1)
    assert np.mean(np.log(factors)) == pytest.approx(0.0, abs=0.01)
    steps = np.diff(np.log([TimeDrift(0.1, seed=3).factor(0.1 * step) for step in range(6000)]))
    assert max(abs(steps)) < 0.005  # from one call to the next it is about the same
    assert TimeDrift(0.1, seed=4).factor(100.0) != TimeDrift(0.1, seed=3).factor(100.0)
    now_s = 42.0
    drifting = ReplaySource([GRID], GRID.environment, 1, COST, clock=lambda: now_s, drift=TimeDrift(0.1, seed=3))
    for choice in (RING, TREE):
        times_s, plain_s = (look(one, SMALL, choice).times_s for one in (drifting, source()))
        np.testing.assert_allclose(np.divide(times_s, plain_s), TimeDrift(0.1, seed=3).factor(now_s))


def test_a_closed_source_says_so() -> None:
    replay = source()
    replay.close()
    with pytest.raises(MeasurementError, match="closed"):
        list(replay.measure([Point(SMALL, (RING,))], Effort()))


def logs(effects: LaunchEffects, launch: int, points: list[Point]) -> list[list[float]]:
    """By point and choice, the logarithm of what the effects of a launch make of a time, at the first and last call."""
    moved = ReplaySource([GRID], GRID.environment, 1, COST, launch, effects=effects)
    plain = ReplaySource([GRID], GRID.environment, 1, COST, launch)
    answers = zip(moved.measure(points, Effort()), plain.measure(points, Effort()), strict=True)
    pairs = [pair for (_, some), (_, others) in answers for pair in zip(some, others, strict=True)]
    return [np.log(np.divide(a.times_s, b.times_s))[[0, -1]].tolist() for a, b in pairs]


def test_the_effects_of_a_launch_are_of_all_choices_of_an_algorithm_and_of_a_pair() -> None:
    points = [Point(SMALL, (RING, TREE)), Point(LARGE, (RING,))]
    for effects, alike in (
        (LaunchEffects(together=0.3), [True, True]),
        (LaunchEffects(algorithm=0.3), [False, True]),
        (LaunchEffects(pair=0.3), [False, False]),
    ):
        found = np.array([logs(effects, launch, points) for launch in range(1, 200)])
        np.testing.assert_allclose(found[:, :, 0], found[:, :, 1])  # a launch is the same to its end
        np.testing.assert_allclose(found[:, :, 0].std(axis=0), 0.3, rtol=0.2)
        ring, *others = found[:, :, 0].T
        assert [bool(np.allclose(ring, other)) for other in others] == alike
    assert logs(LaunchEffects(pair=0.3), 7, points) == logs(LaunchEffects(pair=0.3), 7, points)


def test_rounds_of_ten_calls_share_what_a_moment_does() -> None:
    point = Point(SMALL, (RING, TREE))
    for effects, alike in ((LaunchEffects(round_together=0.1), True), (LaunchEffects(round_own=0.1), False)):
        found = np.array([logs(effects, launch, [point] * 2) for launch in range(1, 200)])
        rounds = found.transpose(1, 2, 0).reshape(8, -1)  # point and choice, first round and last
        np.testing.assert_allclose(rounds.std(axis=1), 0.1, rtol=0.25)
        assert np.allclose(rounds[:2], rounds[2:4]) is alike
        apart = np.abs(np.corrcoef(np.concatenate([rounds[:2], rounds[4:6]])) - np.eye(4))
        assert apart.max() < 0.25  # the rounds of a point, and the next point's, are independent
