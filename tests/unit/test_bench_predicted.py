"""How sure predictions without a measurement are on a left-out cluster: what benchmarks/bench_predicted.py reports."""

import numpy as np
import pytest

import bench_predicted as bench
from colltune.predict.pair_kernel import PRIOR_THETA


def one(mean: float, std: float, true: float):
    return bench.Compared(np.array([mean]), np.array([std]), np.array([true]))


def test_little_is_handed_over_on_a_left_out_cluster_and_nothing_at_one_percent_loses():
    (case,) = (case for case in bench.cases() if case.name == "pico_marenostrum5/allgather")
    found = bench.compared(case, PRIOR_THETA)
    assert len(found) == int(np.isfinite(case.grid.time_s).sum())
    assert bench.handed_over(found, 0.01)["lost"] == 0
    more = bench.handed_over(found, 0.3)
    assert more["handed_over"] >= bench.handed_over(found, 0.1)["handed_over"]
    assert more["handed_over"] > 0
    assert more["speedup"] > 1.0


def test_what_is_handed_over_is_paid_by_the_recorded_times():
    sure, wrong, unsure = one(-1.0, 0.01, -0.7), one(-1.0, 0.01, 0.7), one(-1.0, 2.0, -1.0)
    row = bench.handed_over([sure, wrong, unsure], 0.01)
    assert (row["defaults"], row["handed_over"], row["lost"]) == (3.0, 2.0, 1.0)
    assert row["speedup"] == pytest.approx(1.0)


def test_the_table_with_most_losses_is_told_beside_the_mean():
    # One in ten is predicted to lose; of one table none does, of the other all.
    tables = {"good": [one(-0.7, 0.45, -1.0)] * 20, "bad": [one(-0.7, 0.45, 1.0)] * 20}
    (row,) = bench.reliability(tables)
    assert 0.05 < row["predicted"] < 0.15
    assert (row["observed"], row["worst"], row["tables"]) == (0.5, 1.0, 2.0)


def test_the_plot_is_drawn(tmp_path):
    row = {"predicted": 0.1, "observed": 0.05, "worst": 0.2}
    bench.draw([row], tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
