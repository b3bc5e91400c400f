"""The cost model: constants that are found again, and what it says of algorithms that nobody measured."""

import numpy as np
import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.predict.cost import (
    RELATIVE_COLUMNS,
    TERMS,
    relative_columns,
    relative_seconds,
    terms,
)
from colltune_study.training.constants import fit_constants, pooled
from colltune_study.training.learned_times import learn_times

NAMES = ("recursive_doubling", "ring", "rabenseifner", "recexch")
CHOICES = tuple(Choice(name) for name in NAMES)
SCENARIOS = tuple(
    Scenario("allreduce", nodes, ppn, 1 << size) for nodes in (4, 16) for ppn in (1, 8) for size in range(4, 24, 3)
)
PAIRS = [(scenario, choice) for scenario in SCENARIOS for choice in CHOICES]


def machine(latency_s: float, byte_s: float) -> np.ndarray:
    values = np.zeros(len(TERMS))
    values[TERMS.index("call")] = 1e-6
    values[TERMS.index("network_rounds")] = latency_s
    values[TERMS.index("local_rounds")] = 0.3 * latency_s
    values[TERMS.index("node_bytes")] = byte_s
    values[TERMS.index("reduced_bytes")] = 0.5 * byte_s
    return values


def times(values: np.ndarray, noise: float = 0.0) -> dict:
    random = np.random.default_rng(0)
    seconds = terms(PAIRS) @ values * np.exp(noise * random.standard_normal(len(PAIRS)))
    return dict(zip(PAIRS, seconds.tolist(), strict=True))


def test_the_constants_of_a_machine_are_found_again() -> None:
    wanted = machine(2e-6, 1e-10)
    found = fit_constants(times(wanted, noise=0.03))
    assert found is not None
    assert terms(PAIRS) @ found == pytest.approx(terms(PAIRS) @ wanted, rel=0.1)


def test_nothing_is_said_of_what_nobody_described() -> None:
    unknown = [(SCENARIOS[0], Choice("of_tomorrow")), (SCENARIOS[0], DEFAULT)]
    unknown.append((Scenario("allreduce", 4096, 128, 64), CHOICES[0]))  # more ranks than there is time to go through
    assert np.isnan(terms(unknown)).all()
    assert (relative_columns(unknown) == -1.0).all()
    assert (relative_seconds(unknown, machine(1e-6, 1e-10)) == -1.0).all()
    assert fit_constants(dict.fromkeys(unknown, 1.0)) is None


def test_columns_do_not_depend_on_what_else_is_asked() -> None:
    together, values = relative_columns(PAIRS), machine(1e-6, 1e-10)
    assert together.shape == (len(PAIRS), RELATIVE_COLUMNS)
    assert np.array_equal(together[5], relative_columns([PAIRS[5]])[0])
    assert relative_seconds(PAIRS, values)[5] == relative_seconds([PAIRS[5]], values)[0]


def test_the_mean_of_constants_lies_between_them() -> None:
    found = [fit_constants(times(machine(latency, 1e-10))) for latency in (1e-6, 4e-6)]
    mean = pooled([one for one in found if one is not None])
    assert 1e-6 < mean[TERMS.index("network_rounds")] < 4e-6


def test_an_algorithm_that_no_source_measured_is_known_by_what_it_sends() -> None:
    sources = [
        {pair: s for pair, s in times(machine(*one), 0.03).items() if pair[1] != Choice("ring")}
        for one in ((2e-6, 1e-10), (4e-6, 2e-10))
    ]
    prior = learn_times(dict(zip("ab", sources, strict=True)))
    assert prior is not None
    assert not prior.knows((SCENARIOS[0], Choice("ring")))
    small, large = (Scenario("allreduce", 16, 8, size) for size in (64, 1 << 22))
    said = {s: prior.predict([(s, choice) for choice in CHOICES]).log_time for s in (small, large)}
    ring, doubling = NAMES.index("ring"), NAMES.index("recursive_doubling")
    assert said[small][ring] > said[small][doubling] + 0.5
    assert said[large][ring] < said[large][doubling] - 0.3
