"""A learner that starts from a prior: it uses one that holds, and finds out one that does not."""

import numpy as np
import pytest

from colltune.core.choice import Choice
from colltune.core.model_answers import Prediction
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.learn.belief import observations
from colltune.learn.decision import DecisionLearner
from colltune.learn.informed import Trust, posteriors, support
from colltune.learn.scenario_columns import scenario_columns
from colltune.predict.transfer import TransferPrior
from colltune.store.grid import Grid
from colltune_study.research.simulate import simulate

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
    assert not made[0]._trust.believed


def test_the_first_measurements_try_the_prior(prior):
    space = grid(times_s()).space
    learner = DecisionLearner(space, 0, prior=prior)
    (first,) = learner.ask(1)
    assert first.scenario.nodes == 2  # cheap: the smallest shape
    assert learner._trust.believed  # until something speaks against it
    assert not DecisionLearner(space, 0)._trust.believed


def seen_of(times, pairs):
    scenarios = [scenario for scenario, _ in pairs]
    numbers = [CHOICES.index(choice) for _, choice in pairs]
    columns = scenario_columns(scenarios)
    return observations(columns, [-1] * len(pairs), numbers, [times[pair] for pair in pairs])


def weights(trust):
    """Of each choice, over what it was before anything was measured."""
    pairs = [(SCENARIOS[-1], choice) for choice in CHOICES]
    return dict(zip(CHOICES, trust.offsets(pairs) / trust.anew().offsets(pairs), strict=True))


def test_a_prior_counts_as_far_as_the_measurements_bear_it_out(prior):
    here = times_s(seed=3)
    some = [(scenario, choice) for scenario in SCENARIOS[::3] for choice in CHOICES]
    for start, more in ((prior, True), (Reversed(prior), False)):
        trust = Trust(start, CHOICES, 0)
        before = trust.believed
        trust.weigh(seen_of(here, some), some, len(CHOICES), 10)
        assert before
        assert trust.believed == more
        assert all((weight > 1.0) == more for weight in weights(trust).values())


def test_a_prior_counts_once_the_measurements_are_likelier_with_it():
    """The log of the ratio, whatever the weight: 0 where a prior says nothing, below 0 where it is wrong."""
    assert support(np.log([[0.4, 0.4, 0.4, 0.4]])) == pytest.approx(0.0)
    assert support(np.log([[0.1, 0.2, 0.4, 0.8], [0.1, 0.2, 0.4, 0.8]])) > 1.0
    assert support(np.log([[0.8, 0.4, 0.2, 0.1]])) < 0.0


def test_an_opposite_prior_has_no_weight_after_the_first_measurements(prior):
    here = times_s(seed=3)
    few = [(scenario, choice) for scenario in SCENARIOS[:2] for choice in CHOICES]
    trust = Trust(Reversed(prior), CHOICES, 0)
    assert trust.offsets(few).any()
    trust.weigh(seen_of(here, few), few, len(CHOICES), 0)
    assert not trust.offsets(few).any()


class WrongAbout:
    """A prior that holds but for one choice."""

    def __init__(self, prior, choice):
        self.prior, self.choice = prior, choice

    def predict(self, pairs):
        said = self.prior.predict(pairs)
        wrong = np.array([choice == self.choice for _, choice in pairs])
        return Prediction(np.where(wrong, 3.0 - said.log_time, said.log_time), said.std)


def test_a_prior_that_is_wrong_about_one_choice_is_given_up_for_that_one(prior):
    here = times_s(seed=3)
    some = [(scenario, choice) for scenario in SCENARIOS[::3] for choice in CHOICES]
    trust = Trust(WrongAbout(prior, CHOICES[1]), CHOICES, 0)
    trust.weigh(seen_of(here, some), some, len(CHOICES), 10)
    found = weights(trust)
    assert found.pop(CHOICES[1]) < 0.5 * min(found.values())


def test_what_a_prior_does_not_know_is_taken_for_the_mean_of_the_others(prior):
    choices = (*CHOICES, Choice("new"))
    offsets = Trust(prior, choices, 0).offsets([(SCENARIOS[25], choice) for choice in choices])
    said = dict(zip(choices, offsets, strict=True))
    assert said[Choice("new")] == 0.0
    assert min(said.values()) < 0.0 < max(said.values())


def test_a_prior_counts_for_less_where_it_knows_less(prior):
    far = Scenario("allreduce", 4096, 64, 1 << 30)
    said = prior.predict([(far, choice) for choice in CHOICES]).log_time
    offset = Trust(prior, CHOICES, 0).offsets([(far, choice) for choice in CHOICES])
    near = prior.predict([(SCENARIOS[25], choice) for choice in CHOICES]).log_time
    known = Trust(prior, CHOICES, 0).offsets([(SCENARIOS[25], choice) for choice in CHOICES])
    assert np.ptp(offset) / np.ptp(said) < 0.5 * np.ptp(known) / np.ptp(near)


def test_without_evidence_every_weight_is_as_likely_as_before():
    posterior, everywhere = posteriors(np.zeros((3, 4)), np.array([True, True, False]))
    np.testing.assert_allclose(posterior, np.tile(everywhere, (3, 1)), atol=1e-6)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


def test_what_most_choices_deserve_is_expected_of_the_next():
    against = np.zeros((6, 4))
    against[:5, 0] = 8.0  # five choices at which the prior failed
    posterior, everywhere = posteriors(against, np.arange(6) < 5)
    assert posterior[:5, 0].min() > 0.99
    assert posterior[5, 0] == pytest.approx(everywhere[0])
    assert everywhere[0] > 0.6
