"""A machine that no source has seen: what to measure of it, and what a few measurements say of the rest."""

import numpy as np
import pytest
from scipy.stats import t as student

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.learn.noise import cautious_sd
from colltune.predict.calibration import LOSS, MOST_PROBABLE, Calibration, probability_of_loss
from colltune.predict.cost import TERMS, terms
from colltune.predict.pair_kernel import PRIOR_THETA, PairKernel
from colltune.predict.transfer import TransferPrior
from colltune_study.training.pair_kernel_fit import fit_pair_theta, studies_of, study

CHOICES = tuple(Choice(name) for name in ("recursive_doubling", "ring", "rabenseifner", "recexch"))
SCENARIOS = tuple(Scenario("allreduce", nodes, 4, 1 << size) for nodes in (4, 16) for size in range(4, 25, 2))
PAIRS = [(scenario, choice) for scenario in SCENARIOS for choice in CHOICES]


def table(latency_s: float, byte_s: float, seed: int) -> dict:
    """Times of a machine: a cost model with these constants, and what no model knows, by choice and by pair."""
    values = np.zeros(len(TERMS))
    values[TERMS.index("call")] = 1e-6
    values[TERMS.index("network_rounds")] = latency_s
    values[TERMS.index("node_bytes")] = byte_s
    values[TERMS.index("reduced_bytes")] = byte_s
    random = np.random.default_rng(seed)
    own = dict(zip(CHOICES, random.normal(0.0, 0.15, len(CHOICES)), strict=True))
    odd = random.normal(0.0, 0.03, len(PAIRS))
    seconds = terms(PAIRS) @ values * np.exp([own[choice] for _, choice in PAIRS] + odd)
    return dict(zip(PAIRS, seconds.tolist(), strict=True))


SOURCES = (table(2e-6, 1e-10, 1), table(1e-6, 4e-10, 2))


def opened(pairs: list = PAIRS, seed: int = 0) -> Calibration:
    prior = TransferPrior(SOURCES, CHOICES)
    assert prior.constants is not None
    return Calibration(pairs, prior, prior.constants, PairKernel(PRIOR_THETA, prior.constants.values), seed)


def cost(time_s: np.ndarray) -> np.ndarray:
    return 1e-3 + 10.0 * time_s


def calibrated(times: dict, count: int = 24, left_s: float = 10.0) -> Calibration:
    known = opened()
    while len(known.told) < count:
        proposal = known.ask(cost, left_s, count - len(known.told))
        if proposal is None:
            break
        for pair in proposal.pairs:
            known.tell(pair, times[pair])
    return known


def slowdown(times: dict, known: Calibration) -> float:
    said = known.predict(PAIRS).log_time.reshape(len(SCENARIOS), -1)
    here = np.array(list(times.values())).reshape(said.shape)
    return float((here[np.arange(len(here)), said.argmin(axis=1)] / here.min(axis=1)).mean())


def test_the_probability_of_a_loss_is_the_tail_of_a_student_t() -> None:
    mean, std = np.linspace(-8.0, 8.0, 65), np.full(65, 0.2)
    expected = student.sf((np.log1p(LOSS) - mean) / std, 3.0)
    assert probability_of_loss(mean, std) == pytest.approx(expected, rel=1e-9)


def test_measurements_of_a_machine_help_more_than_they_harm() -> None:
    """Held-out machines whose constants are unlike the sources': no worse than the prior in the mean, and close."""
    machines = [table(latency_s, byte_s, seed) for seed, latency_s, byte_s in ((5, 8e-6, 5e-11), (6, 5e-7, 2e-9))]
    before = np.mean([slowdown(times, opened()) for times in machines])
    after = np.mean([slowdown(times, calibrated(times)) for times in machines])
    assert before > 1.03
    assert after < 0.5 * before + 0.5


def test_a_new_scenario_is_looked_at_by_a_difference() -> None:
    proposal = opened().ask(cost, 10.0)
    assert proposal is not None
    assert len(proposal.pairs) == 2
    assert len({scenario for scenario, _ in proposal.pairs}) == 1
    assert proposal.value > 0.0


