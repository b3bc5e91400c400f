"""Predictions: costs, messages in flight, times learned of other machines, and when a guess replaces the default."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from colltune.core.proven import Guess
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.predict.bursts import in_flight, posts_at_once
from colltune.predict.cost import RELATIVE_COLUMNS, TERMS, Sent, kind_of, terms
from colltune.predict.deviation import LOSS, deviations, probability_of_loss
from colltune.predict.guesses import MOST_PROBABLE, gain_texts, vetoed
from colltune.predict.model import TimesModel
from colltune_study.research.reliability import draw_reliability, reliability
from colltune_study.training.constants import fit_constants, pooled
from colltune_study.training.learned_times import bearable, learn_times, turn_by_turn
from colltune_study.training.pair_kernel import PRIOR_THETA, PairKernel, amplitudes
from colltune_study.training.pair_kernel_fit import fit_pair_theta, studies_of, study

NAMES = ("recursive_doubling", "ring", "rabenseifner", "recexch")
CHOICES = tuple(Choice(name) for name in NAMES)
SCENARIOS = tuple(
    Scenario("allreduce", nodes, ppn, 1 << size) for nodes in (4, 16) for ppn in (1, 8) for size in range(4, 24, 3)
)
PAIRS = [(scenario, choice) for scenario in SCENARIOS for choice in CHOICES]


def machine(latency_s: float, byte_s: float) -> np.ndarray:
    """The constants of a machine."""
    known = {"call": 1e-6, "network_rounds": latency_s, "local_rounds": 0.3 * latency_s}
    known |= {"node_bytes": byte_s, "reduced_bytes": 0.5 * byte_s}
    return np.array([known.get(term, 0.0) for term in TERMS])


def table(
    latency_s: float, byte_s: float, seed: int = 0, noise: float = 0.03, choices: tuple[Choice, ...] = CHOICES
) -> dict:
    """Times of a machine: a cost model with these constants, and what no model knows, by choice and by pair."""
    random, pairs = np.random.default_rng(seed), [(scenario, choice) for scenario in SCENARIOS for choice in choices]
    own = dict(zip(choices, random.normal(0.0, noise, len(choices)), strict=True))
    unknown = np.exp([own[choice] + random.normal(0.0, noise) for _, choice in pairs])
    return dict(zip(pairs, (terms(pairs) @ machine(latency_s, byte_s) * unknown).tolist(), strict=True))


def test_the_constants_of_a_machine_are_found_again() -> None:
    found = fit_constants(table(2e-6, 1e-10))
    assert found is not None
    assert terms(PAIRS) @ found == pytest.approx(terms(PAIRS) @ machine(2e-6, 1e-10), rel=0.1)
    both = [fit_constants(table(latency, 1e-10, noise=0.0)) for latency in (1e-6, 4e-6)]
    mean = pooled([one for one in both if one is not None])
    assert 1e-6 < mean[TERMS.index("network_rounds")] < 4e-6


def test_nothing_is_said_of_what_nobody_described() -> None:
    unknown = [(SCENARIOS[0], Choice("of_tomorrow")), (SCENARIOS[0], DEFAULT)]
    unknown.append((Scenario("allreduce", 4096, 128, 64), CHOICES[0]))  # more ranks than there is time to go through
    assert np.isnan(terms(unknown)).all()
    assert (Sent.of(unknown).relative() == -1.0).all()
    assert (Sent.of(unknown).relative_seconds(machine(1e-6, 1e-10)) == -1.0).all()
    assert fit_constants(dict.fromkeys(unknown, 1.0)) is None


def test_columns_do_not_depend_on_what_else_is_asked() -> None:
    together, alone, values = Sent.of(PAIRS), Sent.of([PAIRS[5]]), machine(1e-6, 1e-10)
    assert together.relative().shape == (len(PAIRS), RELATIVE_COLUMNS)
    assert np.array_equal(together.relative()[5], alone.relative()[0])
    assert together.relative_seconds(values)[5] == alone.relative_seconds(values)[0]


def test_an_algorithm_that_no_source_measured_is_known_by_what_it_sends() -> None:
    others = tuple(choice for choice in CHOICES if choice != Choice("ring"))
    prior = learn_times({"a": table(2e-6, 1e-10, choices=others), "b": table(4e-6, 2e-10, choices=others)})
    assert not prior.knows([(SCENARIOS[0], Choice("ring"))]).any()
    small, large = (Scenario("allreduce", 16, 8, size) for size in (64, 1 << 22))
    said = {s: prior.predict([(s, choice) for choice in CHOICES]).log_time for s in (small, large)}
    ring, doubling = NAMES.index("ring"), NAMES.index("recursive_doubling")
    assert said[small][ring] > said[small][doubling] + 0.5
    assert said[large][ring] < said[large][doubling] - 0.3


AT_ONCE, IN_TURNS = Choice("node_aware_nonblocking"), Choice("node_aware_pairwise")


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("linear_ompi", (), 64 * 512),
        ("linear_sync_ompi", (), 64),
        ("pairwise_ompi", (), 64),
        ("node_aware_nonblocking", (), 64 * 8),
        ("locality_aware_16_procs_leader_alltoall_nonblocking", (), 64 * 32),
        ("multileader_node_aware_4_procs_leader_alltoall_nonblocking", (), 16 * 8),
        ("hierarchical_nonblocking", (), 8),
        ("hierarchical_nonblocking", (("procs_per_leader", 16),), 4 * 32),
        ("hierarchical_pairwise", (("procs_per_leader", 16),), 4),
    ],
)
def test_messages_in_flight_follow_from_who_sends_to_whom(name, parameters, expected):
    assert in_flight(Scenario("alltoall", 8, 64, 16), Choice(name, parameters)) == expected


def test_an_equivalent_choice_sends_the_same_messages_one_after_the_other():
    assert turn_by_turn(AT_ONCE) == IN_TURNS
    assert turn_by_turn(IN_TURNS) == IN_TURNS
    assert posts_at_once(AT_ONCE)
    assert not posts_at_once(IN_TURNS)


def bursting(breaks_at: int, ppn: int) -> dict:
    """Posting at once takes half the time, and a hundred times as long from ``breaks_at`` messages on."""
    found = {}
    for nodes in (2, 4, 8, 16, 32, 64):
        for size in (4, 64, 1024):
            scenario = Scenario("alltoall", nodes, ppn, size)
            time_s = 1e-5 * nodes * (1.0 + size / 512)
            stalls = in_flight(scenario, AT_ONCE) >= breaks_at
            found[scenario, IN_TURNS] = time_s
            found[scenario, AT_ONCE] = time_s * (100.0 if stalls else 0.5)
    return found


def test_what_every_source_bore_is_borne():
    assert bearable([bursting(breaks_at=1000, ppn=32)]) == pytest.approx(32 * 16 * 2**0.5)
    assert bearable([bursting(breaks_at=1000, ppn=32), bursting(200, 32)]) == pytest.approx(32 * 4 * 2**0.5)
    assert bearable([{(Scenario("alltoall", 2, 1, 4), IN_TURNS): 1e-5}]) == np.inf


def test_more_messages_than_were_borne_are_avoided():
    """More ranks per node send more messages at once, long before as many nodes were measured."""
    learned = learn_times({"a": bursting(breaks_at=2000, ppn=32)})

    def best(nodes: int, ppn: int) -> Choice:
        scenario = Scenario("alltoall", nodes, ppn, 64)
        said = learned.predict([(scenario, AT_ONCE), (scenario, IN_TURNS)]).log_time
        return (AT_ONCE, IN_TURNS)[int(said.argmin())]

    assert best(8, 32) == AT_ONCE
    assert best(32, 64) == IN_TURNS  # 2,048 in flight at fewer nodes than broke down with 32 ranks per node
    assert best(64, 32) == IN_TURNS


def test_a_default_is_not_held_for_slow_for_posting_more_than_was_borne():
    """Elsewhere it may have stalled; where the library does it by itself it may be the fastest."""
    model = TimesModel({"alltoall": learn_times({"a": bursting(breaks_at=2000, ppn=32)})}, amplitudes(PRIOR_THETA))
    scenario = Scenario("alltoall", 32, 64, 64)
    alike = Choice("multileader_node_aware_1_procs_leader_alltoall_nonblocking")
    (as_default, as_choice, _), std = model.against(
        "alltoall", [(scenario, AT_ONCE, [IN_TURNS]), (scenario, IN_TURNS, [AT_ONCE]), (scenario, AT_ONCE, [alike])]
    )
    assert as_choice > -as_default + 1.0
    assert std[0] > 1.0 > std[2]  # what two choices post alike, neither bears better


SOURCES = {"a": table(2e-6, 1e-10, 1), "b": table(1e-6, 4e-10, 2)}


def test_choices_are_ordered_as_other_machines_have_them_however_fast_those_are() -> None:
    learned, here = learn_times(SOURCES), table(1.5e-6, 2e-10, 3)
    said = learned.predict(PAIRS).log_time.reshape(len(SCENARIOS), -1)
    times = np.array(list(here.values())).reshape(said.shape)
    slow = times[np.arange(len(times)), said.argmin(axis=1)] / times.min(axis=1)
    assert np.mean(slow <= 1.1) >= 0.8
    slower = {name: {pair: 1000.0 * time_s for pair, time_s in times.items()} for name, times in SOURCES.items()}
    again = learn_times(slower).predict(PAIRS).log_time
    np.testing.assert_allclose(again.reshape(said.shape), said, atol=0.1)


def test_an_algorithm_is_known_by_what_it_sends_once_two_clusters_measured_that() -> None:
    assert kind_of("allreduce", Choice("ring_ompi")) == kind_of("allreduce", Choice("ring"))
    assert kind_of("allreduce", Choice("ring")) != kind_of("allreduce", Choice("rabenseifner"))
    learned = learn_times({"a": SOURCES["a"], "b": table(1e-6, 4e-10, 2, choices=CHOICES[2:])})
    scenario = SCENARIOS[3]
    names = ("rabenseifner_ompi", "ring", "of_tomorrow")
    assert learned.knows([(scenario, Choice(name)) for name in names]).tolist() == [True, False, False]
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
        said[factor] = learned.constants[TERMS.index("node_bytes")]
    assert said[100.0] == pytest.approx(100.0 * said[1.0])


def test_deviations_are_those_of_the_process_that_they_are_fitted_with() -> None:
    """Written out for two choices of one scenario, against the covariance of all pairs; with bursts and without."""
    scenario = Scenario("alltoall", 32, 64, 8)
    names = ("node_aware_nonblocking", "node_aware_pairwise", "hierarchical_nonblocking", "hierarchical_pairwise")
    some = [(scenario, Choice(name)) for name in names]
    values = np.full(len(TERMS), 1e-9)
    for borne in (np.inf, 100.0):
        kernel = PairKernel(PRIOR_THETA, values, borne)
        columns = kernel.columns(some)
        covariance = kernel.covariance(columns, columns)
        variance = np.diag(covariance)
        expected = variance[1:] + variance[0] - 2.0 * covariance[0, 1:]
        rows, bases = np.arange(1, 4), np.zeros(3, dtype=int)
        found = deviations(amplitudes(PRIOR_THETA), values, Sent.of(some), rows, bases, columns.unborne)
        assert found == pytest.approx(np.sqrt(expected))


def test_the_probability_of_a_loss_is_the_tail_of_a_student_t() -> None:
    mean, std = np.linspace(-8.0, 8.0, 65), np.full(65, 0.2)
    expected = student.sf((np.log1p(LOSS) - mean) / std, 3.0)
    assert probability_of_loss(mean, std) == pytest.approx(expected, rel=1e-9)


def test_what_was_predicted_is_compared_with_what_happened_by_tables_of_equal_weight(tmp_path: Path) -> None:
    said, lost = np.repeat([0.02, 0.3], 40), np.arange(80) % 10 == 0
    few = said[:10], lost[:10]  # too few to say anything
    rows = reliability({"a": (said, lost), "b": (said, ~lost), "c": few})
    assert [row["predicted"] for row in rows] == pytest.approx([0.02, 0.3])
    assert [(row["observed"], row["worst"], row["tables"]) for row in rows] == [pytest.approx((0.5, 0.9, 2))] * 2
    draw_reliability(rows, "a loss", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_hyperparameters_are_fitted_to_what_is_left_of_others() -> None:
    studies = studies_of({"allreduce": SOURCES, "bcast": {"a": SOURCES["a"]}})
    assert len(studies) == 2
    theta = fit_pair_theta(studies, iterations=3)
    assert theta.shape == PRIOR_THETA.shape
    assert not np.allclose(theta, PRIOR_THETA)
    assert fit_pair_theta([]) == pytest.approx(PRIOR_THETA)


SCENARIO = Scenario("allgather", 4, 2, 1024)
OTHERS = (Choice("bruck"), Choice("recursive_doubling"))


def guessed(mean: tuple[float, float], std: tuple[float, float], risk: float = MOST_PROBABLE) -> Guess:
    group = (SCENARIO, Choice("ring"), OTHERS)
    first, second = vetoed([group, group], np.array([*mean, 1.0, 2.0]), np.array([*std, 0.1, 0.1]), risk)
    assert second.choice == DEFAULT
    return first


def test_the_fastest_of_the_safe_ones_replaces_the_default() -> None:
    found = guessed((-1.0, -1.5), (0.01, 0.01))
    assert found.choice == OTHERS[1]
    assert found.sureness > 0.99
    assert found.gain == pytest.approx(math.exp(1.5))
    assert "as fast as ring" in found.reason


def test_a_choice_that_may_lose_too_probably_is_vetoed_until_more_is_risked() -> None:
    mean, std = (-1.0, 0.1), (0.5, 0.5)  # about 5% to lose
    kept = guessed(mean, std, risk=0.01)
    assert kept.choice == DEFAULT
    assert 0.9 < kept.sureness < 0.99
    assert "may lose 3%" in kept.reason
    assert guessed(mean, std, risk=0.1).choice == OTHERS[0]
    # What is expected to gain nothing stays out at any risk.
    assert guessed((0.01, 0.02), (0.2, 0.2), risk=0.5).choice == DEFAULT


def test_each_collective_is_told_with_what_it_gains_and_how_surely() -> None:
    other = Scenario("allreduce", 4, 2, 1024)
    guesses = [
        guessed((-1.0, -1.5), (0.01, 0.01)),
        Guess(other, DEFAULT, 0.8, "ring may be 1.50 times as fast", 1.5),
        Guess(Scenario("alltoall", 4, 2, 8), DEFAULT, 0.0, "nobody knows"),
    ]
    first, second, third, fourth = gain_texts(guesses)
    assert first.startswith("allgather: 4.48 times as fast in 1 of 1 scenarios")
    assert second.startswith("allreduce: the default stays in all 1 scenarios")
    assert "1.50 times as fast in 1" in third
    assert "with 20% probability or more" in third
    assert fourth.startswith("alltoall: the default stays")
