"""One random forest per collective, sent where its trees disagree most (ACCLAiM, sections III to V).

Notations: t trees; n (scenario, choice) pairs of the grid; ``trees`` (t, n): the prediction of each tree for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import Choice
from colltune.core.model import Model, Prediction
from colltune.core.sample import Sample, Status
from colltune.core.scenario import REDUCTIONS, Scenario
from colltune.core.space import Point, Space, middle_sizes
from colltune.learn.features import ChoiceEncoding, Floats, scenario_columns
from colltune.learn.history import History, Pair
from colltune.learn.nearness import NearGains
from colltune.learn.stopping import flat


def jackknife_variance(trees: Floats) -> Floats:
    """(n,): the jackknife variance of the mean over the t trees, which are ``trees`` (t, n).

    With x the mean, and x_i the mean without tree i: (t - 1) / t * sum_i (x_i - x)^2 (Efron and Stein 1981,
    "The jackknife estimate of variance", eq. 1.4). As x_i - x = (x - p_i) / (t - 1), the sum over leave-one-out means
    is sum_i (p_i - x)^2 / (t (t - 1)) and no tree has to be left out. ACCLAiM prints another factor (equation of
    section III.B), smaller by t; the order of the points is the same, thresholds are not.
    """
    count = trees.shape[0]
    return np.asarray(trees.var(axis=0, ddof=1) / count)


@dataclass(frozen=True, slots=True)
class ForestSettings:
    """What may be set on the forest learner.

    The forest that chooses points is small (``trees``, each grown on at most ``rows`` bootstrap rows), because it is
    grown anew for each point; the one that ``model()`` returns has ``model_trees`` trees on everything.
    ``odd_every``: every how manieth point moves to a message size that is no power of two. ``flat_share`` and
    ``flat_steps``: the campaign stops after that many steps in a row at which the cumulative variance changed by
    less than that share of its greatest value.
    """

    trees: int = 12
    rows: int = 384
    model_trees: int = 100
    odd_every: int = 5
    flat_share: float = 0.02
    flat_steps: int = 4


class ForestLearner:
    """A Learner after ACCLAiM: all candidates of the scenario with the highest jackknife variance, one after another.

    Output: logarithm of the time over the best one of the scenario. ``ask`` changes nothing, so the answer depends
    on the seed and on what was told and is pending alone.
    """

    def __init__(self, space: Space, seed: int, settings: ForestSettings | None = None) -> None:
        self._space = space
        self._seed = seed
        self._settings = settings or ForestSettings()
        self._history = History(space)
        self._near = NearGains(self._history)
        self._grid: list[Pair] = list(space.pairs())
        self._row = {pair: row for row, pair in enumerate(self._grid)}
        self._scenario_of_row = np.repeat(
            np.arange(len(space.scenarios)), [len(space.choices(s)) for s in space.scenarios]
        )
        self._encoding = ChoiceEncoding(space.all_choices)
        self._columns = scenario_columns([scenario for scenario, _ in self._grid])
        self._numbers = self._encoding.numbers([choice for _, choice in self._grid])
        self._corners = corners(space.scenarios)
        self._open = np.ones(len(self._grid), dtype=bool)
        self._trees: Floats | None = None
        self._cumulative: dict[int, float] = {}

    def tell(self, samples: Sequence[Sample]) -> None:
        self._history.tell(samples)
        if any(sample.status is not Status.OK for sample in samples):
            self._refresh_open()  # a failure may rule a choice out everywhere
        for sample in samples:
            self._close(sample.scenario, sample.choice)
        if samples:
            self._trees = None

    def tell_pending(self, point: Point) -> None:
        self._history.tell_pending(point)
        for choice in point.choices:
            self._close(point.scenario, choice)

    def ask(self, count: int) -> list[Point]:
        asked: list[Point] = []
        known = self._history.scenarios()
        for corner in self._corners:
            if len(asked) < count and (choices := self._history.open_choices(corner)):
                asked.append(Point(corner, choices))
        if len(asked) == count or not self._open.any():
            return asked
        taken = {point.scenario for point in asked}
        after_corners = max(0, len(known | taken) - len(self._corners))
        for scenario in self._by_variance():
            if len(asked) == count:
                break
            if scenario in taken:
                continue
            number = after_corners + len(asked) - len(taken & set(self._corners))
            moved = self._moved(scenario, number) if (number + 1) % self._settings.odd_every == 0 else scenario
            asked.append(Point(moved, self._history.open_choices(moved)))
        return [point for point in asked if point.choices]

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        """See Learner; by what was gained near to each point, and at its own scenario alone."""
        return self._near.of(points)

    def should_stop(self) -> str | None:
        if not self._open.any() and not any(self._history.open_choices(c) for c in self._corners):
            return "every candidate of the space was measured"
        if not self._history.has_times or any(self._history.open_choices(c) for c in self._corners):
            return None
        known = len(self._history.times())
        if known not in self._cumulative:
            self._cumulative[known] = float(jackknife_variance(self._grid_trees()).sum())
        values = [self._cumulative[number] for number in sorted(self._cumulative)]
        if flat(values, self._settings.flat_share, self._settings.flat_steps):
            return f"the cumulative variance was flat over {self._settings.flat_steps} steps"
        return None

    def model(self) -> Model:
        pairs, output = self._history.relative_log_times()
        if not pairs:
            raise ValueError("no sample with a time was told yet")
        return _ForestModel(
            self._encoding, pairs, np.array(output), self._settings.model_trees, self._seed, self._history
        )

    def _close(self, scenario: Scenario, choice: Choice) -> None:
        row = self._row.get((scenario, choice))
        if row is not None:
            self._open[row] = False

    def _refresh_open(self) -> None:
        for number, scenario in enumerate(self._space.scenarios):
            still = set(self._history.open_choices(scenario))
            rows = np.flatnonzero(self._scenario_of_row == number)
            self._open[rows] = [self._grid[row][1] in still for row in rows]

    def _grid_trees(self) -> Floats:
        """(t, n): predictions of the small forest for the whole grid, grown once for each state of the history."""
        if self._trees is None:
            pairs, output = self._history.relative_log_times()
            forest = _Forest(
                self._encoding, pairs, np.array(output), self._settings.trees, self._settings.rows, self._seed
            )
            self._trees = forest.trees(self._columns, self._numbers)
        return self._trees

    def _by_variance(self) -> list[Scenario]:
        """The scenarios with open pairs, the one with the most uncertain of them first; equal ones in random order."""
        rows = np.flatnonzero(self._open)
        seen = self._history.has_times
        variance = jackknife_variance(self._grid_trees()[:, rows]) if seen else np.zeros(len(rows))
        best = np.full(len(self._space.scenarios), -1.0)
        np.maximum.at(best, self._scenario_of_row[rows], variance)
        shuffle = np.random.default_rng(self._seed).permutation(len(best))
        order = np.lexsort((shuffle, -best))
        return [self._space.scenarios[i] for i in order if best[i] >= 0.0]

    def _moved(self, scenario: Scenario, number: int) -> Scenario:
        """``scenario`` at a random size that is nearer to its own than to another power of two (ACCLAiM, IV.B).

        The scenario itself where there is no such size that is not measured or pending.
        """
        low, high = middle_sizes(scenario.size_bytes, scenario.collective)
        element = 4 if scenario.collective in REDUCTIONS else 1
        used = self._history.measured_sizes(scenario.nodes, scenario.ppn) | {scenario.size_bytes}
        random = np.random.default_rng([self._seed, number])
        first, last = low // element + 1, (high - 1) // element
        for _ in range(8):
            if last < first:
                break
            size = int(random.integers(first, last + 1)) * element
            if size not in used and size & (size - 1):
                return Scenario(scenario.collective, scenario.nodes, scenario.ppn, size)
        return scenario


def corners(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """The scenarios nearest to the corners of the space, each once: a forest is constant outside of what it saw."""
    if not scenarios:
        return []
    columns = scenario_columns(scenarios)
    low, high = columns.min(axis=0), columns.max(axis=0)
    unit = (columns - low) / np.where(high > low, high - low, 1.0)
    found: dict[Scenario, None] = {}
    for corner in np.ndindex(2, 2, 2):
        found[scenarios[int(np.argmin(np.abs(unit - np.array(corner)).sum(axis=1)))]] = None
    return list(found)


class _Forest:
    """Grown on pairs and outputs; predicts tree by tree."""

    def __init__(
        self, encoding: ChoiceEncoding, pairs: Sequence[Pair], output: Floats, trees: int, rows: int, seed: int
    ) -> None:
        # Imported here because it takes longer than to measure a small grid whole, which needs no forest.
        import sklearn
        from sklearn.ensemble import RandomForestRegressor

        columns = scenario_columns([scenario for scenario, _ in pairs])
        numbers = encoding.numbers([choice for _, choice in pairs])
        self._places = encoding.fit(numbers, columns[:, 2], output)
        regressor = RandomForestRegressor(
            trees, max_samples=min(rows, len(pairs)), min_samples_leaf=1, random_state=seed, n_jobs=1
        )
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            regressor.fit(self._inputs(columns, numbers), output)
        self._estimators = regressor.estimators_

    def _inputs(self, columns: Floats, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        return np.ascontiguousarray(np.hstack([columns, self._places[numbers]]), dtype=np.float32)

    def trees(self, columns: Floats, numbers: NDArray[np.intp]) -> Floats:
        """(t, n): the trees are asked below scikit-learn's checks of the input, which cost more than the answer."""
        inputs = self._inputs(columns, numbers)
        return np.stack([estimator.tree_.predict(inputs)[:, 0] for estimator in self._estimators])


class _ForestModel:
    """The forest as a Model: ratios within a scenario; a choice that failed is infinitely slow."""

    def __init__(
        self, encoding: ChoiceEncoding, pairs: Sequence[Pair], output: Floats, trees: int, seed: int, history: History
    ) -> None:
        self._encoding = encoding
        self._forest = _Forest(encoding, pairs, output, trees, len(pairs), seed)
        self._history = history

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        """``std`` is the spread of the trees."""
        if not pairs:
            return Prediction(np.zeros(0), np.zeros(0))
        trees = self._forest.trees(
            scenario_columns([scenario for scenario, _ in pairs]),
            self._encoding.numbers([choice for _, choice in pairs]),
        )
        excluded = np.array([self._history.excluded(*pair) for pair in pairs])
        return Prediction(np.where(excluded, np.inf, trees.mean(axis=0)), trees.std(axis=0, ddof=1))
