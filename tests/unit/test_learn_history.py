"""What a learner remembers of samples: failures, and the median of what was measured again."""

from colltune.core.choice import DEFAULT
from colltune.core.sample import Sample, Status
from colltune.learn.told import History
from colltune_study.testing import RING, TREE, small_space


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
