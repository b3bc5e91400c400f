"""A source that answers from what was recorded: a whole campaign runs with no MPI and gives the same each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from colltune.core.choice import Choice
from colltune.core.errors import MeasurementError
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort

Pair = tuple[Scenario, Choice]
# What a measurement takes beyond its repetitions: the request, the switch of the algorithm, the answer.
SET_UP_S = 1e-3


class ReplaySource:
    """Answers with recorded samples, one after another where a pair was measured more than once, then from the start.

    A pair that was never recorded is ``inapplicable``: nothing is known of it, and no time is invented.
    """

    def __init__(self, recorded: Sequence[Sample], environment: Environment) -> None:
        self._environment = environment
        self._recorded: dict[Pair, list[Sample]] = {}
        for sample in recorded:
            self._recorded.setdefault((sample.scenario, sample.choice), []).append(sample)
        self._answered: dict[Pair, int] = {}
        self._group = 0
        self._clock_s = 0.0
        self._open = True

    @classmethod
    def from_times(cls, times_s: Mapping[Pair, float], environment: Environment) -> ReplaySource:
        """A source on a table of median times in seconds."""
        samples = [Sample(scenario, choice, Status.OK, (time_s,)) for (scenario, choice), time_s in times_s.items()]
        return cls(samples, environment)

    @property
    def environment(self) -> Environment:
        return self._environment

    @property
    def spent_s(self) -> float:
        """The seconds that everything answered so far would have taken."""
        return self._clock_s

    def measure(self, points: Sequence[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        """Raises MeasurementError after ``close``."""
        for point in points:
            if not self._open:
                raise MeasurementError("this source was closed", "Open a new one")
            self._group += 1
            yield point, [self._answer(point.scenario, choice, effort) for choice in point.choices]

    def close(self) -> None:
        self._open = False

    def _answer(self, scenario: Scenario, choice: Choice, effort: Effort) -> Sample:
        pair = (scenario, choice)
        recorded = self._recorded.get(pair)
        started_s = self._clock_s
        if not recorded:
            self._clock_s += SET_UP_S
            return Sample(
                scenario,
                choice,
                Status.INAPPLICABLE,
                cost_s=SET_UP_S,
                group=self._group,
                started_s=started_s,
                detail="not in the recorded data",
            )
        number = self._answered.get(pair, 0)
        self._answered[pair] = number + 1
        sample = recorded[number % len(recorded)]
        cost_s = sample.cost_s or SET_UP_S + _repetitions(sample, effort) * (sample.time_s if sample.times_s else 0.0)
        self._clock_s += cost_s
        return Sample(
            scenario,
            choice,
            sample.status,
            sample.times_s,
            back_to_back_s=sample.back_to_back_s,
            osu_mean_s=sample.osu_mean_s,
            cost_s=cost_s,
            launch=sample.launch,
            group=self._group,
            started_s=started_s,
            detail=sample.detail,
        )


def _repetitions(sample: Sample, effort: Effort) -> float:
    """How often a live source would have repeated the call, warm-up included: what fits in the time box."""
    if not sample.times_s:
        return 0.0
    fitting = effort.box_s / sample.time_s if sample.time_s > 0.0 else effort.most
    return effort.warm_up + min(max(fitting, effort.fewest), effort.most)
