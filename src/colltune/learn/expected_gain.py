"""Decides which measurements pay for one application: the time that they may save against the time that they take.

Notations: the share w of a run's time that a scenario takes; the gain g, the part of that time
which the best choice saves over the default; T, the run time still to come. A measurement is expected to save
w * g * T seconds of the whole job, and holds the whole job while it lasts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from colltune.core.sample import DEFAULT, Sample, Scenario, Status
from colltune.core.space import Point

# The gain that is expected before anything is measured, and how many measured scenarios that expectation counts for.
_PRIOR_GAIN = 0.15
_PRIOR_WEIGHT = 2.0
# The proof of a gain, in fresh launches, takes about as long as its measurement.
_PROOF = 2.0
# The fewest calls by which a choice is measured, warm-up included.
_FEWEST_CALLS = 15


@dataclass(frozen=True)
class ExpectedGain:
    """``share``: of the run's time, by scenario; ``runtime_s``: of runs still to come; ``call_s``: time of one call."""

    share: Mapping[Scenario, float]
    runtime_s: float
    call_s: Mapping[Scenario, float] = field(default_factory=dict)

    def saving_s(self, scenario: Scenario, gain: float) -> float:
        """Seconds of the whole job."""
        return self.share.get(scenario, 0.0) * gain * self.runtime_s

    def budget_s(self) -> float:
        """The most seconds that may be spent: as many as are expected to be saved, even if the user allows more."""
        return sum(self.saving_s(scenario, _PRIOR_GAIN) for scenario in self.share)

    def worth_measuring(
        self, points: Sequence[tuple[Point, float]], samples: Sequence[Sample]
    ) -> tuple[list[int], str]:
        """Indices of the points, given with their expected time in s, that save more than they cost; best first.

        And, where there are none, the reason.
        """
        savings = _Savings(self, samples)
        costs = [self.cost_s(point, expected_s) for point, expected_s in points]
        ratios = [savings.of(point.scenario) / cost_s for (point, _), cost_s in zip(points, costs, strict=True)]
        order = sorted(range(len(points)), key=lambda place: -ratios[place])
        if not order:
            return [], "nothing is left to measure"
        best = order[0]
        saving_s = savings.of(points[best][0].scenario)
        reason = f"the next measurement would cost {costs[best]:.2g} s and is expected to save {saving_s:.2g} s"
        return [place for place in order if ratios[place] > 1.0], reason

    def cost_s(self, point: Point, expected_s: float) -> float:
        """Seconds of a point and its proof, where measuring is expected to take ``expected_s``."""
        calls_s = _FEWEST_CALLS * self.call_s.get(point.scenario, 0.0) * len(point.choices)
        return max(expected_s, calls_s, 1e-9) * _PROOF


class _Savings:
    """Expected savings in s, given the same samples."""

    def __init__(self, expected: ExpectedGain, samples: Sequence[Sample]) -> None:
        self._expected = expected
        gains = gains_of(samples)
        self._everywhere = _shrunk(gains.values(), _PRIOR_GAIN)
        names = {scenario.collective for scenario in gains}
        self._gain = {
            name: _shrunk((gain for call, gain in gains.items() if call.collective == name), self._everywhere)
            for name in names
        }

    def of(self, scenario: Scenario) -> float:
        return self._expected.saving_s(scenario, self._gain.get(scenario.collective, self._everywhere))


def gains_of(samples: Iterable[Sample]) -> dict[Scenario, float]:
    """The part of the default's time that the best choice saves, where both were measured; 0 where it is the best."""
    times: dict[Scenario, dict[object, float]] = {}
    for sample in samples:
        if sample.status is Status.OK:
            times.setdefault(sample.scenario, {})[sample.choice] = sample.time_s
    return {
        scenario: 1.0 - min(of.values()) / of[DEFAULT] for scenario, of in times.items() if of.get(DEFAULT, 0.0) > 0.0
    }


def _shrunk(values: Iterable[float], prior: float) -> float:
    shrunk = list(values)
    return (prior * _PRIOR_WEIGHT + sum(shrunk)) / (_PRIOR_WEIGHT + len(shrunk))
