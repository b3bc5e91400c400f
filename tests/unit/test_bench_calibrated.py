"""A few measurements of a left-out cluster, on recorded tables: what benchmarks/bench_calibrated.py reports."""

import numpy as np
import pytest

import bench_calibrated as bench
from colltune.predict.pair_kernel import PRIOR_THETA


@pytest.fixture(scope="module")
def left_out():
    """The two clusters of which an allgather was measured that others predict worst."""
    return [case for case in bench.cases() if case.name in ("pico_lumi/allgather", "pico_marenostrum5/allgather")]


def test_measuring_a_left_out_cluster_is_no_worse_than_not_measuring(left_out):
    assert len(left_out) == 2
    rows = [bench.run(case, PRIOR_THETA, 0, 24, 10.0) for case in left_out]
    before, after = (np.mean([row[name] for row in rows]) for name in ("slowdown_0", "slowdown"))
    assert after <= before
    assert after < 1.0 + 0.6 * (before - 1.0)
    for row in rows:
        assert row["pairs"] <= 24
        assert row["spent_s"] <= 10.0


def test_what_replaces_the_default_seldom_loses(left_out):
    figures, gaps = bench.run_with_default(left_out[1], PRIOR_THETA, 0, 40, 10.0)
    assert figures["handed_over"] >= 1
    assert figures["lost"] == 0
    assert figures["slowdown"] <= figures["default"]
    assert gaps.shape[1] == 3


def test_probabilities_are_compared_with_what_happened():
    sure_gain, sure_loss = [-1.0, 0.05, -0.9], [1.0, 0.05, 1.1]
    rows = bench.reliability(np.array([sure_gain] * 3 + [sure_loss] * 2))
    assert [row["choices"] for row in rows] == [3.0, 2.0]
    assert [row["observed"] for row in rows] == [0.0, 1.0]
    assert rows[0]["predicted"] < 0.01 < 0.99 < rows[1]["predicted"]