def test_measurements_are_spread_over_sizes_and_shapes() -> None:
    times = table(8e-6, 5e-11, 5)
    seen = {scenario for scenario, _ in calibrated(times).told}
    assert {scenario.nodes for scenario in seen} == {4, 16}
    assert max(s.size_bytes for s in seen) > 256 * min(s.size_bytes for s in seen)


def test_what_is_not_affordable_is_not_asked_for() -> None:
    known = opened()
    proposal = known.ask(cost, 0.01)
    assert proposal is not None
    assert cost(known.expected_s(proposal.pairs)).sum() <= 0.25 * 0.01
    assert known.ask(cost, 1e-3) is None
    assert known.ask(cost, 10.0, 0) is None
    one = known.ask(cost, 10.0, 1)
    assert one is not None
    assert len(one.pairs) == 1


def test_the_posterior_on_the_grid_is_that_of_all_observations_at_once() -> None:
    times = table(8e-6, 5e-11, 5)
    known = calibrated(times, 6)
    ((mean, covariance),) = known.posteriors([PAIRS])
    assert mean == pytest.approx(np.log(known.expected_s(PAIRS)) - 0.5 * np.sqrt(np.diag(covariance)), abs=1e-6)
    told = [PAIRS.index(pair) for pair in known.told]
    assert np.sqrt(np.diag(covariance)[told]).max() < 0.031
    assert mean[told] == pytest.approx([np.log(times[PAIRS[row]]) for row in told], abs=0.05)


def test_nothing_told_is_the_prior_itself() -> None:
    prior = TransferPrior(SOURCES, CHOICES)
    assert opened().predict(PAIRS).log_time == pytest.approx(prior.predict(PAIRS).log_time)


def test_a_choice_against_the_default_is_known_once_both_were_measured() -> None:
    times = table(8e-6, 5e-11, 5)
    scenario = SCENARIOS[0]
    known = opened([*PAIRS, (scenario, DEFAULT)])
    group = (scenario, DEFAULT, CHOICES)
    ((_, unknown_sd),) = known.against([group])
    known.tell((scenario, DEFAULT), 2.0 * times[scenario, CHOICES[0]])
    known.tell((scenario, CHOICES[0]), times[scenario, CHOICES[0]])
    ((ratio, sd),) = known.against([group])
    assert ratio[0] == pytest.approx(np.log(0.5), abs=0.05)
    assert sd[0] < 0.06 < 0.3 < unknown_sd[0]


def test_with_a_default_what_makes_a_gain_over_it_sure_is_measured() -> None:
    times = table(8e-6, 5e-11, 5)
    default = CHOICES[0]
    prior = TransferPrior(SOURCES, CHOICES)
    assert prior.constants is not None
    kernel = PairKernel(PRIOR_THETA, prior.constants.values)
    known = Calibration(PAIRS, prior, prior.constants, kernel, defaults=dict.fromkeys(SCENARIOS, default))
    first = known.ask(cost, 10.0)
    assert first is not None
    assert first.pairs[0] == (first.pairs[1][0], default)
    while len(known.told) < 16:
        proposal = known.ask(cost, 10.0)
        assert proposal is not None
        for pair in proposal.pairs:
            known.tell(pair, times[pair])
    sure = {}
    groups = [(scenario, default, CHOICES[1:]) for scenario in SCENARIOS]
    for (scenario, _, choices), (mean, std) in zip(groups, known.against(groups), strict=True):
        for choice, loss in zip(choices, probability_of_loss(mean, std), strict=True):
            if loss < MOST_PROBABLE:
                sure[scenario, choice] = times[scenario, choice] / times[scenario, default]
    assert len(sure) >= 8
    assert max(sure.values()) < 1.0 + LOSS


def test_a_pair_off_the_grid_cannot_be_told() -> None:
    with pytest.raises(KeyError):
        opened().tell((Scenario("allreduce", 2, 1, 8), CHOICES[0]), 1e-6)
    known = opened()
    known.tell(PAIRS[0], 1e-6)
    with pytest.raises(ValueError, match="told before"):
        known.tell(PAIRS[0], 1e-6)


