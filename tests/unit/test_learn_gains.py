"""What a measurement is expected to gain: against a simulation of its result, and from a sample of the scenarios."""

import numpy as np
import pytest

from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.learn import gains
from colltune.learn.belief import Belief, observations
from colltune.learn.decision import DecisionLearner
from colltune.learn.gains import expected_gains
from colltune.learn.gaussian import PRIOR_MEAN
from colltune.learn.scenario_columns import scenario_columns
from colltune.learn.selection_uncertainty import SURPRISE, TAIL, Duels
from colltune_study.testing import legal, measured

SCENARIOS = [Scenario("bcast", nodes, 4, 2**power) for nodes in (2, 4, 8) for power in range(2, 20)]
CHOICES = 3
NOISE = 4e-4


def belief() -> Belief:
    """Of three choices, each measured at a few scenarios."""
    random, z = np.random.default_rng(5), scenario_columns(SCENARIOS)
    rows = random.choice(len(SCENARIOS), 12, replace=False)
    numbers = np.arange(12) % CHOICES
    times = np.exp(random.normal(-12.0, 0.3, 12))
    return Belief(z, CHOICES, observations(z[rows], rows, numbers, times), PRIOR_MEAN, 3.0)


def every_pair() -> tuple[np.ndarray, np.ndarray]:
    count = len(SCENARIOS)
    return np.repeat(np.arange(count), CHOICES), np.tile(np.arange(CHOICES), count)


def test_all_scenarios_are_summed_where_that_is_cheap() -> None:
    one = belief()
    duels = Duels.of(one.mean, one.variance, np.ones(one.mean.shape, dtype=bool))
    places, numbers = every_pair()
    noise = np.full(len(places), NOISE)
    covariance = np.stack([one.covariance(n, np.array([row]))[0] for row, n in zip(places, numbers, strict=True)])
    own = covariance[np.arange(len(places)), places]
    expected = duels.gains(np.abs(covariance) / np.sqrt(own + noise)[:, None], numbers)
    np.testing.assert_allclose(expected_gains(one, duels, places, numbers, noise), expected, rtol=1e-9)


def test_the_gain_is_what_results_of_the_measurement_would_save_on_average() -> None:
    """Results are drawn, and the selection is made anew from each; a share of the surprises is wider."""
    one, random = belief(), np.random.default_rng(1)
    duels = Duels.of(one.mean, one.variance, np.ones(one.mean.shape, dtype=bool))
    row, number = 30, 1
    deviation = np.sqrt(one.variance[row, number] + NOISE)
    before = one.mean.min(axis=1).sum()

    def saved(width: float) -> float:
        found = []
        for result in random.normal(one.mean[row, number], width * deviation, 4000):
            after = one.copy()
            after.update(row, number, float(result), NOISE)
            found.append(before - after.mean.min(axis=1).sum())
        return float(np.mean(found))

    [gain] = expected_gains(one, duels, np.array([row]), np.array([number]), np.array([NOISE]))
    assert gain == pytest.approx(saved(1.0) + SURPRISE * saved(TAIL), rel=0.1)


def test_a_sample_of_the_scenarios_ranks_pairs_about_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    one = belief()
    duels = Duels.of(one.mean, one.variance, np.ones(one.mean.shape, dtype=bool))
    places, numbers = every_pair()
    noise = np.full(len(places), NOISE)
    exact = expected_gains(one, duels, places, numbers, noise)
    monkeypatch.setattr(gains, "_CELLS", len(places) * len(SCENARIOS) // 3)
    sampled = expected_gains(one, duels, places, numbers, noise)
    assert not np.allclose(sampled, exact, rtol=1e-3)
    assert np.corrcoef(sampled, exact)[0, 1] > 0.9
    assert sampled.sum() == pytest.approx(exact.sum(), rel=0.1)


def test_a_learner_of_more_scenarios_than_it_looks_at_says_something_of_all() -> None:
    scenarios = tuple(
        Scenario("bcast", nodes, ppn, 2**p) for nodes in range(1, 9) for ppn in (2, 4, 8) for p in range(20)
    )
    space = Space("bcast", scenarios, legal)
    learner = DecisionLearner(space, 1)
    for group, scenario in enumerate(scenarios[::40]):
        learner.tell(measured(Point(scenario, space.choices(scenario)), group))
    found = learner.expected_gain([Point(scenario, space.choices(scenario)) for scenario in scenarios])
    assert found.shape == (480,)
    assert np.isfinite(found).all()
    assert (found[::40] == 0.0).all()
    assert (np.delete(found, np.arange(0, 480, 40)) > 0.0).all()
