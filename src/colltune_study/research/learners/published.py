"""The published tuners as learners, to be compared with: random points, FACT and ACCLAiM.

They follow their papers, not their code. One liberty is taken with all three: a model is grown anew not after each
measurement but when the number of measured scenarios or pairs has grown by ``batch`` (8%), the best candidates in
between being taken from one ranking; with few measurements that is every time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Sample, Scenario, grouped
from colltune.core.space import Model, Point, Prediction, Space
from colltune.learn.scenario_columns import Floats, scenario_columns
from colltune.learn.told import History, Pair
from colltune_study.research.learners import trees
from colltune_study.research.learners.nearness import NearGains
from colltune_study.research.learners.scaling import Scaling, as_log_time, scale
from colltune_study.research.learners.trees import FULLY_GROWN, TreeShape, jackknife_variance


@dataclass(frozen=True, slots=True)
class PublishedSettings:
    """``trees``: of each forest. ``first``: points at random before anything is learnt. ``batch``: see above.

    ``flat_share``, ``flat_steps``: ACCLAiM's stop, as in ``flat``. ``shape``: of the trees.
    """

    trees: int = 50
    first: int = 3
    batch: float = 0.08
    flat_share: float = 0.01
    flat_steps: int = 4
    scaling: Scaling = Scaling.LOG_ALGORITHM
    shape: TreeShape = FULLY_GROWN


class PublishedLearner:
    """What the three share: the history, a queue of pending proposals, and a model grown when it is asked for."""

    def __init__(self, space: Space, seed: int, settings: PublishedSettings | None = None) -> None:
        self._space, self._seed = space, seed
        self._settings = settings or PublishedSettings()
        self._history = History(space)
        self._near = NearGains(self._history)
        self._order = list(np.random.default_rng(seed).permutation(len(space.scenarios)))
        self._ranking: list[Point] = []
        self._ranked_at = -1

    def tell(self, samples: Sequence[Sample]) -> None:
        self._history.tell(samples)

    def tell_pending(self, point: Point) -> None:
        self._history.tell_pending(point)

    def ask(self, count: int) -> list[Point]:
        known = self._history.known
        if self._ranked_at < 0 or known >= max(self._ranked_at + 1, self._ranked_at * (1.0 + self._settings.batch)):
            self._ranking, self._ranked_at = self._rank(), known
        points = self._still_open(count)
        if not points:
            self._ranking, self._ranked_at = self._rank(), known
            points = self._still_open(count)
        return points

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        """As the forest learner's: the papers compare no collectives."""
        return self._near.of(points)

    def should_stop(self) -> str | None:
        return None if self.ask(1) else "every candidate of the space was measured"

    def model(self) -> Model:
        """Of each choice by itself, where the paper does not say another."""
        return ModelPerChoice(*self.observed(), self._settings, self._seed, self._history)

    def _rank(self) -> list[Point]:
        """Open points, the most useful first."""
        raise NotImplementedError

    def _still_open(self, count: int) -> list[Point]:
        points: list[Point] = []
        used_up = 0
        for place, point in enumerate(self._ranking):
            open_choices = self._history.open_choices(point.scenario)
            choices = tuple(choice for choice in point.choices if choice in open_choices)
            if choices:
                points.append(Point(point.scenario, choices))
            elif place == used_up:
                used_up += 1
            if len(points) == count:
                break
        del self._ranking[:used_up]  # what is measured stays so
        return points

    def observed(self) -> tuple[list[Pair], Floats]:
        """The measured pairs and their scaled outputs. Raises ValueError where there are none."""
        times = self._history.times()
        if not times:
            raise ValueError("no sample with a time was told yet")
        best: dict[Scenario, float] = {}
        for (scenario, _), time_s in times.items():
            best[scenario] = min(time_s, best.get(scenario, time_s))
        best_s = np.array([best[scenario] for scenario, _ in times])
        return list(times), scale(np.array(list(times.values())), best_s, self._settings.scaling)


class RandomLearner(PublishedLearner):
    """Scenarios at random, all their choices; one model for each choice on plain times (Hunold et al. 2020)."""

    def __init__(self, space: Space, seed: int, settings: PublishedSettings | None = None) -> None:
        super().__init__(space, seed, settings or PublishedSettings(scaling=Scaling.NONE))

    def _rank(self) -> list[Point]:
        scenarios = [self._space.scenarios[i] for i in self._order]
        return [Point(scenario, self._history.candidates(scenario)) for scenario in scenarios]


