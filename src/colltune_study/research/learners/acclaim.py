"""ACCLAiM as its paper says (Wilkins et al. 2025) and as its public program does (pmodels/acclaim, commit b2e3109).

Notations: t trees, whose predictions of a pair are p_i with mean p; S = sum_i (p_i - p)^2. The mean without tree i is
off by (p - p_i) / (t - 1), so no tree has to be left out. Equation of section III.B: S / (t - 1)^3. The program:
S / (t (t - 1)^3). Efron and Stein's variance, ``trees.jackknife_variance``, is S / (t (t - 1)). All three order the
points alike; thresholds differ.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from colltune.core.sample import Choice, Sample, Scenario, Status, element_bytes, grouped
from colltune.core.space import Model, Point, Prediction, Space
from colltune.learn.history import History, Pair
from colltune.learn.scenario_columns import Floats
from colltune_study.research.learners import trees
from colltune_study.research.learners.published import (
    PublishedLearner,
    PublishedSettings,
    grow,
    on_powers_of_two,
    ruled_out,
)
from colltune_study.research.learners.scaling import Scaling, as_log_time
from colltune_study.research.learners.trees import jackknife_variance

# Every fifth point has a size that is no power of two (section IV.B: 80-20).
_OTHER_SIZES = 5
# The program looks at its stop from the fifth forest on, and at the last three changes.
_FEWEST_FORESTS, _CHANGES = 5, 3
# It measures points anew for as long as its variance changes: so many times all pairs are enough of that.
_ROUNDS = 4
# Their outputs are decimal logarithms.
_DECIMAL = float(np.log(10.0))


class AcclaimLearner(PublishedLearner):
    """The paper's: the open point whose most uncertain pair has the greatest variance, with all its choices.

    Sizes are powers of two but for every fifth, which moves to one near by that is not. Nodes and ranks per node are as
    recorded (IV.A). Other sizes are measured once no power of two is left. Stops when the variance, summed over all
    pairs (V.B), was below the threshold in two consecutive iterations (VII.B).
    """

    def __init__(self, space: Space, seed: int, settings: PublishedSettings | None = None) -> None:
        super().__init__(space, seed, settings)
        self._inputs = AcclaimInputs(space.all_choices)
        self._everything = list(space.pairs())
        self._columns = self._inputs.of(self._everything)
        self._usual = on_powers_of_two(space.scenarios, ("size_bytes",))
        self._others = [scenario for scenario in space.scenarios if scenario not in self._usual]
        self._cumulative: list[float] = []
        self._grown: list[Any] = []
        self._grown_at = -1

    def _forest(self) -> list[Any]:
        if self._grown_at != self._history.sample_count:
            pairs, output = self.observed()
            self._grown = grow(self._inputs.of(pairs), output, self._settings, self._seed)
            self._grown_at = self._history.sample_count
        return self._grown

    def _rank(self) -> list[Point]:
        points = self._open_points(self._usual)
        if self._begins() or not points:
            return points
        # As in the equation, t / (t - 1)^2 times Efron and Stein's, and of decimal logarithms.
        count = self._settings.trees
        unit = count / (count - 1) ** 2 / _DECIMAL**2
        variance = unit * jackknife_variance(trees.predict(self._forest(), self._columns))
        self._cumulative.append(float(variance.sum()))
        most: dict[Scenario, float] = {}
        for (scenario, _), value in zip(self._everything, variance.tolist(), strict=True):
            most[scenario] = max(value, most.get(scenario, 0.0))
        points.sort(key=lambda point: -most[point.scenario])
        measured = len({scenario for scenario, _ in self._history.times()})
        if (measured + 1) % _OTHER_SIZES == 0:
            others = [other for other in self._others if self._history.open_choices(other)]
            random = np.random.default_rng((self._seed, measured))
            if (near := size_between(points[0].scenario, others, random)) is not None:
                points.insert(0, Point(near, self._history.open_choices(near)))
        return points

    def should_stop(self) -> str | None:
        if len(self._cumulative) > 1 and max(self._cumulative[-2:]) <= self._settings.threshold:
            return f"the cumulative variance is below {self._settings.threshold:g}"
        return super().should_stop()

    def model(self) -> Model:
        return OneForest(self._forest(), self._inputs, self._settings.scaling, self._history)


class AcclaimProgramLearner:
    """The program's: the greatest variance of its grid wins, also where it was measured already, and is measured anew.

    The grid has powers of two only. The first points are equidistant in it but for the last two; the output is log10 of
    the time over that of the first choice, plus 1; each forest is new, with a seed of its own (theirs have none). It
    stops when the mean variance changed by no more than the threshold three times in a row. What is not ours to repeat:
    choices that are not recorded are left out, and not 2 s; in place of the timeout of 30 minutes there is an end when
    as many pairs were measured as there are and it has converged; and the selection is the forest's, not that of the
    rules that are made of it. Points are told in order and more than once: those laws of learners it does not keep.
    """

    def __init__(self, space: Space, seed: int, settings: PublishedSettings | None = None) -> None:
        self._space, self._seed = space, seed
        self._settings = settings or PublishedSettings()
        self._history = History(space)  # of failures
        self._inputs = AcclaimInputs(space.all_choices)
        on_grid = on_powers_of_two(space.scenarios, ("nodes", "ppn", "size_bytes"))
        self._grid = [(scenario, choice) for scenario in sorted(on_grid) for choice in _in_order(space, scenario)]
        self._columns = self._inputs.of(self._grid)
        self._start = _equidistant(sorted(on_grid), self._settings.first)
        self._pairs = sum(1 for _ in space.pairs())
        self._converged = False
        self._told: list[Pair] = []
        self._output: list[float] = []
        self._points = 0  # told with a time
        self.variances: list[float] = []  # mean of the grid, of each forest
        self._grown: list[Any] = []
        self._grown_at = -1
        self._next: Point | None = None

    def tell(self, samples: Sequence[Sample]) -> None:
        self._history.tell(samples)
        for scenario, own in grouped(samples, lambda sample: sample.scenario).items():
            self._start = [other for other in self._start if other != scenario]
            time_s = {sample.choice: sample.time_s for sample in own if sample.status is Status.OK}
            choices = [choice for choice in self._inputs.choices if choice in time_s]
            self._told += [(scenario, choice) for choice in choices]
            times = np.array([time_s[choice] for choice in choices])
            self._output += (np.log10(times / times[:1]) + 1.0).tolist()
            self._points += bool(choices)

    def ask(self, count: int) -> list[Point]:
        if self._start:
            return [Point(scenario, self._choices(scenario)) for scenario in self._start[:count]]
        if not self._told:
            return []
        self._forest()
        rounds = len(self._told) / self._pairs
        over = rounds >= (1 if self._converged else _ROUNDS)
        return [self._next] if self._next and count and not over else []

    def _choices(self, scenario: Scenario) -> tuple[Choice, ...]:
        return tuple(c for c in _in_order(self._space, scenario) if not self._history.excluded(scenario, c))

    def _forest(self) -> list[Any]:
        if self._grown_at != self._points:
            if not self._told:
                raise ValueError("no sample with a time was told yet")
            columns, output = self._inputs.of(self._told), np.array(self._output)
            self._grown = grow(columns, output, self._settings, self._seed + self._points)
            self._grown_at = self._points
            if not self._start:
                variance = jackknife_variance(trees.predict(self._grown, self._columns))
                self.variances.append(float(np.average(variance)) / (self._settings.trees - 1) ** 2)
                self._converged |= converged(self.variances, self._settings.threshold)
                scenario = self._grid[int(np.argmax(variance))][0]
                self._next = Point(scenario, self._choices(scenario))
        return self._grown

    def should_stop(self) -> str | None:
        if not self._start and self._told:
            self._forest()
        if self._converged:
            return f"the mean variance changed by no more than {self._settings.threshold:g} in {_CHANGES} iterations"
        return None if self.ask(1) else f"{_ROUNDS} times as many pairs were measured as there are"

    def model(self) -> Model:
        return OneForest(self._forest(), self._inputs, Scaling.LOG_ALGORITHM, self._history, _DECIMAL)


class AcclaimInputs:
    """What their forest is given: log2 + 1 of nodes, ranks per node and size, and the number of the choice."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices = choices
        self._number = {choice: float(number) for number, choice in enumerate(choices)}

    def of(self, pairs: Sequence[Pair]) -> Floats:
        """(n, 4)."""
        raw = np.array([(s.nodes, s.ppn, max(s.size_bytes, 1)) for s, _ in pairs], dtype=float).reshape(-1, 3)
        return np.column_stack([np.log2(raw) + 1.0, [self._number[choice] for _, choice in pairs]])


