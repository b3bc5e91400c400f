"""A source that answers from a table of recorded times: a whole campaign runs with no MPI and gives the same each time.

What it takes is what the table says that it took, or a model of it.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from colltune.core.sample import Choice, Environment, Scenario, Status
from colltune.measure.answers import Answered, AnsweringSource
from colltune.measure.contract import Effort
from colltune.store.grid import Floats, Grid

Pair = tuple[Scenario, Choice]


@dataclass(frozen=True, slots=True)
class MeasuringCost:
    """Seconds that a measurement of one pair takes: set-up, ``repetitions`` and the ``warm_up`` before them.

    A look at fewer repetitions has as many fewer to warm up, but at least one.
    """

    set_up_s: float = 1e-3
    repetitions: int = 20
    warm_up: int = 2

    def of(self, time_s: float, repetitions: int = 0) -> float:
        """``repetitions``: 0 is all of them."""
        count = repetitions or self.repetitions
        warm_up = max(min(1, self.warm_up), round(self.warm_up * count / self.repetitions))
        return self.set_up_s + (count + warm_up) * time_s

    def on(self, table: Grid, scenario: Scenario, choice: Choice, repetitions: int = 0) -> float:
        """What the table says that it took; by this model where it does not say, or for fewer repetitions."""
        recorded, time_s = table.recorded_cost(scenario, choice), table.time(scenario, choice)
        if recorded is None:
            return self.of(time_s, repetitions)
        return min(recorded, self.of(time_s, repetitions)) if 0 < repetitions < self.repetitions else recorded

    def total(self, table: Grid) -> float:
        """Seconds that measuring every pair takes."""
        return sum(self.on(table, *pair) for pair in table.recorded)


# Seconds of the waves of a drift: other jobs come and go, and clocks follow the temperature.
_PERIODS_S = (20.0, 110.0, 600.0)


@dataclass(frozen=True, slots=True)
class TimeDrift:
    """What makes all times longer or shorter as time goes by; ``sd``: of the logarithm of the factor, over time."""

    sd: float = 0.0
    seed: int = 0

    def factor(self, now_s: float) -> float:
        """At ``now_s`` on the clock of the machine. Waves of three periods, whose phases follow from the seed."""
        if not self.sd:
            return 1.0
        phases = np.random.default_rng((self.seed, 2)).uniform(0.0, 1.0, len(_PERIODS_S))
        waves = np.sin(2.0 * np.pi * (now_s / np.array(_PERIODS_S) + phases))
        return math.exp(self.sd * math.sqrt(2.0 / len(_PERIODS_S)) * float(waves.sum()))


# What makes one launch differ from another, and one moment of it from the next: a factor for each of so many calls of a
# choice in a scenario, in the launch of a key, where the number is that of what is measured side by side.
Effects = Callable[[Scenario, Choice, int, tuple[int, ...], int], Floats]


class ReplaySource(AnsweringSource):
    """Draws repetitions about the recorded medians; each look at a pair draws anew.

    There are as many as the point asks for, and no more than ``cost.repetitions`` and the effort's most. ``seed`` and
    ``launch`` fix them all, whatever was measured before. In each launch a choice at a scenario is slower or faster
    throughout, by a lognormal factor of its own: ``launch_sd`` is the standard deviation of its logarithm.
    ``effects``: what else launches and moments do. ``drift``: what befalls all alike as time goes by.
    A pair that the table does not hold is ``inapplicable``: nothing is known of it, and no time is invented.
    ``start_s``, ``clock``: see AnsweringSource.
    """

    def __init__(
        self,
        grids: Sequence[Grid],
        environment: Environment,
        seed: int,
        cost: MeasuringCost | None = None,
        launch: int = 0,
        launch_sd: float = 0.0,
        start_s: float = 0.0,
        clock: Callable[[], float] | None = None,
        drift: TimeDrift = TimeDrift(),
        effects: Effects | None = None,
    ) -> None:
        super().__init__(environment, launch, start_s, clock)
        self._drift, self._effects = drift, effects
        self._grids = {grid.collective: grid for grid in grids}
        ends = accumulate((len(grid.scenarios) for grid in grids), initial=0)
        self._first_rows = dict(zip(self._grids, ends, strict=False))
        self._seed, self._cost, self._launch_sd = seed, cost or MeasuringCost(), launch_sd
        self._looks: Counter[Pair] = Counter()

    def _answer(self, scenario: Scenario, choice: Choice, repetitions: int, effort: Effort) -> Answered:
        try:
            grid = self._grids[scenario.collective]
            row, column = grid.place(scenario, choice)
        except KeyError:
            return Answered(Status.INAPPLICABLE, (), self._cost.set_up_s, "not in the recorded data")
        place = self._first_rows[scenario.collective] + row, column  # no other pair has it
        count = min(repetitions or self._cost.repetitions, self._cost.repetitions, effort.most)
        key = (self._seed, *place, self._looks[scenario, choice], *((self._launch,) if self._launch else ()))
        self._looks[scenario, choice] += 1
        factor = self._factor(place) * self._drift.factor(self._clock())
        launch = (self._seed, self._launch, self.launches)
        factors = np.full(count, factor)
        if self._effects is not None:
            factors *= self._effects(scenario, choice, count, launch, self._group)
        times_s = grid.repetitions(scenario, choice, count, key) * factors
        cost_s = self._cost.on(grid, scenario, choice, count)
        return Answered(Status.OK, tuple(times_s.tolist()), cost_s)

    def _factor(self, place: tuple[int, int]) -> float:
        """What the launch multiplies a pair's times by."""
        if not self._launch_sd:
            return 1.0
        anew = (self.launches,) if self.launches > 1 else ()
        random = np.random.default_rng((*place, self._launch, self._seed, 1, *anew))
        return float(np.exp(random.normal(0.0, self._launch_sd)))
