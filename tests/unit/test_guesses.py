"""When a guess replaces the default, and what is said of guesses."""

import math

import numpy as np
import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.core.summary import Guess
from colltune.predict.guesses import MOST_PROBABLE, gain_texts, vetoed

SCENARIO = Scenario("allgather", 4, 2, 1024)
OTHERS = (Choice("bruck"), Choice("recursive_doubling"))


def guessed(mean: tuple[float, float], std: tuple[float, float], risk: float = MOST_PROBABLE) -> Guess:
    return vetoed(SCENARIO, Choice("ring"), OTHERS, np.array(mean), np.array(std), risk)


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


def test_what_is_expected_to_gain_nothing_stays_out_at_any_risk() -> None:
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
