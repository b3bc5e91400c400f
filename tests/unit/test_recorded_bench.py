"""Tuning on recorded tables: what `evaluate` measures is what `tune` runs, and a tuning with its proof, with no MPI."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colltune.bench.recorded_cluster import RecordedBench
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.proven import Verdict
from colltune.core.sample import Sample
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.session.tuning.options import TuneOptions
from colltune.session.tuning.tune import tune
from colltune.store.grid import Grid
from colltune_study.research.contract import Strategy
from colltune_study.research.simulate import Pace, simulate
from colltune_study.testing import RING, TREE, legal, small_space, true_time_s

SEED = 3


def table(collective: str = "bcast") -> Grid:
    """What the suite's small library takes; halving on powers of two only, and the default beside the candidates."""
    space = small_space(collective)
    choices = tuple(choice for choice in space.all_choices if choice != DEFAULT)
    times_s = np.array([[true_time_s(s, c) if c in legal(s) else np.nan for c in choices] for s in space.scenarios])
    default_s = np.array([true_time_s(scenario, DEFAULT) for scenario in space.scenarios])
    return Grid(f"small/{collective}", collective, space.scenarios, choices, times_s, default_s)


def evaluated(grid: Grid) -> list[Sample]:
    """What our learner is told in a simulated tuning that goes on beyond the learner's own stop."""
    told: list[list[Sample]] = []

    class Heard(DecisionLearner):
        def __init__(self, space: Space, seed: int) -> None:
            super().__init__(space, seed)
            told.append([])
            self._told = told[-1]

        def tell(self, samples: Sequence[Sample]) -> None:
            self._told += samples
            super().tell(samples)

    def make(space: Space, seed: int) -> Strategy:
        return Heard(space, seed)

    simulate(grid, "ours", make, SEED, pace=Pace(kept=1e9))
    return told[0]


def options(*collectives: str, budget_s: float, gate: bool = True) -> TuneOptions:
    return TuneOptions(collectives, 1, 1 << 20, budget_s, seed=SEED, gate=gate)


def test_what_is_evaluated_is_what_tuning_runs(tmp_path: Path) -> None:
    """Point by point: the scenario, the choice, the repetitions and what they came to."""
    grid = table()
    alike = replace(options("bcast", budget_s=math.inf, gate=False), weights=lambda _nodes, _ppn: lambda _scenario: 1.0)
    tuned = tune(RecordedBench([grid]), alike, tmp_path).outcome
    in_evaluation = evaluated(grid.with_default())
    assert 40 < len(tuned.samples) < len(in_evaluation)
    for own, other in zip(tuned.samples, in_evaluation, strict=False):
        assert (own.scenario, own.choice, own.times_s) == (other.scenario, other.choice, other.times_s)
        assert own.cost_s == other.cost_s
    assert "expected to lose less" in tuned.reasons["bcast"]


@pytest.mark.parametrize("launch_sd", [0.0, 0.02])
def test_a_tuning_with_its_proof_keeps_to_its_budget_and_keeps_what_is_faster(launch_sd: float, tmp_path: Path) -> None:
    grids = [table("bcast"), table("allreduce")]
    bench = RecordedBench(grids, launch_s=5.0, launch_sd=launch_sd)
    result = tune(bench, options("bcast", "allreduce", budget_s=120.0), tmp_path)
    kept = [one for one in result.decisions if one.verdict is Verdict.KEPT]
    assert {one.scenario.collective for one in kept} == {"bcast", "allreduce"}
    assert all(true_time_s(one.scenario, one.choice) < true_time_s(one.scenario, DEFAULT) for one in kept)
    for grid in grids:
        for scenario in grid.scenarios:
            chosen = result.tuning.rule_sets[grid.collective].evaluate(scenario)
            assert true_time_s(scenario, chosen) <= true_time_s(scenario, DEFAULT)
    assert 4 * 5.0 < bench.now_s() <= 1.05 * 120.0


def test_equal_seeds_tune_alike_and_launches_differ(tmp_path: Path) -> None:
    found = [
        tune(RecordedBench([table()], launch_sd=0.1), options("bcast", budget_s=60.0), tmp_path / str(number))
        for number in range(2)
    ]
    assert found[0].outcome.samples == found[1].outcome.samples
    assert found[0].decisions == found[1].decisions
    bench, point = RecordedBench([table()], launch_sd=0.1), Point(table().scenarios[0], (DEFAULT, RING))
    medians = [[s.time_s for _, (s, _) in bench.launch(SEED).measure([point], Effort())] for _ in range(3)]
    assert len({round(time_s, 9) for [time_s] in medians}) == 3


def test_another_choice_may_stand_in_for_the_default() -> None:
    bench = RecordedBench([table()], default=lambda _scenario: TREE)
    space = bench.space("bcast", 64, 4096)
    assert {scenario.size_bytes for scenario in space.scenarios} == {64, 512, 4096}
    assert all(DEFAULT not in space.choices(s) and bench.baseline(s) == TREE for s in space.scenarios)


def test_scenarios_without_a_known_default_are_left_out() -> None:
    grid = table()
    default_s = np.where(np.array([s.size_bytes for s in grid.scenarios]) == 64, np.nan, grid.default_s)
    partly = Grid(grid.name, "bcast", grid.scenarios, grid.choices, grid.time_s, default_s)
    assert 64 not in {s.size_bytes for s in RecordedBench([partly]).space("bcast", 1, 1 << 20).scenarios}
    unknown = Grid(grid.name, "bcast", grid.scenarios, grid.choices, grid.time_s, np.full(len(default_s), np.nan))
    with pytest.raises(InputError, match="do not hold the library's default"):
        RecordedBench([unknown])
    with pytest.raises(InputError, match="two tables of bcast"):
        RecordedBench([grid, grid])


def test_pairs_of_different_tables_are_drawn_apart() -> None:
    bench = RecordedBench([table("bcast"), table("allreduce")])
    source = bench.launch(SEED)

    def drawn(collective: str, choice: Choice) -> tuple[float, ...]:
        scenario = Scenario(collective, 2, 4, 64)
        [(_, [sample])] = source.measure([Point(scenario, (choice,))], Effort())
        return sample.times_s

    assert drawn("bcast", RING) != drawn("allreduce", RING)


def test_a_first_look_at_a_long_call_is_one_repetition_and_a_hopeless_choice_is_timed_once() -> None:
    """As the agent does it (tests/mpi/test_live_source.py)."""
    scenarios = tuple(Scenario("bcast", 4, 1, 2**power) for power in (3, 20))
    fast, slow = Choice("fast"), Choice("slow")
    times_s = np.array([[1e-5, 2e-5], [0.01, 0.8]])
    grid = Grid("cliff/bcast", "bcast", scenarios, (fast, slow), times_s, np.array([1e-5, 0.01]))
    launch = RecordedBench([grid], launch_s=0.0).launch(SEED)
    looks = [Point(scenarios[1], (slow,), 3), Point(scenarios[1], (slow,)), Point(scenarios[1], (DEFAULT, fast, slow))]
    counts = [[len(s.times_s) for s in samples] for _, samples in launch.measure(looks, Effort())]
    assert counts == [[1], [3], [10, 10, 1]]
