"""Simulated tuning: the oracle, metrics worked out by hand, cost, the comparison; faults in tables."""

from pathlib import Path

import numpy as np
import pytest

from bench_learning import cost_ratio, figures, nonp2_ratio, stop_share
from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario
from colltune.search.campaign import MeasuredModel
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import _grids_of, load_grids, parse_algorithm, read_table
from colltune_study.research.compare import Estimate, estimate, reach_by_grid, write_steps, write_table
from colltune_study.research.metrics import Metrics, score, select, slowdowns
from colltune_study.research.simulate import Run, Step

RECORDED = Path(__file__).parents[1] / "recorded"
HEADER = "collective,algorithm,nodes,ppn,msg_bytes,time_us,is_default"
A, B = Choice("a"), Choice("b")
NAN = float("nan")


def grid() -> Grid:
    """Three scenarios: a is best at 8 and 12 bytes, b at 64; at 64 nothing else was recorded but both."""
    scenarios = tuple(Scenario("bcast", 2, 1, size) for size in (8, 12, 64))
    times = np.array([[1e-6, 2e-6], [1e-6, 1.05e-6], [4e-6, 2e-6]])
    return Grid("table/bcast", "bcast", scenarios, (A, B), times, np.array([2e-6, NAN, 2e-6]))


def test_metrics_by_hand():
    selected = np.array([0, 1, 0])
    metrics = score(selected, grid())
    assert metrics.slowdown == pytest.approx((1.0 + 1.05 + 2.0) / 3)
    assert (metrics.accuracy, metrics.mistakes) == pytest.approx((1 / 3, 1 / 3))
    assert (metrics.worst, metrics.p2_slowdown, metrics.nonp2_slowdown) == pytest.approx((2.0, 1.5, 1.05))
    assert metrics.regret == pytest.approx((1e-6 + 1.05e-6 + 4e-6) / 4e-6 - 1.0)
    # The threshold of a mistake and the profile can be set.
    assert score(selected, grid(), significant=0.01).mistakes == pytest.approx(2 / 3)
    assert score(selected, grid(), weights=np.array([10.0, 0.0, 0.0])).regret == pytest.approx(0.0)
    known = {(one, choice): grid().time(one, choice) for one in grid().scenarios for choice in (A, B)}
    best, predicted = select(MeasuredModel(known), grid())
    assert list(best) == [0, 0, 1]
    assert score(best, grid(), predicted).r2 == pytest.approx(1.0)
    # Half of every ratio: what is left unexplained is a quarter of the variance.
    assert score(best, grid(), 0.5 * predicted).r2 == pytest.approx(0.75)


def test_what_was_not_recorded_counts_as_the_worst():
    times = np.array([[1e-6, NAN, 3e-6]])
    one = Grid("t", "bcast", (Scenario("bcast", 2, 1, 8),), (A, B, Choice("c")), times, np.array([NAN]))
    assert one.space.choices(one.scenarios[0]) == (A, Choice("c"))
    assert slowdowns(np.array([1]), one)[0] == pytest.approx(3.0)
    with pytest.raises(KeyError):
        one.time(one.scenarios[0], B)


def step(cost: float, slowdown: float, mistakes: float = 0.0) -> Step:
    return Step(cost, cost, Metrics(slowdown, 1.0, mistakes, slowdown, 0.0, NAN, slowdown, 1.0))


def run_of(grid_name: str, strategy: str, *slowdowns_: float, stop: int = -1) -> Run:
    steps = tuple(step((i + 1) / len(slowdowns_), value) for i, value in enumerate(slowdowns_))
    return Run(grid_name, strategy, 0, steps, steps[stop])


def test_reach_is_the_cost_from_which_it_stays_good():
    assert run_of("g", "s", 2.0, 1.0, 1.5, 1.02, 1.0).reach() == pytest.approx(0.8)
    assert run_of("g", "s", 1.0, 1.0).reach() == pytest.approx(0.5)
    assert run_of("g", "s", 1.0, 1.2).reach() == float("inf")


def test_ratios_are_medians_over_grids_and_what_never_gets_there_costs_everything():
    runs = [
        run_of("g", "ours", 1.0, 1.0, 1.0, 1.0),  # 0.25
        run_of("g", "other", 2.0, 2.0, 2.0, 2.0),  # never: 1.0
        run_of("h", "ours", 2.0, 1.0, 1.0, 1.0),  # 0.5
        run_of("h", "other", 2.0, 1.0, 1.0, 1.0),  # 0.5
        run_of("k", "ours", 1.0),
    ]
    assert stop_share([run_of("g", "ours", 1.5, 1.01), run_of("h", "ours", 1.5, 1.01, stop=0)], "ours") == 0.5
    reach = reach_by_grid(runs)
    assert reach["g", "other"].median == 1.0
    assert cost_ratio(reach, "ours", "other").median == pytest.approx((0.25 + 1.0) / 2)
    assert nonp2_ratio(runs, "ours") == pytest.approx(1.0)


def test_acclaim_stands_beside_fact_by_time_by_pairs_and_where_there_are_few_choices():
    runs = [run_of("g", "acclaim", 2.0, 1.0), run_of("g", "fact", 1.0, 1.0)]
    runs += [run_of("h", "acclaim", 1.0, 1.0, 1.0, 1.0), run_of("h", "fact", 2.0, 1.0, 1.0, 1.0)]
    found = figures(runs, {"g": 9, "h": 3})
    assert found["acclaim_over_fact"] == pytest.approx((2.0 + 0.5) / 2)
    assert (found["acclaim_over_fact_low"], found["acclaim_over_fact_high"]) == (0.5, 2.0)
    assert found["acclaim_over_fact_few_choices"] == 0.5
    shares = [next(one for one in run.steps if one.cost == run.reach()).share for run in runs]
    assert found["acclaim_over_fact_pairs"] == pytest.approx((shares[0] / shares[1] + shares[2] / shares[3]) / 2)


