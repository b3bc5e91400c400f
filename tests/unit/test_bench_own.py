"""The arithmetic and the tables of the benchmarks, and predictions of clusters that were left out."""

import argparse
import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

import application_rows
import bench_gate
import bench_own
import bench_predicted
import bench_variance
import judge_osu
from application_rows import HEAD, Program, Steps, cost_figures, cost_rows, figures, programs, ratio, row, saved_by_all
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.judge.verdict import compare_all
from colltune.store.earlier import GAIN, HISTORY
from colltune.store.journal import Journal
from colltune_study.training.pair_kernel import PRIOR_THETA

pytest.importorskip("scipy")

HERE = Environment("mpich", "5.0.2", "0" * 64, "namespaces", 8, 2, "single")
RING, TREE = Choice("ring"), Choice("tree")
SIZES = (64, 128, 256)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where bench_own.py finds what it kept, of the directory that it runs in."""
    monkeypatch.chdir(tmp_path)
    return bench_own.KEPT


def record(place: Path, launches: int, rounds: int, deviations: tuple[float, float, float, float]) -> None:
    """Of calls whose ring is 1.25 times as fast as the default, and whose tree is as fast."""
    together, by_choice, in_round, rest = deviations
    random = np.random.default_rng(1)
    gains = {DEFAULT: 0.0, RING: math.log(1.25), TREE: 0.0}
    place.mkdir(parents=True)
    for number in range(launches):
        with Journal.create(place / f"launch-{number + 1}.jsonl", HERE) as journal:
            for size in SIZES:
                of_launch = together * random.standard_normal()
                own = {one: by_choice * random.standard_normal() for one in gains}
                for _ in range(rounds):
                    of_round = in_round * random.standard_normal()
                    for choice, gain in gains.items():
                        log_s = math.log(1e-4) - gain + of_launch + own[choice] + of_round
                        time_s = math.exp(log_s + rest * random.standard_normal())
                        scenario = Scenario("bcast", 8, 2, size)
                        journal.append([Sample(scenario, choice, Status.OK, (time_s,), osu_mean_s=0.5 * time_s)])


def test_the_deviations_that_times_were_made_with_are_found(kept: Path) -> None:
    truth = (0.3, 0.1, 0.07, 0.05)
    record(kept / "8x2", 40, 8, truth)
    made = bench_variance.of_shape("8x2")
    parts = [made[f"{part}_bcast_8x2"] for part in ("launch_together", "launch_own", "round_together", "round_own")]
    assert parts == pytest.approx(truth, rel=0.25)
    assert made["launches_8x2"] == 40
    assert made["believes_round_bcast_8x2"] > made["gets_launch_bcast_8x2"] >= made["gets_round_bcast_8x2"]
    assert made["best_bcast_8x2"] == pytest.approx(1.25, rel=0.06)


def test_a_call_without_a_rule_counts_as_one_and_the_best_is_judged_in_other_launches(kept: Path) -> None:
    record(kept / "8x2", 6, 2, (0.3, 0.0, 0.0, 0.0))
    for number, ruled in enumerate((1.2, 1.44, 1.3)):
        place = kept / f"8x2-5m-{number + 1}"
        place.mkdir()
        judged = {"osu_points": 4, "osu_ruled": 2, "osu_geomean_ruled": ruled, "osu_slower": number}
        (place / "osu.json").write_text(json.dumps(judged))
    made = bench_own.figures(argparse.Namespace(plan=[bench_own.Plan.parse("8x2:5m:3")]))
    assert made["geomean_5m_8x2"] == pytest.approx(math.sqrt(1.3), abs=1e-3)
    assert made["best_8x2"] == pytest.approx(1.25, abs=1e-3)
    assert made["captured_5m_8x2"] == pytest.approx(0.5 * math.log(1.3) / math.log(1.25), abs=1e-3)
    assert (made["slower"], made["decided_share"], made["tunings_5m_8x2"]) == (3, 0.5, 3)


def test_times_of_launches_that_were_kept_are_read_again_and_a_torn_line_is_not(kept: Path) -> None:
    path = kept.parent / "osu.jsonl"
    path.parent.mkdir()
    judge_osu.record(path, "0 tuned bcast 8 2", [1e-4, 2e-4])
    with path.open("a") as file:
        file.write('{"1 tuned bcast 8 2": [1e-4, ')
    assert judge_osu.recorded(path) == {"0 tuned bcast 8 2": [1e-4, 2e-4]}
    assert judge_osu.recorded(None) == {}


def program(code: str) -> Program:
    return Program(code, "mpich", ["x"], code, "ours", "small")


def test_a_gain_is_of_the_logarithms_of_the_rounds_and_its_interval_is_students() -> None:
    factors = [math.exp(power) for power in (1.0, 2.0, 3.0)]
    ends = [math.log(end) for end in ratio(factors, [1.0] * 3)]
    assert ends == pytest.approx([2.0, 2.0 - 2.4841, 2.0 + 2.4841], abs=1e-3)
    assert ratio(factors[:2], [1.0] * 2) == (pytest.approx(math.exp(1.5)), None, None)
    steps = Steps(rules=1, default_s=[2.0, 4.0, 2.0], tuned_s=[1.0, 2.0, 1.0])
    assert steps.gain() == pytest.approx((2.0, 2.0, 2.0))
    assert Steps(default_s=[2.0, 8.0], tuned_s=[1.0, 2.0]).gain() == (pytest.approx(8.0**0.5), None, None)


def test_what_all_calls_would_save_grows_by_those_that_ran_by_default(tmp_path: Path) -> None:
    def cell(tuned: int, default: int, *ends: float | None) -> dict[str, object]:
        saved = dict(zip(("estimate", "low", "high"), ends, strict=True))
        return {"tuned_calls": tuned, "default_calls": default, "saved_s": saved}

    for number, cells in enumerate(([], [cell(50, 50, 1.0, 0.5, 2.0), cell(75, 25, 3.0, -3.0, None)])):
        place = tmp_path / HISTORY / f"2026112{number}"
        place.mkdir(parents=True)
        (place / GAIN).write_text(json.dumps({"cells": cells}))
        found = saved_by_all(tmp_path)
        assert found == ([] if not cells else [(pytest.approx(6.0), pytest.approx(-3.0), None)])


def test_measured_seconds_are_told_as_a_gain_and_overlap_with_whole_runs() -> None:
    steps = Steps(rules=1, default_s=[10.0] * 4, tuned_s=[7.9, 8.1, 8.0, 8.0])
    steps.measured = [(2.0, 1.5, 2.5), (0.5, 0.2, 0.7), (5.0, None, None)]
    assert steps.measured_gain((2.0, None, 5.0)) == pytest.approx([1.25, 0.0, 2.0])
    assert steps.agreeing() == 2
    assert steps.measured_gain((11.0, 1.0, 12.0))[2] == float("inf")


def test_figures_count_what_was_compared_and_what_had_nothing_to_gain() -> None:
    faster = Steps(rules=2, default_s=[2.0, 2.1, 2.0], tuned_s=[1.0, 1.05, 1.0])
    slower = Steps(rules=1, default_s=[1.0, 1.05, 1.0], tuned_s=[2.0, 2.1, 2.0])
    nothing, ended = Steps(rules=0, alltoallv=0), Steps(rules=3, failed="signal 11")
    rows = zip("abcd", (faster, slower, nothing, ended), strict=True)
    made = figures([(program(code), "4x2", steps) for code, steps in rows])
    assert (made["rows"], made["compared"], made["surely_slower"], made["surely_5_percent_faster"]) == (3, 2, 1, 1)
    assert made["geomean"] == pytest.approx(1.0)
    assert made["codes"] == 3


def test_a_code_counts_once_and_other_links_only_where_they_are_slower() -> None:
    times = [2.0, 2.0, 2.0]
    twice, four = (Steps(share=0.5, rules=1, default_s=times, tuned_s=[2.0 / gain] * 3) for gain in (2.0, 8.0))
    little = Steps(share=0.1, rules=1, default_s=times, tuned_s=[0.1] * 3)
    slow = Steps(share=0.9, rules=1, default_s=times, tuned_s=[4.0] * 3)
    rows = [("a", "4x2", twice), ("a", "8x1", four), ("b", "4x2", little), ("c", "4x2@100mbit", slow)]
    made = figures([(program(code), where, steps) for code, where, steps in rows])
    assert (made["codes"], made["codes_over_40_percent"], made["surely_slower"]) == (2, 1, 1)
    assert made["geomean_over_40_percent"] == pytest.approx(4.0)
    assert made["worst_gain"] == pytest.approx(2.0)


def test_what_being_there_costs_is_the_worst_upper_end() -> None:
    cost = {"default": [[1.0, 2.0]] * 3, "live": [[1.01, 2.0]] * 3, "profile": [[1.02, 2.2]] * 3}
    rows = [(program("a"), "4x2", Steps(cost=cost)), (program("b"), "4x2", Steps())]
    made = cost_figures(rows)
    assert (made["preload_cost"], made["preload_live"], made["preload_profile"]) == pytest.approx((0.02, 0.01, 0.02))
    assert made["preload_cost_processor"] == pytest.approx(0.1)
    assert cost_rows(*rows[0])[0] == "| a | 4 x 2 | live | 3 | 1 s | 1.010 (1.010 to 1.010) | 1.000 (1.000 to 1.000) |"
    assert cost_rows(*rows[1]) == []


def test_every_row_has_the_columns_of_the_head() -> None:
    columns = HEAD[0].count("|")
    for steps in (Steps(), Steps(rules=0), Steps(rules=1, failed="it ended"), Steps(share=0.5, rules=2, alltoallv=1)):
        assert row(program("X"), "4x2", steps).count("|") == columns
    steps = Steps(rules=1, tuning_s=60.0, default_s=[2.0, 2.0, 2.0], tuned_s=[1.0, 1.0, 1.0])
    assert "| 2.000 (2.000 to 2.000) |" in row(program("X"), "8x1", steps)
    assert row(program("X"), "8x1", steps).endswith("| 60 s | 1.00 |")


def test_the_programs_are_described_in_full() -> None:
    known = programs()
    assert len({program.code for program in known.values()}) >= 12
    assert len(application_rows.described(known)) == len(known) + 2
    for name, program in known.items():
        assert program.mpi in ("mpich", "openmpi"), name
        assert all((program.title, program.command, program.source, program.why)), name


def test_what_is_slower_by_itself_and_beyond_the_interval_of_all(tmp_path: Path) -> None:
    steps = [1.0 + 0.01 * step for step in range(8)]
    sides = {
        (Scenario("bcast", 8, 1, 64), RING): ([2.0 * t for t in steps], steps),
        (Scenario("bcast", 8, 1, 128), DEFAULT): (steps, steps),
        (Scenario("alltoall", 8, 1, 64), RING): (steps, [1.5 * t for t in steps]),
    }
    found = compare_all(sides)
    figures = judge_osu.figures(found)
    means = [figures[f"osu_geomean{of}"] for of in ("", "_ruled", "_bcast")]
    assert means == pytest.approx([(2.0 / 1.5) ** (1 / 3), (2.0 / 1.5) ** 0.5, 2.0**0.5], abs=2e-3)
    counts = [figures[f"osu_{of}"] for of in ("points", "slower", "faster", "slower_alone", "faster_alone")]
    assert counts == [3, 1, 1, 1, 1]
    judge_osu.write(tmp_path / "osu.csv", found)
    with (tmp_path / "osu.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["choice"] for row in rows] == ["ring", "default", "ring"]
    assert float(rows[2]["high"]) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["MODES", "NOISE", "LAUNCHES"])
@pytest.mark.parametrize("row", ["threshold", "equal"])
def test_of_regions_without_a_gain_none_is_kept(row: str, noise: str) -> None:
    counts = bench_gate.judge_file(bench_gate.ROWS[row], getattr(bench_gate, noise), seed=1)
    assert (counts["null"], counts["wrong"], counts["harmed"]) == (bench_gate.REGIONS, 0, 0)


def test_of_regions_that_gain_nearly_all_are_kept_and_those_beside_them_are_not() -> None:
    counts = bench_gate.judge_file(bench_gate.ROWS["half"], bench_gate.NOISE, seed=1)
    assert bench_gate.figures_of("half", counts)["half_kept"] >= 95.0
    assert (counts["wrong"], counts["bound_missed"]) == (0, 0)


def test_a_wrong_rule_is_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where less is asked of them, regions are kept that gain nothing."""
    audit = bench_gate.Audit
    monkeypatch.setattr(bench_gate, "Audit", lambda **given: audit(**{**given, "threshold": 0.9}))
    counts = bench_gate.judge_file(bench_gate.ROWS["equal"], bench_gate.NOISE, seed=1)
    figures = bench_gate.figures_of("equal", counts)
    assert counts["wrong"] > 3
    assert figures["equal_wrong"] == pytest.approx(100.0 * counts["wrong"] / bench_gate.REGIONS, abs=1e-3)
    assert figures["equal_wrong"] < figures["equal_wrong_at_most"] < 100.0


