"""When a campaign counts as worse than a cold start in benchmarks/bench_prior.py."""

from dataclasses import replace

import numpy as np

import bench_prior as bench
from colltune_study.research.metrics import Metrics
from colltune_study.research.simulate import Run, Step


def runs(kind, slowdowns):
    """One run for each of ``slowdowns``, which it has from a cost of 1% on."""
    empty = Metrics(**dict.fromkeys(Metrics.__dataclass_fields__, 0.0))
    return [
        Run("grid", kind, seed, (Step(0.01, 0.1, replace(empty, slowdown=slowdown)),), None)
        for seed, slowdown in enumerate(slowdowns)
    ]


def test_a_campaign_is_worse_where_the_seeds_agree_that_it_is():
    cold = runs("cold", [1.02, 1.03, 1.04, 1.03, 1.02, 1.05, 1.03, 1.02, 1.04, 1.03])
    slower = runs("prior", [1.12, 1.13, 1.14, 1.13, 1.12, 1.15, 1.13, 1.12, 1.14, 1.13])
    assert bench.worse_at(slower, cold, 0.02) == {"interval": 1.0, "worst": 1.0}
    assert bench.worse_at(cold, slower, 0.02) == {"interval": 0.0, "worst": 0.0}
    assert bench.worse_at(slower, cold, 0.005) == {"interval": 0.0, "worst": 0.0}  # nothing is selected yet


def test_one_bad_seed_of_a_cold_start_hides_nothing_from_the_interval():
    cold = runs("cold", [1.02, 1.03, 1.04, 1.03, 1.02, 1.05, 1.03, 1.02, 1.04, 2.0])
    slower = runs("prior", [1.12, 1.13, 1.14, 1.13, 1.12, 1.15, 1.13, 1.12, 1.14, 1.13])
    assert bench.worse_at(slower, cold, 0.02) == {"interval": 1.0, "worst": 0.0}


def test_seeds_that_scatter_alike_are_not_worse():
    random = np.random.default_rng(0)
    some, others = (runs("any", random.lognormal(0.1, 0.1, 10)) for _ in range(2))
    assert bench.worse_at(some, others, 0.02)["interval"] == 0.0
    assert bench.worse_at(others, some, 0.02)["interval"] == 0.0


def test_the_figures_are_of_tables_on_which_all_three_ran():
    some = [*runs("cold", [1.01] * 3), *runs("prior", [1.01] * 3), *runs("wrong", [1.2] * 3)]
    alone = [replace(run, grid="other") for run in runs("cold", [1.01])]
    tables = {}
    figures = bench.campaigns_part([*some, *alone], tables)
    assert set(tables["reach"]) == {"grid"}
    assert figures["hybrid_tables"] == 1
    assert figures["hybrid_cost_ratio"] == 1.0
    assert figures["wrong_cost_ratio"] == 100.0  # never good enough: the whole cost
    assert (figures["hybrid_cost_ratio_worst"], figures["wrong_cost_ratio_worst"]) == (1.0, 100.0)
    assert figures["hybrid_worse_share"] == 0.0 < figures["wrong_worse_share"]
