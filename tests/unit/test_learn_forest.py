"""The forest learner: its variance, its corners, its odd sizes and when it stops."""

from __future__ import annotations

import numpy as np

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.learn.forest import ForestLearner, corners, jackknife_variance
from colltune.learn.history import History
from colltune.learn.stopping import flat
from colltune.testing.learner import RING, TREE, drive, legal, measured, small_space


def test_the_closed_form_is_the_jackknife_with_every_tree_left_out_once():
    trees = np.random.default_rng(0).normal(size=(20, 6))
    count = len(trees)
    left_out = np.array([np.delete(trees, i, axis=0).mean(axis=0) for i in range(count)])
    by_hand = (count - 1) / count * ((left_out - trees.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(jackknife_variance(trees), by_hand, rtol=1e-12)


def test_corners_come_first_and_span_the_space():
    space = small_space()
    points = drive(ForestLearner(space, 0), 8)
    assert {point.scenario for point in points} == set(corners(space.scenarios))
    for name in ("nodes", "ppn", "size_bytes"):
        everywhere = {getattr(scenario, name) for scenario in space.scenarios}
        assert {getattr(point.scenario, name) for point in points} == {min(everywhere), max(everywhere)}


def test_all_candidates_of_a_scenario_are_asked_for_together():
    assert all(point.choices == legal(point.scenario) for point in drive(ForestLearner(small_space(), 0), 30))


def test_one_in_five_sizes_is_moved_to_the_nearest_that_are_no_powers_of_two():
    for collective, element in (("bcast", 1), ("allreduce", 4)):
        points = drive(ForestLearner(small_space(collective), 0), 33)[8:]
        odd = [
            point.scenario.size_bytes for point in points if point.scenario.size_bytes & (point.scenario.size_bytes - 1)
        ]
        assert 3 <= len(odd) <= 5  # of 25; a size with no free neighbour stays
        assert all(size % element == 0 for size in odd)


def test_a_moved_size_leaves_the_scenario_itself_open():
    space = small_space()
    grid = {point.scenario for point in drive(ForestLearner(space, 0), 10_000)}
    assert set(space.scenarios) <= grid


def test_the_uncertain_region_is_asked_for():
    """Nothing is known between the corners, so the points after them are not the corners' neighbours in size."""
    points = drive(ForestLearner(small_space(), 4), 12)
    assert len({point.scenario.size_bytes for point in points[8:]}) >= 2


def test_stops_when_the_variance_is_flat_and_says_so():
    learner = ForestLearner(small_space(), 0)
    reasons = []
    while not reasons and (asked := learner.ask(1)):
        learner.tell(measured(asked[0]))
        reasons += [reason] if (reason := learner.should_stop()) else []
    assert "flat" in reasons[0] or "every candidate" in reasons[0]


def test_does_not_stop_before_the_corners_are_known():
    space = small_space()
    learner = ForestLearner(space, 0)
    assert learner.should_stop() is None
    for scenario in space.scenarios[1:9]:
        learner.tell(measured(Point(scenario, space.choices(scenario))))
    assert learner.should_stop() is None


def test_flat_needs_all_the_last_changes_to_be_small():
    assert not flat([9.0, 1.0, 1.0], 0.01, 3)
    assert flat([9.0, 1.0, 1.0, 1.0], 0.01, 2)
    assert not flat([9.0, 1.0, 2.0, 2.0], 0.01, 2)


def test_an_empty_space_is_done():
    learner = ForestLearner(Space("bcast", (), legal), 0)
    assert learner.ask(3) == []
    assert learner.should_stop()


def test_only_wrong_results_leave_nothing_to_learn_from():
    space = small_space()
    history = History(space)
    history.tell([Sample(space.scenarios[0], TREE, Status.OK, (1e-6,)), Sample(space.scenarios[1], TREE, Status.WRONG)])
    assert history.times() == {}
    assert not history.has_times


def test_a_choice_that_ended_the_job_is_given_up_everywhere_but_never_the_default():
    space = small_space()
    history = History(space)
    history.tell([Sample(space.scenarios[0], RING, Status.HUNG), Sample(space.scenarios[0], DEFAULT, Status.CRASHED)])
    assert all(RING not in history.candidates(scenario) for scenario in space.scenarios)
    assert [DEFAULT in history.candidates(scenario) for scenario in space.scenarios[:2]] == [False, True]


def test_repeated_measurements_of_a_pair_count_by_their_median():
    space = small_space()
    history = History(space)
    scenario = space.scenarios[0]
    for launch, time_s in enumerate((1e-6, 5e-6, 2e-6)):
        history.tell([Sample(scenario, DEFAULT, Status.OK, (time_s,), launch=launch)])
    assert history.times() == {(scenario, DEFAULT): 2e-6}


def test_parameters_tell_choices_of_one_algorithm_apart():
    few, many = Choice("tree", (("k", 2),)), Choice("tree", (("k", 64),))
    scenarios = tuple(Scenario("bcast", nodes, 1, 2**power) for nodes in (2, 4, 8) for power in range(0, 20, 4))
    space = Space("bcast", scenarios, lambda _: (few, many))
    learner = ForestLearner(space, 0)
    for scenario in scenarios:
        learner.tell([Sample(scenario, few, Status.OK, (1e-6,)), Sample(scenario, many, Status.OK, (3e-6,))])
    log_time = learner.model().predict([(scenarios[3], few), (scenarios[3], many)]).log_time
    assert log_time[1] - log_time[0] > 0.9