def one(mean: float, std: float, true: float, inside: bool = True):
    return bench_predicted.Compared(np.array([mean]), np.array([std]), np.array([true]), inside)


@pytest.fixture(scope="module")
def allgather():
    return {"allgather": bench_predicted.grids_of(bench_predicted.PICO)["allgather"]}


def test_a_cluster_is_predicted_from_the_others_alone(allgather):
    ((name, grid, others),) = bench_predicted.cases(allgather, "pico_marenostrum5")
    assert name == "pico_marenostrum5/allgather"
    assert set(others) == {"pico_leonardo", "pico_lumi"}
    ((_, _, fewer),) = bench_predicted.cases(allgather, "pico_marenostrum5", without="pico_lumi")
    assert set(fewer) == {"pico_leonardo"}
    found = bench_predicted.left_out(grid, others, PRIOR_THETA)
    assert len(found.turns) <= int(np.isfinite(grid.time_s).sum())
    assert len(found.recorded) == int(np.isfinite(grid.default_s).sum())
    assert any(default is not None for default in found.recorded)
    few, many = (bench_predicted.handed_over(found.turns, risk) for risk in (0.05, 0.4))
    assert few["lost"] == 0 <= few["replaced"] <= many["replaced"]
    assert many["gain"] > 0.0


def test_what_is_handed_over_is_paid_by_the_recorded_times():
    sure, wrong, unsure, outside = one(-1, 0.01, -0.7), one(-1, 0.01, 0.7), one(-1, 2, -1), one(-1, 0.01, -1, False)
    row = bench_predicted.handed_over([sure, wrong, unsure, outside, None], 0.01)
    assert row == {"defaults": 5.0, "replaced": 2.0, "lost": 1.0, "gain": pytest.approx(0.0)}
    good = {"defaults": 5.0, "replaced": 2.0, "lost": 0.0, "gain": 5 * np.log(1.2)}
    both = bench_predicted.shares({"a": row, "b": good})
    assert both["replaced_share"] == 0.4
    assert (both["lost_share"], both["lost_share_worst_table"]) == (0.25, 0.5)
    assert both["gain_all"] == pytest.approx(1.2**0.5)


