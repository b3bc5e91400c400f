"""Tuning on recorded tables: what `evaluate` measures is what `tune` runs, and what whole campaigns deliver."""

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colltune.bench.recorded_cluster import RecordedBench
from colltune.core.errors import InputError
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario
from colltune.core.space import Point, Space
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.session.tuning.options import TuneOptions
from colltune.session.tuning.tune import tune
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.recorded.launch_effects import AS_MEASURED, NO_EFFECTS
from colltune_study.research.campaign_figures import by_table, campaigns_table, draw_campaigns, write_campaigns
from colltune_study.research.delivery import Delivery, by_cluster, deliver
from colltune_study.research.evaluation import load
from colltune_study.research.simulate import Pace, simulate
from colltune_study.research.whole_campaigns import CampaignPlan, run_campaigns
from colltune_study.testing import RING, legal, small_space, true_time_s
from commands import colltune

pytest.importorskip("pandas")

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

    simulate(grid, "ours", Heard, SEED, pace=Pace(kept=1e9))
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
        assert own.cost_s == pytest.approx(other.cost_s)  # told with what surrounds it, which is nothing here
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


def test_scenarios_without_a_known_default_are_left_out() -> None:
    grid = table()
    default_s = np.where(np.array([s.size_bytes for s in grid.scenarios]) == 64, np.nan, grid.default_s)
    partly = RecordedBench([replace(grid, default_s=default_s)])
    assert 64 not in {s.size_bytes for s in partly.space("bcast", 1, 1 << 20).scenarios}
    with pytest.raises(InputError, match="do not hold the library's default"):
        RecordedBench([replace(grid, default_s=np.full(len(default_s), np.nan))])
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
    looks += [Point(scenarios[1], (fast,), 3), Point(scenarios[0], (fast,), 3)]  # longer than a time box, and not
    counts = [[len(s.times_s) for s in samples] for _, samples in launch.measure(looks, Effort())]
    assert counts == [[1], [3], [10, 10, 1], [1], [3]]


DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"


@pytest.fixture(scope="module")
def lumi() -> list[Grid]:
    ((_, grids),) = by_cluster(load_grids([DATA / "pico_lumi.csv.gz"])).items()
    return grids


def test_a_campaign_captures_most_of_the_headroom_and_harms_nothing(lumi: list[Grid]) -> None:
    found = deliver("lumi", lumi, 300.0, 0)
    assert found.captured > 0.5
    assert found.harmed <= 0.02
    assert found.worst <= 1.10
    assert found.overrun <= 1.1
    assert found.kept > 0
    assert found.rules > 0
    assert 0 < found.decided < found.scenarios
    short = deliver("lumi", lumi, 60.0, 0, launch_s=30.0)  # no launch fits
    assert short.harmed == 0.0
    assert short.total_s <= 1.1 * max(short.budget_s, short.fixed_cost_s)


@pytest.mark.slow
def test_with_the_launches_of_a_cluster_nothing_is_harmed(lumi: list[Grid]) -> None:
    calm, moved = (deliver("lumi", lumi, 120.0, 1, launch_sd=0.0, effects=one) for one in (NO_EFFECTS, AS_MEASURED))
    assert moved.captured > 0.3
    assert moved.captured != calm.captured
    assert moved.harmed == calm.harmed == 0.0


HEADER = "collective,algorithm,nodes,ppn,msg_bytes,time_us,is_default"


def table_file(path: Path, gain: float = 2.0, default: bool = True) -> Path:
    """``fast`` beats the default by ``gain`` up to 1 KiB, and is as much slower above; ``slow`` loses everywhere."""
    rows = [HEADER]
    for nodes in (2, 4, 6, 8):
        for size in (1 << power for power in range(0, 21, 2)):
            time_us = 10.0 + nodes + size / 1000.0
            small = size <= 1024
            times = {"fast": time_us / gain if small else time_us * gain, "slow": 3.0 * time_us, "same": time_us}
            rows += [f"bcast,{name},{nodes},1,{size},{value},False" for name, value in times.items()]
            if default:
                rows.append(f"bcast,default,{nodes},1,{size},{time_us},True")
    path.write_text("\n".join(rows) + "\n")
    return path


def delivery(name: str, seed: int, budget_s: float, captured: float) -> Delivery:
    return Delivery(name, seed, budget_s, captured, 0.01 * seed, 1.0 + seed / 10.0, budget_s, 1.0, 0.1, 3, 2)


