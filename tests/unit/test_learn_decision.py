"""The decision learner: its processes, what it measures first, what it leaves out, what that gains, when it stops."""

from collections import Counter, defaultdict
from copy import copy
from random import Random

import numpy as np
import pytest
from scipy.optimize import check_grad

from colltune.core.medians import medians_of
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Point, Space
from colltune.distill.selection import Selection
from colltune.learn import decision_model
from colltune.learn.decision import DecisionLearner, DecisionSettings
from colltune.learn.decision_model import expected_gains
from colltune.learn.gaussian import PRIOR_MEAN, _objective, _Stack, kernel, kernel_diagonal, rough_variance
from colltune.learn.history import History
from colltune.learn.posterior import MEASURED_SD, Observations, Posterior
from colltune.learn.scenario_columns import scenario_columns
from colltune.learn.selection_uncertainty import SURPRISE, TAIL, PairwiseComparisons, normal_loss
from colltune.search.campaign import MeasuredModel
from colltune_study.testing import RING, TREE, drive, legal, mean_slowdown, measured, small_space


def drawn_groups(random, *counts):
    return [(random.uniform(0, 12, (n, 3)), random.normal(size=n), np.full(n, 4e-4)) for n in counts]


def test_the_gradient_is_that_of_the_objective():
    random = np.random.default_rng(0)
    stack = _Stack.of(drawn_groups(random, 4, 9, 1))
    theta = PRIOR_MEAN + random.normal(0, 0.2, 7)
    assert check_grad(lambda t: _objective(t, stack)[0], lambda t: _objective(t, stack)[1], theta) < 1e-3


def test_filling_up_adds_nothing_to_the_objective():
    groups = drawn_groups(np.random.default_rng(1), 3, 7)
    alone = sum(_objective(PRIOR_MEAN, _Stack.of([group]))[0] for group in groups)
    assert _objective(PRIOR_MEAN, _Stack.of(groups))[0] == pytest.approx(alone)


def test_the_kernel_is_a_covariance():
    z = np.random.default_rng(2).uniform(0, 12, (30, 3))
    covariance = kernel(PRIOR_MEAN, z, z)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    np.testing.assert_allclose(np.diag(covariance), kernel_diagonal(PRIOR_MEAN, z))


def posterior_of(rows: list[int], times: list[float]) -> tuple[Posterior, np.ndarray]:
    scenarios = [Scenario("bcast", 2, 1, 2**power) for power in range(0, 20, 2)]
    z = scenario_columns(scenarios)
    seen = Observations.of(z[rows], rows, [0] * len(rows), times)
    return Posterior(z, 1, seen, PRIOR_MEAN, 3.0), z


def copied(posterior: Posterior) -> Posterior:
    """A copy whose updates do not change this one."""
    other = copy(posterior)
    other.mean, other.variance, other._roots = posterior.mean.copy(), posterior.variance.copy(), [*posterior._roots]
    return other


def test_updating_by_one_pair_equals_believing_anew_where_the_trend_is_the_same():
    """The trend and the scale are found anew only now and then, so the same process is compared with and without."""
    posterior, z = posterior_of([0, 4, 8], [1e-6, 3e-6, 9e-5])
    after = copied(posterior)
    after.update(6, 0, float(np.log(2e-5)), MEASURED_SD**2)
    process = posterior._processes[0]
    covariance = process.scale * (kernel(PRIOR_MEAN, z, z) + rough_variance(PRIOR_MEAN) * np.eye(len(z)))
    rows = np.array([0, 4, 8, 6])
    noise = np.diag([process.scale * MEASURED_SD**2] * 3 + [MEASURED_SD**2])
    gain = covariance[:, rows] @ np.linalg.inv(covariance[np.ix_(rows, rows)] + noise)
    trend = posterior._trend.at(z)
    expected = trend + gain @ (np.log([1e-6, 3e-6, 9e-5, 2e-5]) - trend[rows])
    np.testing.assert_allclose(after.mean[:, 0], expected, atol=1e-8)
    assert posterior.mean[6, 0] != after.mean[6, 0]  # the copy is on its own


def test_a_measured_pair_is_known_and_far_ones_less_so():
    posterior, _ = posterior_of([0, 1, 2], [1e-6, 1.1e-6, 1.2e-6])
    deviation = np.sqrt(posterior.variance[:, 0])
    assert deviation[1] < 0.03
    assert np.all(np.diff(deviation[3:]) > 0)