def test_the_risk_is_chosen_without_the_cluster_that_is_left_out(monkeypatch):
    asked = []

    def predicted(_tables, cluster, _theta, without=""):
        asked.append((cluster, without))
        return {cluster: bench_predicted.LeftOut([one(-1.0, 0.4, -1.0)] * 9 + [one(-1.0, 0.7, 1.0)], [], 0.0)}

    monkeypatch.setattr(bench_predicted, "predicted", predicted)
    # At a risk of 0.1 only what gains is replaced; at the next the tenth, which loses, is too.
    assert bench_predicted.risk_of({}, "a", ["a", "b", "c"], PRIOR_THETA) == bench_predicted.RISKS[1]
    assert asked == [("b", "a"), ("c", "a")]


def test_constants_are_scaled_by_what_the_hardware_does():
    nodes = {
        name: {"fabric": "infiniband", "link_gbits": gbits, "links": 1, "memory_gbytes": 200, "cores": 32, "l3_mib": 32}
        for name, gbits in (("slow", 100.0), ("fast", 400.0))
    }
    own = {"slow": np.full(len(bench_predicted.TERMS), 4.0)}
    scaled = bench_predicted.by_hardware(nodes, "fast", "", own)
    ratio = dict(zip(bench_predicted.TERMS, scaled / own["slow"], strict=True))
    assert ratio["node_bytes"] == pytest.approx(0.25)
    assert ratio["network_rounds"] == pytest.approx(1.0)
    assert bench_predicted.by_hardware(nodes, "fast", "slow", own) == pytest.approx(own["slow"])
