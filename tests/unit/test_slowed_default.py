"""Comparisons of the proof in which the default alone was slowed, beside launches that slow all choices alike."""

import math
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from colltune.core.proven import THRESHOLD, Verdict
from colltune.core.sample import DEFAULT, Scenario
from colltune.prove.audit.audit import Audit

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