def test_a_campaign_captures_the_headroom_without_harm_and_pays_for_its_launches(tmp_path: Path) -> None:
    grids = load([table_file(tmp_path / "t.csv")])
    (cheap,) = run_campaigns(grids, CampaignPlan((120.0,), seeds=1, launch_s=2.0)).delivered
    (dear,) = run_campaigns(grids, CampaignPlan((600.0,), seeds=1, launch_s=60.0)).delivered
    for one in (cheap, dear):
        assert one.captured > 0.8
        assert one.worst <= 1.10
        assert one.overrun <= 1.10
    # One launch to measure, and at least three to prove.
    assert cheap.total_s > 4 * 2.0
    assert dear.total_s > 4 * 60.0
    even = load([table_file(tmp_path / "t.csv", gain=1.0)])
    (nothing,) = run_campaigns(even, CampaignPlan((60.0,), seeds=1)).delivered
    assert (nothing.kept, nothing.harmed, nothing.captured) == (0, 0.0, 1.0)


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    grids = load([table_file(tmp_path / "t.csv"), table_file(tmp_path / "u.csv", gain=1.3)])
    plan = CampaignPlan((30.0,), seeds=1)
    one, two = (run_campaigns(grids, replace(plan, jobs=jobs)).delivered for jobs in (1, 2))

    def facts(runs: tuple[Delivery, ...]) -> list[Delivery]:
        return sorted((replace(run, thinking_s=0.0) for run in runs), key=lambda run: run.table)

    assert facts(one) == facts(two)


def test_tables_without_the_default_are_left_out_with_the_reason(tmp_path: Path) -> None:
    bare = table_file(tmp_path / "bare.csv", default=False)
    with pytest.raises(InputError, match="default was not recorded in bare"):
        run_campaigns(load([bare]), CampaignPlan((30.0,), seeds=1))
    both = run_campaigns(load([bare, table_file(tmp_path / "t.csv")]), CampaignPlan((30.0,), seeds=1))
    assert list(both.refused) == ["bare"]
    assert {one.table for one in both.delivered} == {"t"}
    with pytest.raises(InputError, match="not one campaign ended"):
        run_campaigns(load([tmp_path / "t.csv"]), CampaignPlan((30.0,), seeds=1, limit_s=0.0))


def test_the_table_shows_medians_of_captured_headroom_and_the_worst_of_harm(tmp_path: Path) -> None:
    runs = [delivery("a", seed, 60.0, captured) for seed, captured in enumerate((0.2, 0.4, 0.6))]
    runs += [delivery("b", 0, 60.0, 0.8)]
    assert [len(own) for own in by_table(runs).values()] == [3, 1]
    lines = campaigns_table(runs).lines(120)
    (of_a,) = (line for line in lines if line.startswith("a "))
    assert "0.40" in of_a
    assert "2.00%" in of_a
    assert "1.20x" in of_a
    (median,) = (line for line in lines if line.startswith("median of 2 clusters"))
    assert "0.60" in median
    write_campaigns(tmp_path / "c.csv", runs)
    with (tmp_path / "c.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["captured"]) for row in rows] == [0.2, 0.4, 0.6, 0.8]
    assert float(rows[0]["overrun"]) == 1.0
    pytest.importorskip("matplotlib")
    draw_campaigns(tmp_path / "c.svg", runs)
    drawn = (tmp_path / "c.svg").read_text()
    draw_campaigns(tmp_path / "c.svg", runs)
    assert drawn == (tmp_path / "c.svg").read_text()


def test_the_command_prints_one_table_and_leaves_rows_and_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    data, out = table_file(tmp_path / "t.csv"), tmp_path / "out"
    command = ["study", "evaluate", str(data), "--campaign", "--out", str(out)]
    options = ["--seeds", "1", "--budgets", "20s,60s", "--launch", "1s", "--jobs", "1"]
    done = colltune(*command, *options, code=0)
    assert "1 table of 1 cluster, 1 seed each, budgets 20s, 60s" in done.stdout
    assert "2 of 2 campaigns" in done.stdout
    assert (out / "campaigns.png").stat().st_size > 0
    with (out / "campaigns.csv").open(newline="") as file:
        assert [row["budget_s"] for row in csv.DictReader(file)] == ["20", "60"]
