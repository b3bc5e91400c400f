"""Sources that have their answers at hand: no job is launched, and time passes on a clock of their own."""

import abc
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from colltune.core.errors import MeasurementError
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Answer, Effort, TimeIsUpError


@dataclass(frozen=True, slots=True)
class Answered:
    """Of one choice: how it ended, its repetitions in seconds, and the seconds that measuring it takes."""

    status: Status
    times_s: tuple[float, ...]
    cost_s: float
    detail: str = ""


class AnsweringSource(abc.ABC):
    """A Launch that knows what each choice takes; a point at a time, wherever it is.

    ``launch`` numbers the launches of a job. ``now_s``: the source's own clock, which ``start`` moves on by ``start_s``
    and each measurement by its cost. ``until_s`` is of ``clock``, the source's own by default. ``ahead``: the next
    point is asked for while one is measured, as a LiveSource does it.
    """

    def __init__(
        self, environment: Environment, launch: int, start_s: float = 0.0, clock: Callable[[], float] | None = None
    ) -> None:
        self._environment, self._launch, self._start_s = environment, launch, start_s
        self._group = 0
        self._begun: deque[tuple[int, Point, Effort]] = deque()
        self._tickets = 0
        self.now_s = self.inside_s = 0.0
        self._clock = clock or (lambda: self.now_s)
        self.until_s = math.inf
        self.launches = 0
        self.ahead = False
        self._runs = self.closed = self.disturbed = False

    @property
    def environment(self) -> Environment:
        return self._environment

    def start(self) -> None:
        if not self._runs:
            self._runs = True
            self.launches += 1
            self.now_s += self._start_s

    def kill(self) -> None:
        self._runs = False

    def close(self) -> None:
        self.closed = True

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        """Raises MeasurementError after ``close``."""
        following = iter(points)
        point = next(following, None)
        while point is not None and self._clock() < self.until_s:
            samples = self._measured(point, effort) if point.choices else []
            upcoming = next(following, None) if self.ahead else None
            if point.choices:
                yield point, samples
            point = upcoming if self.ahead else next(following, None)

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:  # noqa: ARG002
        """One point after another, wherever they are: this machine does nothing at once."""
        self._tickets += 1
        self._begun.append((self._tickets, point, effort))
        return self._tickets

    def next_answer(self) -> Answer:
        if self._clock() >= self.until_s:
            raise TimeIsUpError
        ticket, point, effort = self._begun.popleft()
        return Answer(ticket, point, self._measured(point, effort), last=True)

    def _begin_group(self) -> None:  # noqa: B027 - most sources have nothing to do
        """A new point begins."""

    @abc.abstractmethod
    def _answer(self, scenario: Scenario, choice: Choice, repetitions: int, effort: Effort) -> Answered:
        """``repetitions``: of the point; 0: as many as the source takes for enough."""

    def _measured(self, point: Point, effort: Effort) -> list[Sample]:
        if self.closed:
            raise MeasurementError("this source was closed", "Open a new one")
        self.start()
        self._group += 1
        self._begin_group()
        return [self._sample(point, choice, effort) for choice in point.choices]

    def _sample(self, point: Point, choice: Choice, effort: Effort) -> Sample:
        answered = self._answer(point.scenario, choice, point.repetitions, effort)
        started_s = self.now_s
        self.now_s += answered.cost_s
        self.inside_s += answered.cost_s
        return Sample(
            point.scenario,
            choice,
            answered.status,
            answered.times_s,
            cost_s=answered.cost_s,
            launch=self._launch,
            group=self._group,
            started_s=started_s,
            detail=answered.detail,
        )
