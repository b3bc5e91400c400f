"""Measures the (scenario, choice) pairs whose results are most likely to change a decision, per second of cost.

The gain of a pair is how far its measurement is expected to lower the logarithm of the selected choices' times, summed
over all scenarios. Measuring one pair moves the means of its choice in the scenarios around it; the selection improves
where a mean crosses that of the selected choice (the knowledge gradient for correlated beliefs, Frazier, Powell and
Dayanik 2009, with the crossing of the best pair of lines in place of all). A clearly dominated choice has no gain and
is not measured again; of equal gains the cheapest goes first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.medians import breaks
from colltune.core.sample import DEFAULT, Sample, Status
from colltune.core.space import Model, Point, Space
from colltune.learn.again import MOST_LOOKS, UNSURE_SD, LooksAgain, look_variance
from colltune.learn.decision_model import DecisionModel, Shortlist, expected_gains
from colltune.learn.gaussian import PRIOR_MEAN, Floats, Rows
from colltune.learn.history import History
from colltune.learn.posterior import MEASURED_SD, Observations, Posterior, fit_hyperparameters, log_variances
from colltune.learn.scenario_columns import scenario_columns
from colltune.learn.selection_uncertainty import Mask, PairwiseComparisons, far_ends, nearest

# The standard deviation of a single repetition's log time that is assumed when a measurement is planned.
_REPETITION_SD = 0.05
# The scenarios where all choices are tried first, as shares of the logarithmic ranges of nodes, ppn and size.
_DESIGN: Floats = np.array([(0.5, 0.5, 0.5), (1.0, 1.0, 0.7), (0.5, 0.5, 0.85), (1.0, 1.0, 0.3)])
# The posterior is brought up to date once what is new is this part of all that is known: the more is known the less one
# answer more changes, and what is asked for next is chosen as if all before it were answered.
_NEWS = 1.0 / 128.0
# Samples of scenarios that are not considered wait for the next fit, until they are this part of all that is known.
_OUTSIDE = 1.0 / 16.0
# What a measurement takes beside its calls is what it takes in so many of all: in others more may go with the calls.
_CHEAP = 0.1
# A selection that is slower than the best by more than this is a significant mistake (FACT, table II).
_SIGNIFICANT = 0.10


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """The options of the decision learner.

    A full measurement is assumed to cost ``set_up_s`` (or more, where samples say so) and ``repetitions`` plus
    ``warm_up`` times the time of a call. A first measurement of a pair takes as many repetitions as fit into ``box_s``,
    but at least ``fewest``. A second one takes the rest, where noise makes a decision uncertain; with ``fewest`` =
    ``repetitions`` there is none. Candidates are ranked by gain over cost to the power of ``cost_exponent``. Choices
    are also tried at the far ends of the space (largest size on the smallest shape, smallest size on the largest) for
    at most the share ``far_share`` of the time spent: by the posterior alone no algorithm is tried there that was slow
    wherever it was measured.
    ``freedom``: see ChoiceProcess. ``design``: the number of scenarios in the middle of the space at which every choice
    is tried first. The learner stops once the expected loss is below ``stop_loss`` and the expected share of
    significant mistakes below ``stop_mistakes``, over ``stop_steps`` decisions in a row and at least the share
    ``stop_share`` of all pairs.
    """

    set_up_s: float = 1e-3
    repetitions: int = 20
    warm_up: int = 2
    fewest: int = 3
    box_s: float = 1e-3
    cost_exponent: float = 0.6
    far_share: float = 0.25
    design: int = 1
    freedom: float = 3.0
    refit_growth: float = 1.3
    fit_iterations: int = 10
    candidates: int = 80
    scenarios: int = 400
    stop_loss: float = 0.015
    stop_mistakes: float = 0.01
    stop_steps: int = 15
    stop_share: float = 0.04


class DecisionLearner:
    """A Learner of single pairs."""

    def __init__(self, space: Space, seed: int, settings: DecisionSettings | None = None) -> None:
        self._space, self._seed = space, seed
        self._settings = settings or DecisionSettings()
        self._history = History(space)
        self._choices = space.all_choices
        self._number = {choice: number for number, choice in enumerate(self._choices)}
        self._all_columns = scenario_columns(space.scenarios)
        self._weights = np.array([space.weight(scenario) for scenario in space.scenarios])
        self._row = {scenario: row for row, scenario in enumerate(space.scenarios)}
        self._probes = far_ends(self._all_columns)
        self._design = nearest(self._all_columns, _DESIGN[: self._settings.design])
        self._steps = max(self._settings.stop_steps, round(self._settings.stop_share * sum(1 for _ in space.pairs())))
        shape = (len(space.scenarios), len(self._choices))
        self._candidate: Mask = np.zeros(shape, dtype=bool)
        self._done = np.zeros(shape, dtype=np.intp)  # repetitions
        self._looks = np.zeros(shape, dtype=np.intp)
        self._again = LooksAgain(self._looks, seed)
        self._of_look = MEASURED_SD**2  # what the repetitions of a look have in common, as a variance
        self._rows: Rows = np.zeros(0, dtype=np.intp)  # the scenarios that are considered
        self._place: dict[int, int] = {}  # of a row among those
        self._theta = PRIOR_MEAN
        self._posterior: Posterior | None = None
        self._pairwise: PairwiseComparisons | None = None
        self._news: list[Sample] = []  # told, and not yet in the posterior
        self._plan: list[tuple[int, int, int]] = []  # scenario, choice, repetitions; none that was told since
        self._spent_s = self._probed_s = 0.0
        self._set_up_s = self._settings.set_up_s
        self._set_ups_s: list[float] = []  # of every sample with a time
        self._fitted = self._outside = 0
        self._good = False  # whether the selection was, when the posterior last changed, good enough to stop
        self._calm = 0  # decisions in a row that were good enough to stop
        self._judged = 0
        for row, scenario in enumerate(space.scenarios):
            self._candidate[row, [self._number[choice] for choice in space.choices(scenario)]] = True
        self._free = self._candidate.copy()  # candidates that are neither fully measured nor pending
        self._pending: Mask = np.zeros(shape, dtype=bool)

    def tell(self, samples: Sequence[Sample]) -> None:
        new = self._history.tell(samples)
        for sample in new:
            self._account(sample)
        for sample in samples:
            row, number = self._row.get(sample.scenario), self._number.get(sample.choice)
            if row is not None and number is not None:
                self._pending[row, number] = False
                self._free[row, number] = self._open((row, number))
                self._plan = [entry for entry in self._plan if entry[:2] != (self._place.get(row), number)]
        if any(sample.status is not Status.OK for sample in new):
            self._posterior = None
        self._news += [sample for sample in new if sample.status is Status.OK and sample.times_s]

    def tell_pending(self, point: Point) -> None:
        row = self._row.get(point.scenario)
        for choice in point.choices:
            if row is not None and choice in self._number:
                self._free[row, self._number[choice]] = False
                self._pending[row, self._number[choice]] = True

    def ask(self, count: int) -> list[Point]:
        posterior, pairwise = self._refreshed()
        free = self._free[self._rows]
        self._plan = [entry for entry in self._plan if free[entry[:2]]]
        if len(self._plan) < count:
            self._plan = self._planned(posterior, pairwise, free, count + int(_NEWS * self._history.known))
        points, beside = [], {place for place, number, _ in self._plan[:count] if number == 0}
        for place, number, repetitions in self._plan[:count]:
            row, numbers = int(self._rows[place]), [number]
            self._again.note_asked(row, number)
            due = number and self._choices[0] == DEFAULT and self._free[row, 0] and not self._looks[row, 0]
            if due and place not in beside:  # what it has to gain over, where nobody looked yet
                numbers = [0, number]
                beside.add(place)
            points.append(Point(self._space.scenarios[row], tuple(self._choices[n] for n in numbers), repetitions))
        return points or self._elsewhere(count)

    def _planned(
        self, posterior: Posterior, pairwise: PairwiseComparisons, free: Mask, count: int
    ) -> list[tuple[int, int, int]]:
        """The next ``count`` pairs, each chosen as if those before it had come out as expected."""
        time_s = self._expected_s(posterior)
        look = self._look(time_s)
        cost = self._cost(time_s, look)
        plan: list[tuple[int, int, int]] = []
        while len(plan) < count and (first := self._begin(cost, free) or self._probe(cost, free)):
            free[first] = False
            plan.append((*first, int(look[first])))
        weights, known = self._weights, self._history.known
        while len(plan) < count and self._looks_twice:
            if (again := self._again.draw(self._rows, self._candidate, weights, cost, plan, known)) is None:
                break
            free[again] = False
            self._free[self._rows[again[0]], again[1]] = True  # it may be measured in full
            plan.append((*again, int(look[again])))
        while len(plan) < count and free.any():
            shortlist, rows, numbers = self._shortlist(posterior, pairwise, free, cost, look)
            while len(plan) < count and (taken := shortlist.take()) is not None:
                place, number = int(rows[taken]), int(numbers[taken])
                free[place, number] = False
                plan.append((place, number, int(look[place, number])))
        return plan

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        """See Learner; by the posterior, each choice of a point as if it were measured alone."""
        posterior, pairwise = self._refreshed()
        free = self._free
        owner, places, numbers, repetitions = [], [], [], []
        for at, point in enumerate(points):
            row = self._row.get(point.scenario, -1)
            # A scenario that is not looked at gains as much as the nearest one that is.
            place = self._place.get(row, -1) if row >= 0 else -1
            if place < 0:
                away = np.abs(self._all_columns[self._rows] - scenario_columns([point.scenario])).sum(axis=1)
                place = int(away.argmin())
            for choice in point.choices:
                number = self._number.get(choice)
                if number is not None and (row < 0 or free[row, number]):
                    owner.append(at)
                    places.append(place)
                    numbers.append(number)
                    repetitions.append(point.repetitions or self._settings.repetitions)
        noise = self._result_variance(np.array(repetitions, np.intp))
        gains = expected_gains(posterior, pairwise, np.array(places, np.intp), np.array(numbers, np.intp), noise)
        of_points = np.bincount(np.array(owner, np.intp), gains, minlength=len(points))
        return np.asarray(of_points * (len(self._space.scenarios) / max(len(self._rows), 1)))

    def should_stop(self) -> str | None:
        if not self._free.any():
            return "every candidate of the space was measured"
        if self._history.has_times and self._history.sample_count != self._judged:
            news, self._judged = self._history.sample_count - self._judged, self._history.sample_count
            before, pairwise = self._pairwise, self._refreshed()[1]
            if pairwise is not before:
                unseen = self._free[self._rows] & (self._looks[self._rows] == 0)
                settings = self._settings
                self._good = pairwise.is_sure(unseen, settings.stop_loss, _SIGNIFICANT, settings.stop_mistakes)
            self._calm = self._calm + news if self._good else 0
        if self._calm >= self._steps:
            return (
                f"over {self._calm} measurements the selection was expected to lose less than "
                f"{self._settings.stop_loss:.1%}"
            )
        return None

    def model(self) -> Model:
        times = self._history.times()
        if not times:
            raise ValueError("no sample with a time was told yet")
        settings = self._settings
        return DecisionModel(
            self._number, self._history, self._seen(), self._seed, settings.freedom, settings.fit_iterations
        )

    def _open(self, at: tuple[int, int] | slice) -> Mask:
        """Of the pair or of the rows ``at``: the candidates that are not fully measured, pending or not."""
        most = MOST_LOOKS if self._is_unsure else 2 if self._looks_twice else 1
        left = self._is_unsure | (self._done[at] < self._settings.repetitions)
        return np.asarray(self._candidate[at] & left & (self._looks[at] < most))

    @property
    def _looks_twice(self) -> bool:
        return self._settings.fewest < self._settings.repetitions

    @property
    def _is_unsure(self) -> bool:
        """Whether looks differ by more than further repetitions within one tell."""
        return self._looks_twice and self._of_look > UNSURE_SD**2

    def _account(self, sample: Sample) -> None:
        row, number = self._row.get(sample.scenario), self._number.get(sample.choice)
        if number is None:
            return
        if breaks(sample.choice, sample.status):
            self._candidate[:, number] = self._free[:, number] = False
        if row is None:
            return
        if sample.status is Status.OK and sample.times_s:
            self._done[row, number] += len(sample.times_s)
            self._looks[row, number] += 1
            took_s = float(self._cost(sample.time_s, len(sample.times_s)))
            self._set_ups_s.append(sample.cost_s + self._set_up_s - took_s)
            self._spent_s += took_s
            self._probed_s += took_s if row in self._probes else 0.0
        else:
            self._candidate[row, number] = False

    def _seen(self) -> Observations:
        times = self._history.times()
        samples = [self._history.samples_of(pair) for pair in times]
        self._of_look = look_variance(samples)
        return Observations.of(
            scenario_columns([scenario for scenario, _ in times]),
            [self._place.get(self._row.get(scenario, -1), -1) for scenario, _ in times],
            [self._number[choice] for _, choice in times],
            list(times.values()),
            log_variances(samples, self._of_look),
        )

    def _refreshed(self) -> tuple[Posterior, PairwiseComparisons]:
        """The posterior of everything that was told, but for the last few where much is known."""
        known, settings = self._history.known, self._settings
        if self._posterior is not None and self._pairwise is not None and len(self._news) <= _NEWS * known:
            return self._posterior, self._pairwise
        self._plan = []
        due = bool(self._news) and known >= max(self._fitted + 3, self._fitted * settings.refit_growth)
        if self._posterior is None or due or (self._news and known <= 4) or not self._update():
            self._refit(due)
        posterior = self._posterior
        assert posterior is not None
        if self._pairwise is None or self._news:
            legal, weights = self._candidate[self._rows], self._weights[self._rows]
            self._pairwise = PairwiseComparisons.of(posterior.mean, posterior.variance, legal, weights)
        self._news = []
        return posterior, self._pairwise

    def _refit(self, hyperparameters: bool) -> None:
        """Fits the posterior again; of a large space, which is not considered whole, other scenarios are drawn."""
        known = self._history.known
        total, most = len(self._space.scenarios), self._settings.scenarios
        rows = np.arange(total, dtype=np.intp)
        if total > most:
            drawn = np.random.default_rng([self._seed, known]).choice(total, most, replace=False)
            rows = np.sort(np.unique(np.concatenate([drawn, self._probes, self._design]))).astype(np.intp)
        self._rows, self._outside = rows, 0
        self._place = {int(row): place for place, row in enumerate(rows)}
        iterations = self._settings.fit_iterations if hyperparameters and known >= 8 else 0
        if iterations:
            self._fitted = known
            self._set_up_s = max(float(np.quantile(self._set_ups_s, _CHEAP)), self._settings.set_up_s)
        was_unsure, seen, choices = self._is_unsure, self._seen(), len(self._choices)
        if self._is_unsure != was_unsure:
            self._free = self._open(slice(None)) & ~self._pending
        self._theta = fit_hyperparameters(self._theta, seen, choices, self._seed, iterations)
        self._posterior = Posterior(self._all_columns[rows], choices, seen, self._theta, self._settings.freedom)
        self._pairwise = None

    def _update(self) -> bool:
        """Adds the new samples one by one; False where too many lie outside of the scenarios that are considered."""
        places = [self._place.get(self._row.get(sample.scenario, -1), -1) for sample in self._news]
        self._outside += places.count(-1)
        if self._posterior is None or self._outside > _OUTSIDE * self._history.known:
            return False
        noise = log_variances([[sample] for sample in self._news], self._of_look).tolist()
        for sample, place, variance in zip(self._news, places, noise, strict=True):
            if place >= 0:
                self._posterior.update(place, self._number[sample.choice], math.log(sample.time_s), variance)
        return True

    def _elsewhere(self, count: int) -> list[Point]:
        """Open pairs of scenarios that are not considered at present."""
        return [
            Point(self._space.scenarios[row], (self._choices[number],))
            for row, number in np.argwhere(self._free)[:count]
        ]

    def _cost(self, time_s: Floats | float, repetitions: NDArray[np.intp] | int) -> Floats:
        """Seconds that a measurement takes; the arguments have one array shape."""
        warm_up = np.maximum(1, np.round(self._settings.warm_up * np.asarray(repetitions) / self._settings.repetitions))
        return np.asarray(self._set_up_s + (repetitions + warm_up) * time_s)

    def _look(self, time_s: Floats) -> NDArray[np.intp]:
        """(N, M): the repetitions of the next measurement of each pair, whose call is expected to take ``time_s``."""
        full, done = self._settings.repetitions, self._done[self._rows]
        fitting = np.maximum(self._settings.box_s / time_s, self._settings.fewest)
        first = np.minimum(fitting, full).astype(np.intp)
        first = np.where(2 * first >= full, full, first)
        return first if self._is_unsure else np.where((done > 0) & (done < full), full - done, first)

    def _expected_s(self, posterior: Posterior) -> Floats:
        """(N, M): the time of a call of each pair."""
        if self._history.has_times:
            log_time = posterior.mean + 0.5 * np.minimum(posterior.variance, 1.0)
            return np.asarray(np.exp(np.minimum(np.maximum(log_time, -20.0), 5.0)))  # clip takes twice as long
        # No cost is known yet, but small messages on few ranks are cheap everywhere.
        growth = 0.4 * self._all_columns[self._rows, 2] + 0.2 * self._all_columns[self._rows, :2].sum(axis=1)
        return np.broadcast_to(1e-5 * 2.0 ** growth[:, None], posterior.mean.shape)

    def _shortlist(
        self, posterior: Posterior, pairwise: PairwiseComparisons, free: Mask, cost: Floats, look: NDArray[np.intp]
    ) -> tuple[Shortlist, Rows, Rows]:
        """The pairs that may have the greatest gain per cost, and their places and choices."""
        cells, costs = np.flatnonzero(free), cost[free]
        local = pairwise.losses[free] / costs
        random = np.random.default_rng([self._seed, self._history.sample_count, len(cells)])
        if len(cells) > self._settings.candidates:
            part = self._settings.candidates // 4
            costly = local * np.sqrt(costs)
            kept = [_greatest(local, 2 * part), _greatest(costly, part), random.choice(len(cells), part, False)]
            cells = cells[np.unique(np.concatenate(kept))]
        rows, numbers = np.divmod(cells, free.shape[1])
        worth = random.uniform(0.999, 1.0, len(rows)) / cost[rows, numbers] ** self._settings.cost_exponent
        noise = self._result_variance(look[rows, numbers])
        return Shortlist(posterior.covariances(rows, numbers), pairwise, rows, numbers, noise, worth), rows, numbers

    def _result_variance(self, repetitions: Rows) -> Floats:
        """Of the log of a median of so many repetitions, before it is measured."""
        return np.asarray(self._of_look + _REPETITION_SD**2 / repetitions)

    def _begin(self, cost: Floats, free: Mask) -> tuple[int, int] | None:
        """The cheapest unmeasured pair in the first scenario of the design that has one."""
        for row in self._design:
            place = self._place.get(int(row))
            if place is not None and (unseen := free[place] & (self._looks[row] == 0)).any():
                return place, int(np.where(unseen, cost[place], np.inf).argmin())
        return None

    def _probe(self, cost: Floats, free: Mask) -> tuple[int, int] | None:
        """The cheapest unmeasured pair at the far ends of the space, if its cost fits into ``far_share``."""
        unseen = free & (self._looks[self._rows] == 0)
        places = np.flatnonzero(np.isin(self._rows, self._probes))
        pairs = ((int(place), int(number)) for place in places for number in np.flatnonzero(unseen[place]))
        if not (open_pairs := [(float(cost[pair]), *pair) for pair in pairs]):
            return None
        price, place, number = min(open_pairs)
        return (place, number) if self._probed_s + price <= self._settings.far_share * self._spent_s else None


def _greatest(values: Floats, count: int) -> Rows:
    """The places of the ``count`` greatest of more values."""
    return np.argpartition(-values, count)[:count]