def test_a_choice_that_surprises_is_believed_less():
    calm, _ = posterior_of([0, 1, 2, 3], [1e-6, 1.1e-6, 1.2e-6, 1.3e-6])
    wild, _ = posterior_of([0, 1, 2, 3], [1e-6, 9e-6, 1e-6, 9e-6])
    assert wild._processes[0].scale > calm._processes[0].scale == 1.0


def test_the_expected_loss_by_hand():
    assert normal_loss(np.array([0.0]), np.array([1.0]))[0] == pytest.approx(1 / np.sqrt(2 * np.pi))
    draws = np.random.default_rng(3).normal(-0.5, 1.0, 400_000)
    assert normal_loss(np.array([0.5]), np.array([1.0]))[0] == pytest.approx(np.maximum(draws, 0).mean(), rel=0.01)
    assert normal_loss(np.array([9.0]), np.array([1.0]))[0] == 0.0


def tune(learner: DecisionLearner, most: int = 10_000) -> list[tuple[Scenario, Choice]]:
    """Until it stops by itself."""
    pairs: list[tuple[Scenario, Choice]] = []
    while len(pairs) < most and learner.should_stop() is None:
        [point] = learner.ask(1)
        learner.tell(measured(point, len(pairs)))
        pairs += [(point.scenario, choice) for choice in point.choices]
    return pairs


def test_it_stops_by_itself_early_and_right():
    space = small_space()
    learner = DecisionLearner(space, 0)
    pairs = tune(learner)
    # The default is as fast as the tree or the ring everywhere, so many of these pairs are ties.
    assert len(set(pairs)) < 0.70 * len(list(space.pairs()))
    assert mean_slowdown(learner, space) <= 1.03
    assert "expected to lose" in learner.should_stop()


def test_cheap_measurements_come_first():
    space = small_space()
    pairs = tune(DecisionLearner(space, 0), most=16)
    sizes = [scenario.size_bytes for scenario, _ in pairs[4:]]  # after the middle of the space
    assert len({scenario for scenario, _ in pairs[:4]}) == 1
    assert np.median(sizes) <= np.median([scenario.size_bytes for scenario in space.scenarios])


def test_a_dominated_choice_is_dropped():
    """A choice a hundred times slower everywhere is tried a few times and left alone; the space goes on without it."""
    slow, fast, other = Choice("slow"), Choice("fast"), Choice("other")
    scenarios = tuple(Scenario("bcast", n, 1, 2**p) for n in (2, 4, 8, 16) for p in range(0, 18, 2))
    space = Space("bcast", scenarios, lambda _: (slow, fast, other))
    learner = DecisionLearner(space, 0)
    asked = []
    for _ in range(50):
        [point] = learner.ask(1)
        [choice] = point.choices
        size, nodes = point.scenario.size_bytes, point.scenario.nodes
        base = 1e-6 * nodes + 1e-9 * size
        time_s = {slow: 100 * base, fast: base, other: 1e-6 * nodes**1.3 + 0.7e-9 * size}[choice]
        learner.tell([Sample(point.scenario, choice, Status.OK, (time_s,))])
        asked.append(choice)
    assert asked.count(slow) <= 10


def test_an_algorithm_that_is_bad_wherever_it_was_cheap_is_tried_at_the_far_end():
    """By the posterior alone it would never be tried there: `far_share` pays for it."""
    late = Choice("late")  # a latency of 1 ms, and ten times the bandwidth
    scenarios = tuple(Scenario("bcast", n, 1, 2**p) for n in (2, 4, 8) for p in range(0, 24, 2))
    space = Space("bcast", scenarios, lambda _: (DEFAULT, late))
    learner = DecisionLearner(space, 0)
    for _ in range(52):
        [point] = learner.ask(1)
        size = point.scenario.size_bytes
        time_s = 1e-3 + 1e-10 * size if point.choices == (late,) else 1e-6 * point.scenario.nodes + 1e-9 * size
        learner.tell([Sample(point.scenario, point.choices[0], Status.OK, (time_s,))])
    largest = scenarios[-1]
    log_time = learner.model().predict([(largest, DEFAULT), (largest, late)]).log_time
    assert log_time[1] < log_time[0]


def test_a_space_too_large_to_look_at_at_once_is_worked_through_in_parts():
    space = small_space()
    points = drive(DecisionLearner(space, 0, DecisionSettings(scenarios=10)), 10_000)
    assert {(point.scenario, choice) for point in points for choice in point.choices} == set(space.pairs())


def test_what_is_measured_where_nobody_looked_at_the_default_is_measured_beside_it() -> None:
    space = Space("bcast", small_space().scenarios, lambda _scenario: (DEFAULT, RING, TREE))
    firsts = {point.scenario: point for point in reversed(list(drive(DecisionLearner(space, 0), 40)))}
    assert len(firsts) > 5
    assert {point.choices[0] for point in firsts.values()} == {DEFAULT}


