"""What rules gain in force, from launches of known times, and what comparisons of a proof are expected to take.

Comparisons of the proof in which the default alone was slowed, beside launches that slow all choices alike.
"""

import math
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.interval import Interval
from colltune.core.proven import THRESHOLD, Decision, Verdict
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.judge.verdict import Comparison, compare_all
from colltune.prove.audit.audit import Audit
from colltune.prove.audit.worth import ComparisonCosts
from colltune.prove.compare.in_force import SearchCost, search_cost

FAST = Choice("fast")
SIZES = [1 << exponent for exponent in range(15)]


def default_s(scenario: Scenario, least_s: float) -> float:
    return least_s * (1.0 + scenario.size_bytes / 512)


def campaign(
    gain: float,
    search_s: float,
    least_s: float,
    *,
    of_launch: float = 0.0,
    of_point: float = 0.01,
    seed: int = 0,
    odd: float = 0.0,
) -> tuple[list[Decision], list[Comparison], SearchCost]:
    """Rules at every other size that gain ``gain`` (log), compared in force over five launches of each kind.

    ``odd``: what the smallest one loses in force, for a reason of its own. Deviations are of logarithms.
    """
    random = np.random.default_rng(seed)
    scenarios = [Scenario("bcast", 4, 1, size) for size in SIZES]
    ruled = scenarios[::2]
    kept = [
        Decision(s, FAST, Verdict.KEPT, (math.exp(gain),) * 3, "proven", Interval(math.exp(gain), 1.03, 9.0))
        for s in ruled
    ]
    effects = random.normal(0.0, of_launch, (2, 5))
    sides = {}
    for scenario in scenarios:
        time_s = default_s(scenario, least_s)
        tuned_s = time_s * math.exp(-gain if scenario in ruled else 0.0) + search_s
        tuned_s *= math.exp(odd) if scenario == ruled[0] else 1.0
        noise = random.normal(0.0, of_point, (2, 5)) + effects
        choice = FAST if scenario in ruled else DEFAULT
        sides[scenario, choice] = (list(time_s * np.exp(noise[0])), list(tuned_s * np.exp(noise[1])))
    found = compare_all(sides)
    return kept, found, search_cost(found, kept, lambda s: default_s(s, least_s))


def gains(kept: list[Decision], cost: SearchCost, least_s: float, growth: float = 1.0) -> list[float]:
    return [cost.gain(decision, default_s(decision.scenario, least_s), growth) for decision in kept]


@pytest.mark.parametrize("seed", range(5))
def test_a_search_that_costs_short_calls_more_than_they_gain_is_found(seed: int) -> None:
    kept, _, cost = campaign(math.log(1.05), 2e-7, 1.5e-6, seed=seed)
    assert cost.search_s == pytest.approx(2e-7, rel=0.3)
    found = gains(kept, cost, 1.5e-6)
    assert found[0] < 0.0 < found[-1]


@pytest.mark.parametrize("seed", range(10))
def test_launches_that_differ_do_not_undo_what_was_proven(seed: int) -> None:
    """By the ratio in force alone a rule of 1.2 would often be called slower."""
    kept, found, cost = campaign(math.log(1.2), 3e-8, 1e-4, of_launch=0.2, of_point=0.15, seed=seed)
    assert min(gains(kept, cost, 1e-4)) > 0.0
    assert cost.search_s < 2e-6
    assert len(found) == len(SIZES)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_slower_in_force_for_itself_is_seen_where_launches_agree(seed: int) -> None:
    kept, _, cost = campaign(math.log(1.1), 3e-8, 1e-4, seed=seed, odd=math.log(1.4))
    found = gains(kept, cost, 1e-4)
    assert found[0] < 0.0
    assert min(found[1:]) > 0.0


def test_a_longer_file_is_expected_to_cost_more() -> None:
    kept, _, cost = campaign(math.log(1.2), 1e-7, 1.5e-6)
    same, longer = gains(kept, cost, 1.5e-6), gains(kept, cost, 1.5e-6, growth=3.0)
    assert all(one > 0.0 for one in same)
    assert all(one > other for one, other in zip(same, longer, strict=True))
    assert longer[0] < 0.0