def test_a_corrected_time_is_in_what_is_predicted() -> None:
    group = (SCENARIOS[0], CHOICES[1], CHOICES[:1])
    known = opened()
    for choice, time_s in zip(CHOICES[:2], (1e-5, 1.0), strict=True):
        known.tell((SCENARIOS[0], choice), time_s)
    ((disturbed, _),) = known.against([group])
    known.correct((SCENARIOS[0], CHOICES[1]), 1.1e-5, 0.03)
    ((ratio, sd),) = known.against([group])
    assert disturbed[0] < -5.0
    assert ratio[0] == pytest.approx(np.log(1.0 / 1.1), abs=0.05)
    assert sd[0] < 0.1
    known.correct((SCENARIOS[0], CHOICES[1]), 1.1e-5, 10.0)
    ((_, unknown),) = known.against([group])
    assert unknown[0] > 0.2


def test_what_was_not_to_be_expected_is_told_apart() -> None:
    known = opened()
    (usual,) = known.expected_s(PAIRS[:1])
    assert known.excess(PAIRS[0], float(usual)) == 0.0
    assert known.excess(PAIRS[0], 1000.0 * float(usual)) > 2.0


def test_what_cannot_be_measured_is_not_asked_for_again() -> None:
    known = opened(PAIRS[:8])
    first = known.ask(cost, 10.0)
    assert first is not None
    known.leave_out(first.pairs)
    for _ in range(6):
        proposal = known.ask(cost, 10.0, 1)
        assert proposal is not None
        assert proposal.pairs[0] not in first.pairs
        known.leave_out(proposal.pairs)
    assert known.ask(cost, 10.0) is None


def test_the_probability_of_a_loss() -> None:
    """Even at exactly the loss that counts; tails are longer than a normal distribution's."""
    mean = np.log1p(LOSS) + np.array([0.0, -0.25, 0.25])
    loss = probability_of_loss(mean, np.full(3, 0.1))
    assert loss[0] == pytest.approx(0.5)
    assert 0.01 < loss[1] < 0.2
    assert loss[1] + loss[2] == pytest.approx(1.0)


def test_the_covariance_is_one() -> None:
    kernel = PairKernel(PRIOR_THETA, np.full(len(TERMS), 1e-9))
    columns = kernel.columns([*PAIRS[:20], (SCENARIOS[0], DEFAULT)])
    covariance = kernel.covariance(columns, columns)
    assert covariance == pytest.approx(covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    # Choices of one scenario share its level: their ratio is better known than either time.
    apart = covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    assert apart < 0.5 * covariance[0, 0]


def test_what_posts_more_at_once_than_was_borne_is_less_certain() -> None:
    scenario = Scenario("alltoall", 32, 64, 8)
    pairs = [(scenario, Choice("node_aware_nonblocking")), (scenario, Choice("node_aware_pairwise"))]
    spread = []
    for bearable in (np.inf, 100.0):
        kernel = PairKernel(PRIOR_THETA, np.full(len(TERMS), 1e-9), bearable)
        columns = kernel.columns(pairs)
        spread.append(np.diag(kernel.covariance(columns, columns)))
    assert spread[1][0] > spread[0][0] + 1.0
    assert spread[1][1] == pytest.approx(spread[0][1])


def test_hyperparameters_are_fitted_to_what_priors_leave() -> None:
    tables = {"allreduce": {"a": SOURCES[0], "b": SOURCES[1]}, "bcast": {"a": SOURCES[0]}}
    studies = studies_of(tables)
    assert len(studies) == 2
    theta = fit_pair_theta(studies, iterations=3)
    assert theta.shape == PRIOR_THETA.shape
    assert not np.allclose(theta, PRIOR_THETA)
    assert fit_pair_theta([]) == pytest.approx(PRIOR_THETA)
    assert study(SOURCES[0], [], 0) is None


def test_a_median_of_disturbed_calls_says_little() -> None:
    scenario, choice = PAIRS[0]
    quiet = Sample(scenario, choice, Status.OK, (1.0e-5, 1.02e-5, 1.03e-5, 1.05e-5, 1.1e-5))
    disturbed = Sample(scenario, choice, Status.OK, (1.0e-5, 4e-3, 4.1e-3, 4.2e-3, 4.3e-3))
    assert cautious_sd(quiet) < 0.06
    assert cautious_sd(disturbed) > 3.0
