"""Measures what the decision hangs on: single (scenario, choice) pairs, by what they are expected to save per cost.

For each pair that is not measured: by how much would its measurement, before its result is known, lower the expected
logarithm of the selected choices' times, summed over all scenarios? Measuring one pair moves the means of its choice
around it, and where a mean crosses that of the selected choice the selection improves (the knowledge gradient for
correlated beliefs, Frazier, Powell and Dayanik 2009, with the crossing of the best pair of lines in place of all). A
clearly dominated choice can cross nothing and is not measured again; a cheap measurement goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from colltune.core.choice import Choice
from colltune.core.model import Model, Prediction
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.learn.belief import Belief, Observations, normal_loss, observations
from colltune.learn.features import scenario_columns
from colltune.learn.gaussian import Floats, Rows
from colltune.learn.history import History, Pair

Mask = NDArray[np.bool_]
_NEVER = 1e3  # log seconds of what cannot be selected


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """What may be set on the decision learner.

    A measurement is taken to cost ``set_up_s`` + ``repetitions`` * time. Candidates are ranked by gain over cost to the
    power of ``thrift``. Choices are tried at the far ends of the space (largest size on the smallest shape, smallest
    size on the largest) as long as that takes no more than ``insurance`` of all that was spent: belief alone never
    tries an algorithm that is bad wherever it was seen. ``freedom``: see ChoiceProcess. It stops once, over
    ``stop_steps`` decisions in a row, the expected loss is below ``stop_loss`` and the expected share of scenarios at
    which another choice is more than 10% faster below ``stop_mistakes``.
    """

    set_up_s: float = 1e-3
    repetitions: float = 22.0
    thrift: float = 0.6
    insurance: float = 0.25
    freedom: float = 3.0
    refit_growth: float = 1.3
    fit_iterations: int = 10
    candidates: int = 150
    scenarios: int = 400
    stop_loss: float = 0.0075
    stop_mistakes: float = 0.025
    stop_steps: int = 15


class DecisionLearner:
    """A Learner of single pairs."""

    def __init__(self, space: Space, seed: int, settings: DecisionSettings | None = None) -> None:
        self._space, self._seed = space, seed
        self._settings = settings or DecisionSettings()
        self._history = History(space)
        self._choices = space.all_choices
        self._number = {choice: number for number, choice in enumerate(self._choices)}
        self._all_columns = scenario_columns(space.scenarios)
        self._probes = _probes(self._all_columns)
        self._rows: Rows = np.zeros(0, dtype=np.intp)  # the scenarios that are looked at
        self._belief: Belief | None = None
        self._fitted = 0
        self._calm = 0  # decisions in a row that were good enough to stop
        self._judged = -1
        self._legal: Mask = np.zeros((0, 0), dtype=bool)  # (N, M): the candidates
        self._free: Mask = np.zeros((0, 0), dtype=bool)  # (N, M): those that are neither measured nor pending
        self._place: dict[Scenario, int] = {}

    def tell(self, samples: Sequence[Sample]) -> None:
        before = self._history.times()
        self._history.tell(samples)
        after = self._history.times()
        new = [pair for pair in after if pair not in before]
        same = all(pair in after and after[pair] == time_s for pair, time_s in before.items())
        due = len(after) >= max(self._fitted + 3, self._fitted * self._settings.refit_growth)
        if self._belief is None or not same or due or len(after) <= 4 or not self._update(new):
            self._refit(due or self._fitted == 0)
        elif any(sample.status is not Status.OK for sample in samples):
            self._look()
        for sample in samples:
            self._close(sample.scenario, sample.choice)

    def tell_pending(self, point: Point) -> None:
        self._history.tell_pending(point)
        for choice in point.choices:
            self._close(point.scenario, choice)

    def ask(self, count: int) -> list[Point]:
        belief = self._belief_now().copy()
        legal, free = self._legal, self._free.copy()
        points: list[Point] = []
        while len(points) < count and free.any():
            row, number = self._next(belief, legal, free)
            free[row, number] = False
            belief.update(row, number, None)
            points.append(Point(self._space.scenarios[self._rows[row]], (self._choices[number],)))
        if not points:
            points = self._elsewhere(count)
        return points

    def should_stop(self) -> str | None:
        if not self._free.any() and not self._elsewhere(1):
            return "every candidate of the space was measured"
        known = len(self._history.times())
        if known and known != self._judged:
            self._judged = known
            loss, mistakes = self._expected_loss()
            good = loss <= self._settings.stop_loss and mistakes <= self._settings.stop_mistakes
            self._calm = self._calm + 1 if good else 0
        if self._calm >= self._settings.stop_steps:
            return (
                f"over {self._calm} measurements the selection was expected to lose less than "
                f"{self._settings.stop_loss:.1%}"
            )
        return None

    def model(self) -> Model:
        times = self._history.times()
        if not times:
            raise ValueError("no sample with a time was told yet")
        return _DecisionModel(self._number, self._history, self._seen(), self._settings, self._seed)

    def _seen(self) -> Observations:
        times = self._history.times()
        return observations(
            scenario_columns([scenario for scenario, _ in times]),
            [self._place.get(scenario, -1) for scenario, _ in times],
            [self._number[choice] for _, choice in times],
            list(times.values()),
        )

    def _refit(self, hyperparameters: bool) -> None:
        """Believes anew; looks at other scenarios of a space that has more than can be looked at at once."""
        known = len(self._history.times())
        total, most = len(self._space.scenarios), self._settings.scenarios
        rows = np.arange(total, dtype=np.intp)
        if total > most:
            drawn = np.random.default_rng([self._seed, known]).choice(total, most, replace=False)
            rows = np.sort(np.unique(np.concatenate([drawn, self._probes]))).astype(np.intp)
        self._rows = rows
        self._look()
        theta = self._belief.theta if self._belief else None
        iterations = self._settings.fit_iterations if hyperparameters and known >= 8 else 0
        if iterations:
            self._fitted = known
        self._belief = Belief(
            self._all_columns[rows],
            len(self._choices),
            self._seen(),
            theta,
            self._settings.freedom,
            iterations,
            self._seed,
        )

    def _update(self, new: Sequence[Pair]) -> bool:
        """Takes new pairs in one by one; False where one lies outside of what is looked at."""
        if self._belief is None or any(scenario not in self._place for scenario, _ in new):
            return False
        times = self._history.times()
        for scenario, choice in new:
            self._belief.update(self._place[scenario], self._number[choice], float(np.log(times[scenario, choice])))
        return True

    def _belief_now(self) -> Belief:
        if self._belief is None:
            self._refit(False)
        assert self._belief is not None
        return self._belief

    def _look(self) -> None:
        """Finds the candidates anew, and which of them are open."""
        self._place = {self._space.scenarios[row]: place for place, row in enumerate(self._rows)}
        self._legal = np.zeros((len(self._rows), len(self._choices)), dtype=bool)
        self._free = np.zeros_like(self._legal)
        for scenario, place in self._place.items():
            self._legal[place, [self._number[c] for c in self._history.candidates(scenario)]] = True
            self._free[place, [self._number[c] for c in self._history.open_choices(scenario)]] = True

    def _close(self, scenario: Scenario, choice: Choice) -> None:
        place = self._place.get(scenario)
        if place is not None and choice in self._number:
            self._free[place, self._number[choice]] = False

    def _elsewhere(self, count: int) -> list[Point]:
        """Open pairs of scenarios that are not looked at at present."""
        open_pairs = ((s, c) for s in self._space.scenarios for c in self._history.open_choices(s))
        return [Point(scenario, (choice,)) for (scenario, choice), _ in zip(open_pairs, range(count), strict=False)]

    def _cost(self, mean: Floats, variance: Floats) -> Floats:
        """(N, M): seconds that a measurement is expected to take."""
        return np.asarray(
            self._settings.set_up_s
            + self._settings.repetitions * np.exp(np.clip(mean + 0.5 * np.minimum(variance, 1.0), -20.0, 5.0))
        )

    def _next(self, belief: Belief, legal: Mask, free: Mask) -> tuple[int, int]:
        variance = belief.variance
        if not self._history.has_times:
            # Nothing is known of any cost yet, but small messages on few ranks are cheap everywhere.
            growth = 0.4 * self._all_columns[self._rows, 2] + 0.2 * self._all_columns[self._rows, :2].sum(axis=1)
            cost = np.broadcast_to(
                (self._settings.set_up_s + self._settings.repetitions * 1e-5 * 2.0**growth)[:, None], legal.shape
            )
        else:
            cost = self._cost(belief.mean, variance)
            probe = self._probe(cost, free)
            if probe is not None:
                return probe
        rival, distance, deviation = _rivals(belief.mean, variance, legal)
        rows, numbers = np.nonzero(free)
        local = np.where(rival, normal_loss(distance, deviation), 0.0)[rows, numbers] / cost[rows, numbers]
        random = np.random.default_rng([self._seed, len(self._history.times()), int(free.sum())])
        if len(rows) > self._settings.candidates:
            part = self._settings.candidates // 4
            dear = local * np.sqrt(cost[rows, numbers])
            kept = [np.argsort(-local)[: 2 * part], np.argsort(-dear)[:part], random.choice(len(rows), part, False)]
            rows, numbers = (axis[np.unique(np.concatenate(kept))] for axis in (rows, numbers))
        crossing = normal_loss(distance[:, numbers].T, belief.shifts(rows, numbers) + 1e-9)
        gain = np.where(rival[:, numbers].T, crossing, 0.0).sum(axis=1)
        score = gain / cost[rows, numbers] ** self._settings.thrift * random.uniform(0.999, 1.0, len(rows))
        best = int(np.argmax(score))
        return int(rows[best]), int(numbers[best])

    def _probe(self, cost: Floats, free: Mask) -> tuple[int, int] | None:
        """The cheapest open pair at the far ends of the space, where the insurance pays for it."""
        places = np.flatnonzero(np.isin(self._rows, self._probes))
        open_pairs = [
            (float(cost[row, number]), int(row), int(number)) for row in places for number in np.flatnonzero(free[row])
        ]
        if not open_pairs:
            return None
        ends = {self._space.scenarios[row] for row in self._probes}
        spent = paid = 0.0
        for (scenario, _), time_s in self._history.times().items():
            took = self._settings.set_up_s + self._settings.repetitions * time_s
            spent += took
            paid += took if scenario in ends else 0.0
        price, row, number = min(open_pairs)
        return (row, number) if paid + price <= self._settings.insurance * spent else None

    def _expected_loss(self) -> tuple[float, float]:
        """Bounds of the expected mean log of selected over best time, and share of mistakes of over 10%.

        Only what measuring could still change counts: two choices that were both measured differ by no more than noise
        once the difference is small, and to measure neither again is the contract.
        """
        belief, every = self._belief_now(), np.arange(len(self._rows))
        selected = np.where(self._legal, belief.mean, _NEVER).argmin(axis=1)
        rival, distance, deviation = _rivals(belief.mean, belief.variance, self._legal)
        rival &= np.arange(self._legal.shape[1])[None, :] != selected[:, None]
        rival &= self._free | self._free[every, selected][:, None]
        loss = np.where(rival, normal_loss(distance, deviation), 0.0).sum(axis=1).mean()
        mistake = np.where(rival, ndtr(-(distance + np.log(1.1)) / deviation), 0.0).sum(axis=1)
        return float(loss), float(np.minimum(mistake, 1.0).mean())


def _rivals(mean: Floats, variance: Floats, legal: Mask) -> tuple[Mask, Floats, Floats]:
    """Per pair (N, M): is there another choice to compare with, the distance of the means, its standard deviation.

    The selected choice is compared with the runner-up, every other one with the selected.
    """
    every = np.arange(len(mean))
    usable = np.where(legal, mean, _NEVER)
    first = usable.argmin(axis=1)
    without = usable.copy()
    without[every, first] = 2.0 * _NEVER
    second = without.argmin(axis=1)
    other = np.where(np.arange(mean.shape[1])[None, :] == first[:, None], second[:, None], first[:, None])
    rows = every[:, None]
    rival = legal & legal[rows, other] & (other != np.arange(mean.shape[1])[None, :])
    distance = np.where(rival, np.abs(mean - mean[rows, other]), 0.0)
    return rival, distance, np.sqrt(variance + variance[rows, other])


def _probes(columns: Floats) -> Rows:
    """The rows of the largest size on the smallest shape and of the smallest size on the largest."""
    if not len(columns):
        return np.zeros(0, dtype=np.intp)
    low, high = columns.min(axis=0), columns.max(axis=0)
    unit = (columns - low) / np.where(high > low, high - low, 1.0)
    found = []
    for shape, size in ((0.0, 1.0), (1.0, 0.0)):
        away = np.abs(unit[:, :2] - shape).sum(axis=1)
        rows = np.flatnonzero(away <= away.min() + 1e-9)
        found.append(rows[np.argmax(unit[rows, 2]) if size else np.argmin(unit[rows, 2])])
    return np.unique(np.array(found, dtype=np.intp))


class _DecisionModel:
    """Absolute log times; a choice that failed is infinitely slow."""

    def __init__(
        self,
        number: dict[Choice, int],
        history: History,
        seen: Observations,
        settings: DecisionSettings,
        seed: int,
    ) -> None:
        self._number, self._history = number, history
        pairs = list(history.times())
        self._row_of = {scenario: row for row, scenario in enumerate(dict.fromkeys(scenario for scenario, _ in pairs))}
        rows = np.array([self._row_of[scenario] for scenario, _ in pairs], dtype=np.intp)
        self._belief = Belief(
            np.zeros((0, 3)),
            len(number),
            Observations(seen.z, rows, seen.number, seen.log_time),
            None,
            settings.freedom,
            settings.fit_iterations,
            seed,
        )

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        columns = scenario_columns([scenario for scenario, _ in pairs])
        rows = np.array([self._row_of.get(scenario, -1) for scenario, _ in pairs], dtype=np.intp)
        numbers = np.array([self._number[choice] for _, choice in pairs], dtype=np.intp)
        log_time, variance = np.zeros(len(pairs)), np.zeros(len(pairs))
        for number in np.unique(numbers):
            own = numbers == number
            log_time[own], variance[own] = self._belief.at(columns[own], rows[own], int(number))
        excluded = np.array([self._history.excluded(*pair) for pair in pairs], dtype=bool)
        return Prediction(np.where(excluded, np.inf, log_time), np.sqrt(variance))
