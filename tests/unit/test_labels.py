"""Which algorithm a tuning table names, learned from other tables: what `make bench-labels` reports."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from colltune_study.research import labels as bench

DATA = Path(__file__).parents[2] / "benchmarks" / "data"


@pytest.fixture(scope="module")
def own() -> pd.DataFrame:
    return bench.read(DATA, "alltoall")


def test_hardware_is_missing_where_it_is_unknown_and_not_zero(own):
    assert own[bench.HARDWARE].min().min() > 0.0
    assert own.loc[own.machine == "AMD_EPYC_VENUS", "l3_mib"].isna().all()


def test_no_split_is_judged_by_what_it_learned_from(own):
    parts = bench.splits(own)
    for split, some in parts.items():
        for train, test in some:
            assert not set(train) & set(test), split
    assert not any(set(own.machine.iloc[train]) & set(own.machine.iloc[test]) for train, test in parts["cluster"])
    [(train, test)] = parts["node"]
    assert own.nodes.iloc[train].max() < own.nodes.iloc[test].min()


def test_two_tables_of_one_machine_bound_what_can_be_learned():
    rows = [("m", channel, 1.0, 1.0, 1.0, size, name) for size, names in ((1.0, "aa"), (2.0, "ab"))
            for channel, name in zip("xy", names, strict=True)]  # fmt: skip
    columns = ["machine", "channel", "nodes", "ppn", "ranks", "msg_bytes", "algorithm"]
    assert bench.ceiling(pd.DataFrame(rows, columns=columns)) == 0.5


def test_what_decides_the_algorithm_is_the_most_important():
    random = np.random.default_rng(0)
    made = pd.DataFrame(random.normal(size=(300, len(bench.COLUMNS))), columns=bench.COLUMNS)
    made["algorithm"] = np.where(made.msg_bytes > 0.0, "ring", "bruck")
    made["machine"] = random.integers(0, 6, 300).astype(str)
    forest = bench.learners()["forest"][0]
    assert bench.accuracy(forest, made, bench.splits(made)["random"]) > 0.9
    for values in bench.importances(forest, made).values():
        assert next(iter(values)) == "msg_bytes"
