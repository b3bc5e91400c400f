"""What benchmarks/measured_twice.py says that one run of a cluster loses by the times of another one."""

import numpy as np

import measured_twice as bench


def test_single_runs_are_compared_both_ways():
    by_run = np.array([[1.0, 2.0], [3.0, 1.0]])
    assert len(list(bench.pairs_of(by_run, halves=False))) == 2


def test_halves_are_medians_of_what_every_run_measured():
    by_run = np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 9.0], [1.0, 2.0, np.nan], [1.0, 4.0, 9.0]])
    found = list(bench.pairs_of(by_run, halves=True))
    assert len(found) == 6  # two of four
    here, there = found[0]
    assert here[:2].tolist() == [2.0, 2.0]
    assert there[:2].tolist() == [1.0, 3.0]
    assert all(np.isnan(chosen[2]) and np.isnan(paid[2]) for chosen, paid in found)
    assert not list(bench.pairs_of(by_run[:3], halves=True))


def test_half_of_the_runs_of_a_cluster_loses_by_the_other_half():
    found = bench.slowdowns(bench.DATA / "mpiadvance_tuolumne.csv.gz", halves=True)
    assert len(found["alltoall"]) == 60
    assert all(one >= 1.0 for lost in found["alltoall"] for one in lost)
    assert max(map(max, found["alltoall"])) > 2.0
