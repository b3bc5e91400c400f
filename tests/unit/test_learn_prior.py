"""A learner that starts from a prior: it uses one that holds, and finds out one that does not."""

import numpy as np
import pytest

from colltune.core.choice import Choice
from colltune.core.model import Prediction
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.evaluate.grid import Grid
from colltune.evaluate.simulate import simulate
from colltune.learn.decision import DecisionLearner
from colltune.learn.transfer import TransferPrior

CHOICES = tuple(Choice(name) for name in ("tree", "ring", "pairs", "burst"))
SCENARIOS = tuple(Scenario("allreduce", nodes, 1, 4 << k) for nodes in (2, 4, 8, 16, 32) for k in range(0, 20, 2))


def times_s(latency=1.0, bandwidth=1.0, seed=0, choices=CHOICES):
    """{pair: seconds} of a machine with rounds that take 2 us x ``latency``, and bytes 0.1 ns / ``bandwidth``."""
    random = np.random.default_rng(seed)
    found = {}
    for scenario in SCENARIOS:
        rounds, ranks, size = np.log2(scenario.ranks), scenario.ranks, scenario.size_bytes
        cost = {
            "tree": (rounds, 2 * rounds * size),
            "ring": (2 * (ranks - 1), 2 * size),
            "pairs": (2 * rounds, 2.6 * size),
            "burst": (ranks, ranks * size),
        }
        for choice in choices:
            turns, moved = cost[choice.algorithm]
            time_s = 2e-6 * latency * turns + 1e-10 * moved / bandwidth
            found[scenario, choice] = float(time_s * random.lognormal(0.0, 0.02))
    return found


def grid(times) -> Grid:
    table = np.array([[times[scenario, choice] for choice in CHOICES] for scenario in SCENARIOS])
    return Grid("here", "allreduce", SCENARIOS, CHOICES, table, np.full(len(SCENARIOS), np.nan))


class Reversed:
    def __init__(self, prior):
        self.prior = prior

    def predict(self, pairs):
        said = self.prior.predict(pairs)
        return Prediction(-said.log_time, said.std)


@pytest.fixture(scope="module")
def prior():
    return TransferPrior([times_s(0.5, 0.7, 1), times_s(2.0, 1.5, 2)], CHOICES)


def test_the_prior_orders_choices_as_other_machines_do(prior):
    here = times_s(seed=3)
    right = 0
    for scenario in SCENARIOS:
        said = prior.predict([(scenario, choice) for choice in CHOICES]).log_time
        best = min(CHOICES, key=lambda choice: here[scenario, choice])
        right += here[scenario, CHOICES[int(said.argmin())]] <= 1.1 * here[scenario, best]
    assert right >= 0.8 * len(SCENARIOS)


def test_the_prior_says_so_where_it_knows_nothing(prior):
    far = Scenario("allreduce", 4096, 64, 1 << 30)
    near = prior.predict([(SCENARIOS[10], CHOICES[0])])
    away = prior.predict([(far, CHOICES[0])])
    assert away.std[0] > 3 * near.std[0]
    unknown = prior.predict([(SCENARIOS[0], Choice("new"))])
    assert np.isnan(unknown.log_time[0])
    assert np.isinf(unknown.std[0])
    assert TransferPrior([], CHOICES).choices == frozenset()
    alone = {pair: time_s for pair, time_s in times_s().items() if pair[1] == CHOICES[0]}
    assert TransferPrior([alone], CHOICES).choices == frozenset()  # nothing to compare with


def test_the_prior_does_not_depend_on_how_fast_the_others_are():
    slow = {pair: 1000.0 * time_s for pair, time_s in times_s(seed=1).items()}
    pairs = [(scenario, choice) for scenario in SCENARIOS for choice in CHOICES]
    one = TransferPrior([times_s(seed=1)], CHOICES).predict(pairs).log_time
    other = TransferPrior([slow], CHOICES).predict(pairs).log_time
    np.testing.assert_allclose(one, other, atol=0.1)  # equal but for rounding, which moves a split


def test_a_prior_that_holds_saves_measurements(prior):
    here = grid(times_s(seed=3))
    cold = simulate(here, "cold", DecisionLearner, 0)
    warm = simulate(here, "warm", lambda space, seed: DecisionLearner(space, seed, prior=prior), 0)
    assert warm.reach() <= 0.7 * cold.reach()


def test_a_prior_that_is_wrong_is_found_out(prior):
    here = grid(times_s(seed=3))
    made = []

    def make(space: Space, seed: int) -> DecisionLearner:
        made.append(DecisionLearner(space, seed, prior=Reversed(prior)))
        return made[-1]

    run = simulate(here, "wrong", make, 0)
    assert (run.stop or run.steps[-1]).metrics.slowdown <= 1.03
    assert not made[0].prior_holds


def test_the_first_measurements_try_the_prior(prior):
    space = grid(times_s()).space
    learner = DecisionLearner(space, 0, prior=prior)
    (first,) = learner.ask(1)
    assert first.scenario.nodes == 2  # cheap: the smallest shape
    assert learner.prior_holds  # until something speaks against it
    assert not DecisionLearner(space, 0).prior_holds
