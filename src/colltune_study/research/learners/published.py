"""What the published tuners have in common as learners, and random points; FACT and ACCLAiM have modules of their own.

Each measures all choices of a scenario together and looks at what it knows after every scenario, as published. What is
theirs and what had to be ours: docs/evaluate.md, "Fairness".
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, grouped
from colltune.core.space import Model, Point, Prediction, Space
from colltune.learn.history import History, Pair
from colltune.learn.scenario_columns import Floats, scenario_columns
from colltune_study.research.learners import trees
from colltune_study.research.learners.scaling import Scaling, as_log_time, scale
from colltune_study.research.learners.trees import FULLY_GROWN, TreeShape

# Expected log speed-up of a scenario where nothing is known, which counts as much as a measurement in that very place.
_PRIOR_GAIN = 0.15


class OpenPairs(History):
    """Knows which pairs are still open, too."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._pending: set[Pair] = set()

    def tell(self, samples: Iterable[Sample]) -> list[Sample]:
        """See History; clears the pending marks of the pairs."""
        told = list(samples)
        self._pending -= {(sample.scenario, sample.choice) for sample in told}
        return super().tell(told)

    def tell_pending(self, point: Point) -> None:
        self._pending |= {(point.scenario, choice) for choice in point.choices}

    def open_choices(self, scenario: Scenario) -> tuple[Choice, ...]:
        """The candidates that are neither measured nor pending."""
        return tuple(
            choice
            for choice in self.candidates(scenario)
            if not self.samples_of((scenario, choice)) and (scenario, choice) not in self._pending
        )


class NearGains:
    """The gains that were found, and a prior, averaged with what is near in size and in ranks counting most.

    A gain is the logarithm of the time of the default over that of the best choice of a scenario. It counts for its own
    scenario alone: what the neighbours learn from a measurement is not known here.
    """

    def __init__(self, history: OpenPairs) -> None:
        self._history = history
        self._told = -1
        self._places: Floats = np.zeros((0, 2))  # of the k scenarios with a gain
        self._gains: Floats = np.zeros(0)  # (k,)

    def of(self, points: Sequence[Point]) -> Floats:
        """(n,): the expected log speed-up at each point; 0 where all of its choices are measured, pending or failed."""
        self._refresh()
        places = np.array([_place(point.scenario) for point in points]).reshape(-1, 2)
        near = np.exp(-np.abs(places[:, None, :] - self._places[None, :, :]).sum(axis=2))
        gains = (_PRIOR_GAIN + near @ self._gains) / (1.0 + near.sum(axis=1))
        still_open = [bool(set(point.choices) & set(self._history.open_choices(point.scenario))) for point in points]
        return np.where(still_open, gains, 0.0)

    def _refresh(self) -> None:
        if self._told == self._history.sample_count:
            return
        self._told = self._history.sample_count
        default: dict[Scenario, float] = {}
        best: dict[Scenario, float] = {}
        for (scenario, choice), time_s in self._history.times().items():
            best[scenario] = min(time_s, best.get(scenario, time_s))
            if choice == DEFAULT:
                default[scenario] = time_s
        self._places = np.array([_place(scenario) for scenario in default]).reshape(-1, 2)
        self._gains = np.array([math.log(time_s / best[scenario]) for scenario, time_s in default.items()])


def _place(scenario: Scenario) -> tuple[float, float]:
    """Where a scenario is: two doublings of the size are as far as one of the ranks."""
    return math.log2(scenario.size_bytes + 1) / 2.0, math.log2(scenario.ranks)


@dataclass(frozen=True, slots=True)
class PublishedSettings:
    """``trees``: of each forest, as scikit-learn has by itself. ``first``: points before anything is learnt.

    ``threshold``: of ACCLAiM's stop, in the units of its variance. ``shape``: of the trees.
    """

    trees: int = 100
    first: int = 3
    threshold: float = 1e-10
    scaling: Scaling = Scaling.LOG_ALGORITHM
    shape: TreeShape = FULLY_GROWN


class PublishedLearner:
    """The history, a ranking of the open points until something new is told, and a model when it is asked for."""

    def __init__(self, space: Space, seed: int, settings: PublishedSettings | None = None) -> None:
        self._space, self._seed = space, seed
        self._settings = settings or PublishedSettings()
        self._history = OpenPairs(space)
        self._near = NearGains(self._history)
        self._order = list(np.random.default_rng(seed).permutation(len(space.scenarios)))
        self._ranking: list[Point] = []
        self._ranked_at = -1

    def tell(self, samples: Sequence[Sample]) -> None:
        self._history.tell(samples)

    def tell_pending(self, point: Point) -> None:
        self._history.tell_pending(point)

    def ask(self, count: int) -> list[Point]:
        if self._ranked_at != self._history.sample_count:
            self._ranking, self._ranked_at = self._rank(), self._history.sample_count
        return self._still_open(count)

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

    def _open_points(self, usual: Collection[Scenario] = ()) -> list[Point]:
        """In a random order; of scenarios that are not ``usual`` once no usual one is left."""
        shuffled = [self._space.scenarios[i] for i in self._order]
        points = [
            Point(scenario, choices) for scenario in shuffled if (choices := self._history.open_choices(scenario))
        ]
        return [point for point in points if point.scenario in usual] or points

    def _begins(self) -> bool:
        """Whether fewer scenarios have a time than are measured before anything is learnt."""
        return len({scenario for scenario, _ in self._history.times()}) < self._settings.first

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
        return self._open_points()


def grow(inputs: Floats, output: Floats, settings: PublishedSettings, seed: int) -> list[Any]:
    return trees.grow(inputs, output, settings.trees, seed, shape=settings.shape)


def ruled_out(pairs: Sequence[Pair], history: History | None) -> NDArray[np.bool_]:
    """(n,): the pairs that a failure excludes; none without a history."""
    if history is None or not history.anything_failed:
        return np.zeros(len(pairs), dtype=bool)
    return np.array([history.excluded(*pair) for pair in pairs], dtype=bool)


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


def on_powers_of_two(scenarios: Sequence[Scenario], features: Sequence[str]) -> frozenset[Scenario]:
    """Those whose ``features`` (nodes, ppn, size_bytes) are powers of two; one that never is, is passed over."""
    kept = frozenset(scenarios)
    for feature in features:
        kept = frozenset(s for s in kept if (value := getattr(s, feature)) & (value - 1) == 0) or kept
    return kept
