"""Predictions without a measurement, on left-out clusters: what benchmarks/bench_predicted.py reports."""

import numpy as np
import pytest

import bench_predicted as bench
from colltune_study.training.pair_kernel import PRIOR_THETA


def one(mean: float, std: float, true: float, inside: bool = True):
    return bench.Compared(np.array([mean]), np.array([std]), np.array([true]), inside)


@pytest.fixture(scope="module")
def allgather():
    return {"allgather": bench.grids_of(bench.PICO)["allgather"]}


def test_a_cluster_is_predicted_from_the_others_alone(allgather):
    ((name, grid, others),) = bench.cases(allgather, "pico_marenostrum5")
    assert name == "pico_marenostrum5/allgather"
    assert set(others) == {"pico_leonardo", "pico_lumi"}
    ((_, _, fewer),) = bench.cases(allgather, "pico_marenostrum5", without="pico_lumi")
    assert set(fewer) == {"pico_leonardo"}
    found = bench.left_out(grid, others, PRIOR_THETA)
    assert len(found.turns) <= int(np.isfinite(grid.time_s).sum())
    assert len(found.recorded) == int(np.isfinite(grid.default_s).sum())
    assert any(default is not None for default in found.recorded)
    few, many = (bench.handed_over(found.turns, risk) for risk in (0.05, 0.4))
    assert few["lost"] == 0 <= few["replaced"] <= many["replaced"]
    assert many["gain"] > 0.0


def test_what_is_handed_over_is_paid_by_the_recorded_times():
    sure, wrong, unsure, outside = one(-1, 0.01, -0.7), one(-1, 0.01, 0.7), one(-1, 2, -1), one(-1, 0.01, -1, False)
    row = bench.handed_over([sure, wrong, unsure, outside, None], 0.01)
    assert row == {"defaults": 5.0, "replaced": 2.0, "lost": 1.0, "gain": pytest.approx(0.0)}
    good = {"defaults": 5.0, "replaced": 2.0, "lost": 0.0, "gain": 5 * np.log(1.2)}
    both = bench.shares({"a": row, "b": good})
    assert both["replaced_share"] == 0.4
    assert (both["lost_share"], both["lost_share_worst_table"]) == (0.25, 0.5)
    assert both["gain_all"] == pytest.approx(1.2**0.5)


def test_the_risk_is_chosen_without_the_cluster_that_is_left_out(monkeypatch):
    asked = []

    def predicted(_tables, cluster, _theta, without=""):
        asked.append((cluster, without))
        return {cluster: bench.LeftOut([one(-1.0, 0.4, -1.0)] * 9 + [one(-1.0, 0.7, 1.0)], [], 0.0)}

    monkeypatch.setattr(bench, "predicted", predicted)
    # At a risk of 0.1 only what gains is replaced; at the next the tenth, which loses, is too.
    assert bench.risk_of({}, "a", ["a", "b", "c"], PRIOR_THETA) == bench.RISKS[1]
    assert asked == [("b", "a"), ("c", "a")]


def test_constants_are_scaled_by_what_the_hardware_does():
    nodes = {
        name: {"fabric": "infiniband", "link_gbits": gbits, "links": 1, "memory_gbytes": 200, "cores": 32, "l3_mib": 32}
        for name, gbits in (("slow", 100.0), ("fast", 400.0))
    }
    own = {"slow": np.full(len(bench.TERMS), 4.0)}
    scaled = bench.by_hardware(nodes, "fast", "", own)
    ratio = dict(zip(bench.TERMS, scaled / own["slow"], strict=True))
    assert ratio["node_bytes"] == pytest.approx(0.25)
    assert ratio["network_rounds"] == pytest.approx(1.0)
    assert bench.by_hardware(nodes, "fast", "slow", own) == pytest.approx(own["slow"])
