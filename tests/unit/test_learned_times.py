"""Times of other machines, learned: they order choices, know what they do not know, and say how far they may be off."""

import numpy as np
import pytest
from scipy.stats import t as student

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.predict.cost import TERMS, kind_of, terms
from colltune.predict.deviation import LOSS, deviations, probability_of_loss
from colltune_study.training.learned_times import learn_times
from colltune_study.training.pair_kernel import PRIOR_THETA, PairKernel, amplitudes
from colltune_study.training.pair_kernel_fit import fit_pair_theta, studies_of, study

CHOICES = tuple(Choice(name) for name in ("recursive_doubling", "ring", "rabenseifner", "recexch"))
SCENARIOS = tuple(Scenario("allreduce", nodes, 4, 1 << size) for nodes in (4, 16) for size in range(4, 25, 2))
PAIRS = [(scenario, choice) for scenario in SCENARIOS for choice in CHOICES]


def table(latency_s: float, byte_s: float, seed: int, choices: tuple[Choice, ...] = CHOICES) -> dict:
    """Times of a machine: a cost model with these constants, and what no model knows, by choice and by pair."""
    values = np.zeros(len(TERMS))
    values[TERMS.index("call")] = 1e-6
    values[TERMS.index("network_rounds")] = latency_s
    values[TERMS.index("node_bytes")] = byte_s
    values[TERMS.index("reduced_bytes")] = byte_s
    random = np.random.default_rng(seed)
    own = dict(zip(choices, random.normal(0.0, 0.03, len(choices)), strict=True))
    pairs = [(scenario, choice) for scenario in SCENARIOS for choice in choices]
    seconds = terms(pairs) @ values * np.exp([own[choice] + random.normal(0.0, 0.03) for _, choice in pairs])
    return dict(zip(pairs, seconds.tolist(), strict=True))


SOURCES = {"a": table(2e-6, 1e-10, 1), "b": table(1e-6, 4e-10, 2)}


def test_choices_are_ordered_as_other_machines_have_them() -> None:
    learned, here = learn_times(SOURCES), table(1.5e-6, 2e-10, 3)
    assert learned is not None
    said = learned.predict(PAIRS).log_time.reshape(len(SCENARIOS), -1)
    times = np.array(list(here.values())).reshape(said.shape)
    slow = times[np.arange(len(times)), said.argmin(axis=1)] / times.min(axis=1)
    assert np.mean(slow <= 1.1) >= 0.8


def test_how_fast_the_others_are_does_not_matter() -> None:
    slow = {name: {pair: 1000.0 * time_s for pair, time_s in times.items()} for name, times in SOURCES.items()}
    (one, other) = (learn_times(some) for some in (SOURCES, slow))
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.predict(PAIRS).log_time, other.predict(PAIRS).log_time, atol=0.1)


def test_an_algorithm_is_known_by_what_it_sends_once_two_clusters_measured_that() -> None:
    assert kind_of("allreduce", Choice("ring_ompi")) == kind_of("allreduce", Choice("ring"))
    assert kind_of("allreduce", Choice("ring")) != kind_of("allreduce", Choice("rabenseifner"))
    learned = learn_times({"a": SOURCES["a"], "b": table(1e-6, 4e-10, 2, CHOICES[2:])})
    assert learned is not None
    scenario = SCENARIOS[3]
    known = {name: learned.knows((scenario, Choice(name))) for name in ("rabenseifner_ompi", "ring", "of_tomorrow")}
    assert known == {"rabenseifner_ompi": True, "ring": False, "of_tomorrow": False}
    assert np.isnan(learned.predict([(scenario, Choice("of_tomorrow")), (scenario, DEFAULT)]).log_time).all()


def test_nothing_is_learned_of_nothing() -> None:
    assert learn_times({}) is None
    alone = {pair: time_s for pair, time_s in SOURCES["a"].items() if pair[1] == CHOICES[0]}
    assert learn_times({"a": alone}) is None  # nothing to compare with
    assert study(SOURCES["a"], {}, 0) is None


def test_each_cluster_may_have_constants_of_its_own() -> None:
    """Of a machine with slow links the ring's few bytes are worth more."""
    said = {}
    for factor in (1.0, 100.0):
        scale = np.where([term == "node_bytes" for term in TERMS], factor, 1.0)
        learned = learn_times(SOURCES, scaled=lambda name, own, s=scale: own[name] if name else s * own["a"])  # type: ignore[misc]
        assert learned is not None
        said[factor] = learned.constants[TERMS.index("node_bytes")]
    assert said[100.0] == pytest.approx(100.0 * said[1.0])


def test_deviations_are_those_of_the_process_that_they_are_fitted_with() -> None:
    """Written out for two choices of one scenario, against the covariance of all pairs; with bursts and without."""
    scenario = Scenario("alltoall", 32, 64, 8)
    some = [
        (scenario, Choice(f"{name}_{way}"))
        for name in ("node_aware", "hierarchical")
        for way in ("nonblocking", "pairwise")
    ]
    values = np.full(len(TERMS), 1e-9)
    for bearable in (np.inf, 100.0):
        kernel = PairKernel(PRIOR_THETA, values, bearable)
        columns = kernel.columns(some)
        covariance = kernel.covariance(columns, columns)
        variance = np.diag(covariance)
        expected = variance[1:] + variance[0] - 2.0 * covariance[0, 1:]
        marks = columns.unborne[1:], np.full(3, columns.unborne[0])
        found = deviations(amplitudes(PRIOR_THETA), values, some[1:], some[:1] * 3, marks)
        assert found == pytest.approx(np.sqrt(expected))


def test_the_probability_of_a_loss_is_the_tail_of_a_student_t() -> None:
    mean, std = np.linspace(-8.0, 8.0, 65), np.full(65, 0.2)
    expected = student.sf((np.log1p(LOSS) - mean) / std, 3.0)
    assert probability_of_loss(mean, std) == pytest.approx(expected, rel=1e-9)


def test_hyperparameters_are_fitted_to_what_is_left_of_others() -> None:
    studies = studies_of({"allreduce": SOURCES, "bcast": {"a": SOURCES["a"]}})
    assert len(studies) == 2
    theta = fit_pair_theta(studies, iterations=3)
    assert theta.shape == PRIOR_THETA.shape
    assert not np.allclose(theta, PRIOR_THETA)
    assert fit_pair_theta([]) == pytest.approx(PRIOR_THETA)