class OneForest:
    """One forest for all choices; ``unit``: what its output is multiplied by."""

    def __init__(
        self, forest: list[Any], inputs: AcclaimInputs, scaling: Scaling, history: History, unit: float = 1.0
    ) -> None:
        self._forest, self._inputs, self._scaling, self._history = forest, inputs, scaling, history
        self._unit = unit

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        each = self._unit * trees.predict(self._forest, self._inputs.of(pairs))
        log_time = as_log_time(each.mean(axis=0), self._scaling)
        return Prediction(np.where(ruled_out(pairs, self._history), np.inf, log_time), each.std(axis=0))


def size_between(scenario: Scenario, others: Collection[Scenario], random: np.random.Generator) -> Scenario | None:
    """One of ``others`` on the same shape with a size near to the scenario's; None where there is none.

    Half way down to half way up to the next power of two: 8 -> 6 to 12 (section IV.B).
    """
    element = element_bytes(scenario.collective)
    low, high = (max(element, scenario.size_bytes * part // 4) for part in (3, 6))
    shape = (scenario.nodes, scenario.ppn)
    near = sorted(other for other in others if (other.nodes, other.ppn) == shape and low <= other.size_bytes <= high)
    return near[int(random.integers(len(near)))] if near else None


def converged(variances: Sequence[float], threshold: float) -> bool:
    """The program's stop: whether each of the last three changes of the variance is at most ``threshold``."""
    last = variances[-_CHANGES - 1 :]
    return len(variances) >= _FEWEST_FORESTS and all(
        abs(after - before) <= threshold for before, after in pairwise(last)
    )


def _equidistant(scenarios: Sequence[Scenario], count: int) -> list[Scenario]:
    if len(scenarios) < count:
        return list(scenarios)
    return [scenarios[int(place)] for place in np.floor(np.linspace(0, len(scenarios) - 1, count + 2))[:-2]]


def _in_order(space: Space, scenario: Scenario) -> list[Choice]:
    legal = set(space.choices(scenario))
    return [choice for choice in space.all_choices if choice in legal]
