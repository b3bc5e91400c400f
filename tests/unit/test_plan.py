"""What a tuning costs, held against what measuring then took, and what a budget covers."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_bench import MemoryBench, MemoryLibrary

import colltune
from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario, Status
from colltune.core.space import Point
from colltune.core.topology import Top, Topology
from colltune.measure.contract import Effort
from colltune.prove.replay.on_workbench import ReplaySlice, short_limit_s
from colltune.prove.time_plan import TimePlan
from colltune.search.extrapolate import Extrapolation
from colltune.session.plan import Costs, LaunchCosts, calibrate, calibration_of, costs_of
from colltune.session.tuning.options import TuneOptions
from colltune.session.tuning.tune import tune
from commands import colltune as command


def truth(scenario: Scenario, choice: Choice) -> float:
    """A tree: 2 us for each rank, and 1 ns for each byte."""
    del choice
    return 2e-6 * scenario.ranks + 1e-9 * scenario.size_bytes


@pytest.fixture(scope="module")
def calibration() -> LaunchCosts:
    return calibrate(MemoryBench(truth, nodes=4, ppn=4), ["bcast"])


def costs(calibration: LaunchCosts, nodes: int, ppn: int, collective: str = "bcast", **more: Any) -> Costs:
    return costs_of(MemoryBench(truth).catalogue, calibration, [collective], (nodes, ppn), **more)


def test_the_grid_takes_about_what_was_planned(calibration: LaunchCosts) -> None:
    """Calibrated on 4 x 4, and held against measuring every pair of 4 x 4. This source repeats large calls as often as
    small ones, which the agent does not: so within a factor of two."""
    bench = MemoryBench(truth, nodes=4, ppn=4)
    planned = costs(calibration, 4, 4)
    source, scenarios = bench.launch(1), bench.space("bcast", 1, 1 << 20).scenarios
    points = [Point(scenario, bench.catalogue.legal(scenario)) for scenario in scenarios]
    took_s = sum(s.cost_s for _, samples in source.measure(points, Effort()) for s in samples)
    assert planned.scenarios == len(scenarios)
    assert planned.pairs == sum(len(point.choices) for point in points)
    assert 0.5 * took_s < planned.grid_s < 2.0 * took_s


def test_what_other_programs_disturbed_plans_nothing(calibration: LaunchCosts) -> None:
    """A grid that takes no time would be measured within any budget, and no region be proven."""
    samples = tuple(replace(one, status=Status.DISTURBED) for one in calibration.samples)
    with pytest.raises(InputError, match=rf"disturbed all {len(samples)} measurements.*Plan on idle processors"):
        costs(replace(calibration, samples=samples), 4, 4)


def test_a_tree_of_one_latency_and_one_bandwidth_is_found() -> None:
    """Measured on 8 ranks, and asked about 32,768: 2 us for each doubling and 1 ns for each byte."""

    def tree(scenario: Scenario, choice: Choice) -> float:
        del choice
        return 2e-6 * math.log2(scenario.ranks) + 1e-9 * scenario.size_bytes

    effort = Effort()
    found = Extrapolation.of(calibrate(MemoryBench(tree, nodes=2, ppn=4), ["bcast"]).samples, effort)
    ping = found.pings["bcast", True]
    assert ping.round_s == pytest.approx(2e-6, rel=0.05)
    assert ping.byte_s == pytest.approx(1e-9, rel=0.05)
    large = Scenario("bcast", 512, 64, 1 << 20)
    assert ping.time_s(large) == pytest.approx(2e-6 * 15 + 1e-9 * (1 << 20), rel=0.05)
    assert found.expect_s(large) == found.overhead * effort.expected_cost_s(ping.time_s(large))
    # A collective that was not measured is taken to be like the others.
    assert found.expect_s(Scenario("reduce", 512, 64, 1 << 20)) == found.expect_s(large)


def test_more_ranks_cost_more(calibration: LaunchCosts) -> None:
    small, wide, deep = (costs(calibration, *shape) for shape in ((4, 4), (64, 4), (64, 16)))
    assert small.pairs < wide.pairs < deep.pairs
    assert small.grid_s < wide.grid_s < deep.grid_s
    assert small.least_s < wide.least_s == deep.least_s
    assert deep.core_hours(3600.0) == 64 * 16
    assert [one.core_hours for one in deep.bought] == [one.total_s * 64 * 16 / 3600 for one in deep.bought]


def test_what_is_bought_grows_with_the_budget_up_to_the_whole(calibration: LaunchCosts) -> None:
    whole_s = costs(calibration, 64, 16).whole_s
    budgets_s = [share * whole_s for share in (0.001, 0.3, 0.6, 1.001, 2.0)]
    bought = costs(calibration, 64, 16, budgets_s=budgets_s).bought
    measured = [one.measured for one in bought]
    assert measured == sorted(measured)
    assert measured[0] < measured[1] < measured[2] < 1.0 == measured[3] == measured[4]
    assert [one.regions for one in bought] == sorted(one.regions for one in bought)
    assert bought[0].total_s > budgets_s[0]  # a tuning takes that at least
    assert all(one.total_s == one.budget_s for one in bought[1:])


def test_where_the_switches_are_known_points_are_measured_and_compared_at_once(calibration: LaunchCosts) -> None:
    """Sixteen nodes on four switches, and 64 on sixteen: a point on several nodes has their switches."""
    hosts = [str(number) for number in range(16)]
    paths = [[str(number // 4)] for number in range(16)]
    known = replace(calibration, topology=Topology.from_paths(hosts, paths, Top.CROSSBAR))
    assert {part: known.at_once(64)[part] for part in (1, 2, 4, 6, 16, 32, 64)} == {
        1: 64, 2: 16, 4: 16, 6: 8, 16: 4, 32: 2, 64: 1,
    }  # fmt: skip
    shared = replace(calibration, topology=Topology.from_paths(hosts, paths, Top.SHARED))
    assert [shared.at_once(64)[part] for part in (1, 2, 6)] == [64, 16, 1]
    alone, some, more = (costs(one, 64, 4) for one in (calibration, shared, known))
    assert alone.grid_s > some.grid_s > more.grid_s
    assert alone.bought[0].regions <= more.bought[0].regions
    assert any("at once" in text for text in more.remarks)


def test_the_launch_is_measured_and_a_longer_one_makes_every_tuning_longer(calibration: LaunchCosts) -> None:
    assert calibration.launch_s == pytest.approx(0.5, abs=0.01)
    assert calibration.launch_on(64) == pytest.approx(0.5 * (1 + 6) / (1 + 2), abs=0.01)
    for files, launches in ((False, 4), (True, 10)):  # the first, three for the proof, and those that compare files
        known = replace(calibration, files=files)
        short, long = (costs(known, 64, 4, launch_s=one) for one in (1.0, 21.0))
        assert (long.least_s - short.least_s) / 20.0 == pytest.approx(launches)


def test_what_was_assumed_is_said(calibration: LaunchCosts) -> None:
    assert costs(calibration, 4, 4).remarks == ()
    far = " ".join(costs(calibration, 512, 64).remarks)
    assert "extrapolated from 4 x 4" in far
    assert "a launch took 500 ms" in far
    one_node = calibrate(MemoryBench(truth, nodes=1, ppn=4), ["bcast"])
    assert "the network is not in it" in costs(one_node, 512, 64, launch_s=9.0).remarks[0]


def test_what_does_not_fit_into_memory_is_not_planned(calibration: LaunchCosts) -> None:
    """1 MiB to each of 1,024 ranks, from each of 16 ranks of a node, both ways: 32 GiB."""
    ample, scarce = (costs(calibration, 64, 16, "alltoall", node_bytes=memory) for memory in (2**40, 2**36))
    assert scarce.scenarios < ample.scenarios
    assert scarce.grid_s < ample.grid_s
    assert any("do not fit" in text for text in scarce.remarks)
    assert not any("do not fit" in text for text in ample.remarks)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned")
    tune(MemoryLibrary(truth), TuneOptions(["bcast"], 1, 4096, 30.0), out)
    return out


def test_an_earlier_tuning_calibrates(tuned: Path) -> None:
    calibration = calibration_of(tuned)
    assert (calibration.nodes, calibration.ppn, calibration.files) == (2, 4, True)
    assert calibration.samples
    found = colltune.plan("bcast", calibrated_by=tuned, nodes=16, ppn=8, budgets=["10m", 60.0], max_size="4KiB")
    assert (found.nodes, found.ppn, found.collectives) == (16, 8, ("bcast",))
    assert [one.budget_s for one in found.bought] == [600.0, 60.0]
    assert found.least_s >= calibration.other_s + 10 * calibration.launch_s


def test_the_command_prints_a_row_for_each_budget(tuned: Path) -> None:
    options = ["--from", str(tuned), "--nodes", "16", "--ppn", "8", "--budget", "10m", "--budget", "1h"]
    lines = command("plan", "bcast", *options, code=0).stdout.splitlines()
    assert lines[0] == "16 x 8 ranks: bcast"
    assert [line.split()[0] for line in lines if "up to" in line] == ["10m", "1h"]
    assert any("21.3" in line for line in lines)  # 600 s of 128 cores
    again = command("plan", "bcast", *options[:6], "--budget", "1s", "--budget", "2s", code=0).stdout
    (line,) = [line for line in again.splitlines() if "up to" in line]
    assert line.split()[0].endswith("+")  # both would be the shortest tuning


def test_what_cannot_calibrate_is_refused(tmp_path: Path) -> None:
    measured = Path(__file__).parents[1] / "recorded" / "tunings" / "predicted"
    with pytest.raises(InputError, match="says nothing of the time"):
        colltune.plan("bcast", calibrated_by=measured)
    with pytest.raises(InputError, match=r"tuning\.json"):
        colltune.plan("bcast", calibrated_by=tmp_path)


SECONDS = st.floats(0.01, 1e4)


@given(SECONDS, SECONDS, SECONDS, SECONDS, st.booleans())
def test_the_stages_come_one_after_another_and_fit_the_whole(
    budget_s: float, set_up_s: float, launch_s: float, replay_s: float, proven: bool
) -> None:
    plan = TimePlan(budget_s, 100.0, set_up_s, launch_s, replay_s, proven)
    assert plan.total_s == max(budget_s, plan.fixed_cost_s)
    assert 100.0 + set_up_s < plan.measured_by_s < plan.proven_by_s < 100.0 + plan.total_s
    # What is left for the proof has room for its fewest launches.
    assert plan.proven_by_s - plan.measured_by_s >= plan.launches * launch_s
    assert (plan.extension is None) == (budget_s >= plan.fixed_cost_s)
    assert plan.budget_for(10.0) > plan.total_s + 10.0


def test_a_budget_below_the_fixed_cost_is_extended_and_the_line_says_why() -> None:
    plan = TimePlan(budget_s=5.0, began_s=0.0, set_up_s=2.0, launch_s=1.1, replay_s=3.0)
    assert plan.fixed_cost_s == pytest.approx(2.0 + 1.1 + 1.0 + 9 * 1.1 + 2.0 + 3.0 + 1.5)
    assert plan.extension == (
        "a tuning with proof takes at least 20.5 s here: 10 launches of 1.1 s, and 3 s for the conformance check; the "
        "budget of 5 s is extended to that"
    )
    assert TimePlan(60.0, 0.0, 2.0, 1.1, 3.0).extension is None


def test_a_slice_of_the_replay_tells_what_the_whole_takes_which_may_take_several_times_that() -> None:
    """By cases that are run again; of eight rank counts, collectives without rules are run at three."""
    assert ReplaySlice(0.0, again_s=1.0, cases=100, rank_counts=8).whole_s(2.0, ruled=14) == pytest.approx(33.2)
    assert ReplaySlice(0.0, again_s=1.0, cases=100, rank_counts=8).whole_s(2.0, ruled=7) == pytest.approx(23.45)
    assert ReplaySlice(3.0, again_s=0.1, cases=100, rank_counts=8).whole_s(25.0, ruled=14) == pytest.approx(31.12)
    assert ReplaySlice(1.0, again_s=1.0, cases=0, rank_counts=8).whole_s(2.0, ruled=14) == 8.0
    assert ReplaySlice(1.0, again_s=0.0, cases=50, rank_counts=8).whole_s(2.0, ruled=14) == 8.0  # it was cut off
    assert short_limit_s(0.0) == short_limit_s(20.0) == 180.0
    assert short_limit_s(300.0) == 1200.0