def test_without_a_comparison_what_was_proven_stands() -> None:
    kept, _, _ = campaign(math.log(1.2), 1e-7, 1e-4)
    nothing = search_cost([], kept, lambda s: default_s(s, 1e-4))
    assert gains(kept, nothing, 1e-4) == pytest.approx([math.log(1.2)] * len(kept))


SECONDS = st.floats(1e-7, 10.0)


def test_what_short_comparisons_take_besides_their_calls_is_not_multiplied_for_long_ones() -> None:
    costs = ComparisonCosts()
    for _ in range(10):
        costs.note(20e-6, 0.1)
    assert costs.likely_s(20e-6) == pytest.approx(0.1, rel=0.01)
    assert costs.likely_s(2.0) < 2.5


def test_comparisons_that_all_take_longer_are_expected_to_take_longer() -> None:
    costs = ComparisonCosts()
    for expected_s in (1e-3, 1e-2, 1e-1, 1.0) * 3:
        costs.note(expected_s, 3.0 * expected_s)
    assert costs.likely_s(10.0) == pytest.approx(30.0, rel=0.1)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=20), SECONDS)
def test_what_is_likely_is_neither_negative_nor_less_for_longer_calls(
    took: list[tuple[float, float]], expected_s: float
) -> None:
    costs = ComparisonCosts()
    for pair in took:
        costs.note(*pair)
    assert 0.0 <= costs.likely_s(expected_s) <= costs.likely_s(2.0 * expected_s) < math.inf


BENCH = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "bench_gate.py"))
DEFAULT_S = BENCH["DEFAULT_S"]


def put_to_proof(gain: float, slowed: Callable[[int, Scenario], float], seed: int) -> Audit:
    """An audit of the four regions of one collective, all ``gain`` times as fast as a default that is not slowed.

    Launches and rounds of calls have the structure that was measured on a cluster. ``slowed``: what another program
    multiplies the default's time by, in a launch and at a scenario; the campaign saw nothing of it.
    """
    every, gains = BENCH["regions_of_a_file"](BENCH["Row"]((gain,)), np.random.default_rng(seed))
    claims = [claim for claim in every if claim.collective == "allreduce"]

    class Machine(BENCH["Machine"]):  # type: ignore[misc]
        def truth(self, scenario: Scenario, choice: object) -> float:
            time_s: float = super().truth(scenario, choice)
            return time_s * slowed(self.launches, scenario) if choice == DEFAULT else time_s

    machine = Machine(gains, BENCH["LAUNCHES"], seed)
    found = Audit(
        claims=claims,
        open_source=machine.open,
        record=lambda _samples: None,
        baseline=lambda _scenario: DEFAULT,
        cost_s=lambda _scenario: 1e-3,
        total_weight=float(sum(len(claim.scenarios) for claim in claims)),
        threshold=THRESHOLD,
        launch_s=1.0,
        default_s=lambda _scenario: float(DEFAULT_S),
        seed=seed,
        clock=lambda: float(machine.now_s),
    )
    found.run(16.0)
    return found


def share_counted(audit: Audit) -> float:
    """Of the comparisons, those that are evidence."""
    return sum(len(case.counted) for case in audit._cases) / sum(len(case.taken) for case in audit._cases)


def test_a_launch_that_slows_all_choices_alike_is_evidence() -> None:
    counted = [share_counted(put_to_proof(1.25, lambda _launch, _scenario: 1.0, seed)) for seed in range(2)]
    assert min(counted) > 0.9
    assert sum(counted) / len(counted) > 0.95


@pytest.mark.parametrize(
    "slowed",
    [
        lambda _launch, _scenario: 3.0,  # in every launch since the campaign
        lambda launch, _scenario: 2.4 if launch % 3 else 1.0,
        lambda launch, scenario: 2.4 if launch % 2 and scenario.size_bytes > 16 else 1.0,  # at most scenarios
    ],
)
def test_where_the_default_alone_is_slowed_nothing_is_proven(slowed: Callable[[int, Scenario], float]) -> None:
    """Though in such launches each choice looks so many times as fast."""
    for seed in range(2):
        audit = put_to_proof(1.0, slowed, seed)
        left_out = [one for case in audit._cases for one in case.taken if one not in case.counted]
        assert not [one for one in audit.results() if one.verdict is Verdict.KEPT]
        hidden = [one.seen.value for one in left_out]
        assert len(hidden) > 3
        assert sum(hidden) / len(hidden) > math.log(1.5)