def test_an_interval_holds_the_median_and_shrinks_to_it_where_all_agree():
    spread = estimate([0.1, 0.2, 0.3, 0.4, 0.5])
    assert spread.low < spread.median == 0.3 < spread.high
    assert estimate([0.2] * 7) == Estimate(0.2, 0.2, 0.2, 7)
    with pytest.raises(ValueError, match="no runs"):
        estimate([])


def test_tables_are_written(tmp_path):
    runs = [run_of("g", "ours", 1.5, 1.01)]
    write_steps(tmp_path / "steps.csv", runs)
    write_table(tmp_path / "reach.csv", reach_by_grid(runs))
    assert (tmp_path / "steps.csv").read_text().splitlines()[2].startswith("g,ours,0,1,0,1,1,1.01,")
    assert (tmp_path / "reach.csv").read_text().splitlines()[1] == "g,ours,1,1,1,1"


def test_algorithm_labels():
    assert parse_algorithm("radix:k=4,b=16") == Choice("radix", (("b", 16), ("k", 4)))
    assert parse_algorithm("Pairwise (8 procs/leader)") == Choice("pairwise", (("procs_per_leader", 8),))
    assert parse_algorithm("bdw_segmented_65536") == Choice("bdw_segmented", (("segment", 65536),))
    assert parse_algorithm("ring_ompi") == Choice("ring_ompi")


def test_recorded_tables_become_grids():
    [lumi] = load_grids([RECORDED / "pico_lumi_allreduce.csv.gz"])
    assert lumi.name == "pico_lumi_allreduce/allreduce"
    assert len(lumi.scenarios) == 37
    assert np.isfinite(lumi.default_s).sum() > 20
    assert all(choice.algorithm != "default" for choice in lumi.choices)


def test_only_algorithms_of_one_run_are_compared(tmp_path):
    rows = [
        "bcast,a,2,1,8,5,False,first",  # faster than its own run's b, but a run with three algorithms counts
        "bcast,b,2,1,8,9,False,first",
        "bcast,a,2,1,8,30,False,second",
        "bcast,b,2,1,8,20,False,second",
        "bcast,c,2,1,8,10,False,second",
        "bcast,x,2,1,8,15,True,second",
        "bcast,a,4,1,8,10,False,first",  # two runs alike: the median over them
        "bcast,b,4,1,8,20,False,first",
        "bcast,a,4,1,8,30,False,second",
        "bcast,b,4,1,8,40,False,second",
        "bcast,a,8,1,8,10,False,first",  # nothing to choose from
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([f"{HEADER},run_id", *rows]) + "\n")
    with pytest.raises(InputError, match="at least two algorithms"):
        load_grids([path])
    [found] = _grids_of(path)
    assert [scenario.nodes for scenario in found.scenarios] == [2, 4]
    np.testing.assert_allclose(found.time_s * 1e6, [[30, 20, 10], [20, 30, NAN]])
    np.testing.assert_allclose(found.default_s * 1e6, [15, NAN])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (HEADER, "no rows"),
        ("collective,algorithm\nbcast,a\n", "no column nodes, ppn, msg_bytes, time_us"),
        (HEADER.replace("time_us", "time_ms") + "\nbcast,a,2,1,8,1,\n", "no column time_us, but time_ms"),
        (f"{HEADER}\nbcast,a,2,1,8,1.5,\nbcast,b,2,1,8,fast,\n", "row 2: time_us is 'fast'"),
        (f"{HEADER}\nbcast,a,2,1,8,-1,\n", "row 1: time_us is -1"),
        (f"{HEADER}\nbcast,a,0,1,8,1,\n", "row 1: nodes is 0"),
        (f"{HEADER}\nbcast,a,2,1.5,8,1,\n", "row 1: ppn is 1.5"),
        (f"{HEADER}\nbcast,a,2,1,64KiB,1,\n", "row 1: msg_bytes is '64KiB'"),
        (f"{HEADER}\nbcast,a,2,1,8,1,perhaps\n", "row 1: is_default is 'perhaps'"),
        (f"{HEADER}\nMPI_Sendrecv,a,2,1,8,1,\n", "unknown collectives: sendrecv"),
        (f"{HEADER}\nbcast,a,2,1,8,0.000005,\n", "seconds"),
        (f"{HEADER}\nbcast,a,2,1,1048576,0.1,\nbcast,a,2,1,8,0.1,\n", "milliseconds"),
        (f"{HEADER}\nbcast,a,2,1,8,,\n", "no row has a time_us"),
    ],
)
def test_a_fault_in_a_table_is_named_with_its_row_and_value(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_something_else_or_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.csv", "t.csv.gz"):
        (tmp_path / name).write_bytes(b"\x89PNG\x0d\x0a\x1a\x0a\x00\xff\xfe" * 9)
    for name in ("t.parquet", "t.csv", "t.csv.gz", "missing.csv"):
        with pytest.raises(InputError) as caught:
            read_table(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_names_of_collectives_and_empty_times_are_read_kindly(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}\nMPI_Bcast,a,2.0,1,8,5,\nbcast,b,2,1,8,,\nBcast,c,2,1,8,6,true\n")
    read = read_table(path)
    assert list(read.collective) == ["bcast", "bcast"]
    assert list(read.is_default) == [False, True]
    assert list(read.nodes) == [2, 2]