def test_a_second_look_at_a_pair_is_for_the_repetitions_that_the_first_left_however_much_is_known():
    shapes = [(nodes, ppn) for nodes in (1, 2, 3, 4, 6, 8) for ppn in (2, 4)]
    scenarios = tuple(Scenario("bcast", *shape, 8 << power) for shape in shapes for power in range(0, 18, 2))
    asked: defaultdict[tuple[Scenario, Choice], list[int]] = defaultdict(list)
    for point in drive(DecisionLearner(Space("bcast", scenarios, legal), 0), 10_000):
        asked[point.scenario, point.choices[0]].append(point.repetitions)
    twice = [looks for looks in asked.values() if len(looks) > 1]
    assert len(asked) > 300
    assert twice
    # What took all of them at its first look is looked at again whole, to tell what a look has of its own.
    full = DecisionSettings().repetitions
    assert all(len(looks) == 2 and (looks[0] == full or sum(looks) == full) for looks in twice)


@pytest.mark.parametrize(("look_sd", "least", "most"), [(0.0, 0.0, 0.0), (0.25, 0.15, 0.4)])
def test_what_looks_at_one_pair_differ_by_is_learnt_and_weighs_what_was_measured(
    look_sd: float, least: float, most: float
) -> None:
    """Each look moves all of its repetitions; the tree is 1.2 times as fast as the ring, and everywhere alike."""
    scenarios = tuple(Scenario("bcast", 8, 2, 1 << power) for power in range(16))
    space = Space("bcast", scenarios, lambda _scenario: (DEFAULT, RING, TREE))
    wrong = Counter[str]()
    for seed in range(8):
        random, samples = np.random.default_rng(seed), []
        learner = DecisionLearner(space, seed)
        while len(samples) < 60 and (points := learner.ask(1)):
            [point] = points
            time_s = (1e-4 if point.choices[0] == TREE else 1.2e-4) * np.exp(random.normal(0.0, look_sd))
            times_s = tuple(float(time_s * factor) for factor in (1.0, 0.99, 1.02))
            samples.append(Sample(point.scenario, point.choices[0], Status.OK, times_s, group=len(samples)))
            learner.tell(samples[-1:])
        model = learner.model()
        assert least <= model.predict([(scenarios[0], TREE)]).measured_sd <= most
        medians = medians_of(samples)
        for name, one in (("model", model), ("measured", MeasuredModel(medians))):
            selection = Selection(one, space, medians)
            wrong[name] += sum(selection.best(scenario) != TREE for scenario in scenarios)
    assert wrong["model"] <= 0.5 * wrong["measured"]


def test_repeated_samples_of_a_pair_change_the_posterior():
    space = small_space()
    learner = DecisionLearner(space, 0)
    pair = (space.scenarios[0], DEFAULT)
    learner.tell(measured(Point(pair[0], (DEFAULT,))))
    first = learner.model().predict([pair]).log_time[0]
    learner.tell([Sample(*pair, Status.OK, (1e-3,), launch=1), Sample(*pair, Status.OK, (1e-3,), launch=2)])
    assert learner.model().predict([pair]).log_time[0] > first + 2


SCENARIOS = [Scenario("bcast", nodes, 4, 2**power) for nodes in (2, 4, 8) for power in range(2, 20)]
CHOICES = 3
NOISE = 4e-4


def every_pair() -> tuple[Posterior, PairwiseComparisons, np.ndarray, np.ndarray, np.ndarray]:
    """The posterior of three choices that were each measured at a few scenarios, as it is of all pairs.

    The scenario and choice of each pair, and the noise of a measurement of it.
    """
    random, z, count = np.random.default_rng(5), scenario_columns(SCENARIOS), len(SCENARIOS)
    rows, times = random.choice(count, 12, replace=False), np.exp(random.normal(-12.0, 0.3, 12))
    seen = Observations.of(z[rows], rows, np.arange(12) % CHOICES, times)
    fitted = Posterior(z, CHOICES, seen, PRIOR_MEAN, 3.0)
    pairwise = PairwiseComparisons.of(fitted.mean, fitted.variance, np.ones(fitted.mean.shape, dtype=bool))
    places, numbers = np.repeat(np.arange(count), CHOICES), np.tile(np.arange(CHOICES), count)
    return fitted, pairwise, places, numbers, np.full(len(places), NOISE)