class AcclaimLearner(PublishedLearner):
    """One forest with the algorithm as a number; all choices of the scenario with the greatest jackknife variance.

    Every fifth scenario should move to a message size that is no power of two; where the space holds such sizes, as
    recorded ones do, they are candidates like the others.
    """

    def __init__(self, space: Space, seed: int, settings: PublishedSettings | None = None) -> None:
        super().__init__(space, seed, settings)
        self._number = {choice: float(number) for number, choice in enumerate(space.all_choices)}
        self._cumulative: list[float] = []
        self._grown: list[Any] = []
        self._grown_at = -1
        self._everything = list(space.pairs())

    def _inputs(self, pairs: Sequence[Pair]) -> Floats:
        numbers = np.array([self._number[choice] for _, choice in pairs])
        return np.column_stack([scenario_columns([scenario for scenario, _ in pairs]), numbers])

    def _forest(self) -> list[Any]:
        known = self._history.told
        if known != self._grown_at:
            pairs, output = self.observed()
            self._grown = grow(self._inputs(pairs), output, self._settings, self._seed)
            self._grown_at = known
        return self._grown

    def _rank(self) -> list[Point]:
        shuffled = [self._space.scenarios[i] for i in self._order]
        open_points = [Point(s, choices) for s in shuffled if (choices := self._history.open_choices(s))]
        if len({scenario for scenario, _ in self._history.times()}) < self._settings.first or not open_points:
            return open_points
        forest = self._forest()
        pairs = [(point.scenario, choice) for point in open_points for choice in point.choices]
        variance = jackknife_variance(trees.predict(forest, self._inputs(pairs)))
        starts = np.cumsum([0, *(len(point.choices) for point in open_points)])[:-1]
        most = np.maximum.reduceat(variance, starts)
        everywhere = jackknife_variance(trees.predict(forest, self._inputs(self._everything)))
        self._cumulative.append(float(everywhere.sum()))
        return [open_points[i] for i in np.argsort(-most, kind="stable")]

    def should_stop(self) -> str | None:
        if flat(self._cumulative, self._settings.flat_share, self._settings.flat_steps):
            return f"the cumulative variance was flat over {self._settings.flat_steps} iterations"
        return super().should_stop()

    def model(self) -> Model:
        return _OneForest(self._forest(), self._inputs, self._settings.scaling, self._history)


def grow(inputs: Floats, output: Floats, settings: PublishedSettings, seed: int) -> list[Any]:
    return trees.grow(inputs, output, settings.trees, seed, shape=settings.shape)


def ruled_out(pairs: Sequence[Pair], history: History | None) -> NDArray[np.bool_]:
    """(n,): the pairs that a failure excludes; none without a history."""
    if history is None or not history.anything_failed:
        return np.zeros(len(pairs), dtype=bool)
    return np.array([history.excluded(*pair) for pair in pairs], dtype=bool)


class _OneForest:
    def __init__(self, forest: Any, inputs: Any, scaling: Scaling, history: History) -> None:
        self._forest, self._inputs, self._scaling, self._history = forest, inputs, scaling, history

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        each = trees.predict(self._forest, self._inputs(pairs))
        log_time = as_log_time(each.mean(axis=0), self._scaling)
        return Prediction(np.where(ruled_out(pairs, self._history), np.inf, log_time), each.std(axis=0))


class ModelPerChoice:
    """A forest for each choice over the scenario alone; a choice that was never measured is the slowest of all."""

    def __init__(
        self, pairs: Sequence[Pair], output: Floats, settings: PublishedSettings, seed: int, history: History | None
    ) -> None:
        self._scaling, self._history = settings.scaling, history
        columns = scenario_columns([scenario for scenario, _ in pairs])
        rows = grouped(range(len(pairs)), lambda row: pairs[row][1])
        self._forests = {choice: grow(columns[own], output[own], settings, seed) for choice, own in rows.items()}
        self._slowest = float(output.max()) + abs(float(output.max())) + 1.0

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        columns = scenario_columns([scenario for scenario, _ in pairs])
        output, spread = np.full(len(pairs), self._slowest), np.zeros(len(pairs))
        for choice, own in grouped(range(len(pairs)), lambda row: pairs[row][1]).items():
            if choice in self._forests:
                each = trees.predict(self._forests[choice], columns[own])
                output[own], spread[own] = each.mean(axis=0), each.std(axis=0)
        return Prediction(np.where(ruled_out(pairs, self._history), np.inf, as_log_time(output, self._scaling)), spread)


def flat(values: Sequence[float], share: float, steps: int) -> bool:
    """Whether each of the last ``steps`` changes of ``values`` was less than ``share`` of the greatest value.

    ACCLAiM (section V.B) compares the changes with a fixed 1e-10, which fits one output scaling and one forest size;
    a share of what the series itself has reached needs no such number. False with too few values.
    """
    if len(values) <= steps:
        return False
    limit = share * max(values)
    last = values[-steps - 1 :]
    return all(abs(after - before) <= limit for before, after in pairwise(last))
