"""Forests: their shape and seed, their variance and the stop by it, tuned hyperparameters, and labels of tables."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario
from colltune.core.space import Space
from colltune_study.research import labels as bench
from colltune_study.research.learners import trees
from colltune_study.research.learners.acclaim import AcclaimLearner, AcclaimProgramLearner, converged
from colltune_study.research.learners.fact import FactLearner
from colltune_study.research.learners.published import PublishedSettings, on_powers_of_two
from colltune_study.research.learners.trees import TreeShape, jackknife_variance
from colltune_study.research.learners.tuned_parameters import TunedFactLearner, _folds, _slowdown, tune
from colltune_study.testing import RING, TREE, drive, measured, small_space


def rows(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    inputs = np.column_stack([random.integers(0, 6, count), random.integers(0, 18, count)]).astype(np.float32)
    return inputs, np.log1p(inputs[:, 0]) + np.where(inputs[:, 1] > 9, inputs[:, 1], 2.0)


def test_a_tree_keeps_to_its_shape():
    inputs, output = rows()
    for tree in trees.grow(inputs, output, 5, 0, shape=trees.TreeShape(max_depth=3, min_samples_split=8)):
        assert tree.max_depth <= 3
        leaves = tree.children_left == -1
        assert tree.n_node_samples[~leaves].min() >= 8


def test_the_closed_form_is_the_jackknife_with_every_tree_left_out_once():
    trees = np.random.default_rng(0).normal(size=(20, 6))
    count = len(trees)
    left_out = np.array([np.delete(trees, i, axis=0).mean(axis=0) for i in range(count)])
    by_hand = (count - 1) / count * ((left_out - trees.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(jackknife_variance(trees), by_hand, rtol=1e-12)


def test_the_trees_are_those_of_the_forest_of_the_same_seed():
    """Which is fully grown, as each that is asked for no other shape."""
    inputs, output = rows()
    forest = RandomForestRegressor(6, random_state=3).fit(inputs, output)
    theirs = np.stack([tree.predict(inputs) for tree in forest.estimators_])
    np.testing.assert_array_equal(trees.predict(trees.grow(inputs, output, 6, 3), inputs), theirs)


def test_the_variance_has_converged_when_its_last_three_changes_are_small():
    assert not converged([9.0, 1.0, 1.0, 1.0], 0.01)  # four forests
    assert converged([9.0, 1.0, 1.0, 1.0, 1.0], 0.01)
    assert not converged([9.0, 1.0, 2.0, 2.0, 2.0], 0.01)


def test_a_feature_that_never_is_a_power_of_two_is_passed_over():
    scenarios = [Scenario("bcast", nodes, 12, size) for nodes in (2, 3) for size in (4, 6)]
    assert on_powers_of_two(scenarios, ("nodes", "ppn", "size_bytes")) == {scenarios[0]}
    assert on_powers_of_two(scenarios, ("size_bytes",)) == {scenarios[0], scenarios[2]}


SIZES = Space(
    "bcast",
    tuple(Scenario("bcast", nodes, 2, size) for nodes in (2, 4, 8, 16) for p in range(10) for size in (2 << p, 3 << p)),
    lambda _scenario: (RING, TREE),
)


def test_every_fifth_point_of_acclaim_has_a_size_near_by_that_is_no_power_of_two():
    points = drive(AcclaimLearner(SIZES, 1, PublishedSettings(trees=5)), 20)
    other = [number for number, point in enumerate(points, 1) if point.scenario.size_bytes % 3 == 0]
    assert set(other) <= {5, 10, 15, 20}
    assert len(other) >= 3
    assert all(point.choices == (RING, TREE) for point in points)


def test_fact_measures_other_sizes_once_no_power_of_two_is_left():
    points = drive(FactLearner(SIZES, 1, PublishedSettings(trees=3)), 1000)
    assert [point.scenario.size_bytes % 3 == 0 for point in points] == [False] * 40 + [True] * 40


def walked(learner: AcclaimProgramLearner, most: int) -> list[Scenario]:
    asked: list[Scenario] = []
    while len(asked) < most and (points := learner.ask(1)):
        asked.append(points[0].scenario)
        learner.tell(measured(points[0], len(asked)))
    return asked


def test_the_program_begins_equidistant_on_powers_of_two_and_measures_anew_what_is_most_uncertain():
    settings = PublishedSettings(trees=20, threshold=0.0)
    scenarios = walked(AcclaimProgramLearner(SIZES, 1, settings), 60)
    assert [(s.nodes, s.size_bytes) for s in scenarios[:3]] == [(2, 2), (2, 2 << 9), (4, 2 << 9)]
    assert all(s.size_bytes % 3 for s in scenarios)
    assert len(set(scenarios)) < len(scenarios)


def test_the_program_comes_to_an_end_whether_its_variance_converges_or_not():
    small = Space("bcast", SIZES.scenarios[:8], SIZES.legal)
    for threshold, rounds in ((np.inf, 1), (0.0, 4)):
        learner = AcclaimProgramLearner(small, 1, PublishedSettings(trees=4, threshold=threshold))
        assert len(walked(learner, 1000)) == rounds * len(small.scenarios)
        assert learner.should_stop()


CHOICES = (Choice("a"), Choice("b"), Choice("c"))


def noisy(count: int) -> tuple[list[tuple[Scenario, Choice]], np.ndarray, np.ndarray]:
    """Which choice is best changes once over the size; noise of 20% makes fully grown trees learn it by heart."""
    random = np.random.default_rng(0)
    scenarios = [Scenario("bcast", n, 1, 2**p) for n in range(2, 9) for p in range(18)][:count]
    pairs, times = [], []
    for scenario in scenarios:
        for number, choice in enumerate(CHOICES):
            base = (1.0 + number) * 1e-6 + scenario.size_bytes * 1e-9 / (1 + number)
            pairs.append((scenario, choice))
            times.append(base * random.lognormal(0, 0.2))
    time_s = np.array(times)
    best = np.repeat(time_s.reshape(-1, 3).min(axis=1), 3)
    return pairs, time_s, np.log(time_s / best)


def test_the_tuned_models_select_no_worse_on_what_they_were_not_given():
    pairs, time_s, output = noisy(60)
    before = PublishedSettings(trees=10, shape=TreeShape(max_depth=1))
    after = tune(pairs, time_s, output, before, seed=1, trials=4)
    folds = _folds(pairs, 1)
    assert after != before
    assert _slowdown(pairs, time_s, output, after, folds, 1) <= _slowdown(pairs, time_s, output, before, folds, 1)


def test_with_few_scenarios_nothing_is_tuned():
    settings = PublishedSettings()
    assert tune(*noisy(5), settings, seed=0) is settings


def test_equal_seeds_tune_alike():
    one, other = (tune(*noisy(12), PublishedSettings(trees=2), seed=3, trials=2) for _ in range(2))
    assert one == other


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match="needs optuna"):
        TunedFactLearner(small_space(), 0)


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