def test_all_scenarios_are_summed_where_that_is_cheap() -> None:
    fitted, pairwise, places, numbers, noise = every_pair()
    covariance = np.stack([fitted.covariance(n, np.array([row]))[0] for row, n in zip(places, numbers, strict=True)])
    own = covariance[np.arange(len(places)), places]
    expected = pairwise.gains(np.abs(covariance) / np.sqrt(own + noise)[:, None], numbers)
    np.testing.assert_allclose(expected_gains(fitted, pairwise, places, numbers, noise), expected, rtol=1e-9)


def test_the_gain_is_what_results_of_the_measurement_would_save_on_average() -> None:
    """Results are drawn, and the selection is made anew from each; a share of the surprises is wider."""
    (fitted, pairwise, *_), random = every_pair(), np.random.default_rng(1)
    row, number = 30, 1
    deviation = np.sqrt(fitted.variance[row, number] + NOISE)
    before = fitted.mean.min(axis=1).sum()

    def saved(width: float) -> float:
        savings = []
        for result in random.normal(fitted.mean[row, number], width * deviation, 4000):
            after = copied(fitted)
            after.update(row, number, float(result), NOISE)
            savings.append(before - after.mean.min(axis=1).sum())
        return float(np.mean(savings))

    [gain] = expected_gains(fitted, pairwise, np.array([row]), np.array([number]), np.array([NOISE]))
    assert gain == pytest.approx(saved(1.0) + SURPRISE * saved(TAIL), rel=0.1)


def test_a_sample_of_the_scenarios_ranks_pairs_about_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    every = every_pair()
    exact = expected_gains(*every)
    monkeypatch.setattr(decision_model, "_CELLS", len(exact) * len(SCENARIOS) // 3)
    sampled = expected_gains(*every)
    assert not np.allclose(sampled, exact, rtol=1e-3)
    assert np.corrcoef(sampled, exact)[0, 1] > 0.9
    assert sampled.sum() == pytest.approx(exact.sum(), rel=0.1)


def test_a_learner_of_more_scenarios_than_it_looks_at_says_something_of_all() -> None:
    shapes = [(nodes, ppn) for nodes in range(1, 9) for ppn in (2, 4, 8)]
    scenarios = tuple(Scenario("bcast", *shape, 2**p) for shape in shapes for p in range(20))
    space = Space("bcast", scenarios, legal)
    learner = DecisionLearner(space, 1)
    for group, scenario in enumerate(scenarios[::40]):
        learner.tell(measured(Point(scenario, space.choices(scenario)), group))
    found = learner.expected_gain([Point(scenario, space.choices(scenario)) for scenario in scenarios])
    assert found.shape == (480,)
    assert np.isfinite(found).all()
    assert (found[::40] == 0.0).all()
    assert (np.delete(found, np.arange(0, 480, 40)) > 0.0).all()


def test_what_may_be_asked_for_is_what_was_told_leaves_however_it_came():
    """Pending, measured in parts, failed and given up everywhere, in any order."""
    space, random = small_space(), Random(3)
    learner, history = DecisionLearner(space, 0), History(space)
    pending: set[tuple[Scenario, Choice]] = set()
    for step in range(120):
        pair = random.choice(list(space.pairs()))
        if random.random() < 0.3:
            learner.tell_pending(Point(pair[0], (pair[1],)))
            pending.add(pair)
        else:
            [status] = random.choices([Status.OK, Status.INAPPLICABLE, Status.HUNG], [30, 3, 1 if step > 60 else 0])
            sample = Sample(*pair, status, (1e-6,) * random.choice((3, 17)) if status is Status.OK else (), launch=step)
            learner.tell([sample])
            history.tell([sample])
            pending.discard(pair)
        for row, scenario in enumerate(space.scenarios):
            candidates = {choice for choice in space.choices(scenario) if not history.excluded(scenario, choice)}
            for number, choice in enumerate(space.all_choices):
                samples = history.samples_of((scenario, choice))
                measured_enough = len(samples) > 1 or sum(len(sample.times_s) for sample in samples) >= 20
                free = choice in candidates and (scenario, choice) not in pending and not measured_enough
                assert learner._free[row, number] == free, (step, scenario, choice)


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
    assert all(history.excluded(scenario, RING) for scenario in space.scenarios)
    assert [history.excluded(scenario, DEFAULT) for scenario in space.scenarios[:2]] == [True, False]


def test_repeated_measurements_of_a_pair_count_by_their_median():
    space = small_space()
    history = History(space)
    scenario = space.scenarios[0]
    for launch, time_s in enumerate((1e-6, 5e-6, 2e-6)):
        history.tell([Sample(scenario, DEFAULT, Status.OK, (time_s,), launch=launch)])
    assert history.times() == {(scenario, DEFAULT): 2e-6}
