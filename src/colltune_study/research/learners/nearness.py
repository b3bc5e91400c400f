"""What a measurement may gain, by what was gained near to it: for learners that have no posterior to ask."""

import math
from collections.abc import Sequence

import numpy as np

from colltune.core.sample import DEFAULT, Scenario
from colltune.core.space import Point
from colltune.learn.scenario_columns import Floats
from colltune.learn.told import History

# Expected log speed-up of a scenario where nothing is known, which counts as much as a measurement in that very place.
_PRIOR_GAIN = 0.15


class NearGains:
    """The gains that were found, and a prior, averaged with what is near in size and in ranks counting most.

    A gain is the logarithm of the time of the default over that of the best choice of a scenario. It counts for its own
    scenario alone: what the neighbours learn from a measurement is not known here.
    """

    def __init__(self, history: History) -> None:
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
        if self._told == self._history.told:
            return
        self._told = self._history.told
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
