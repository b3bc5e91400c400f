"""Measures nothing: draws times from a known truth and known noise, so that decisions can be judged against it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from colltune.core.choice import Choice
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Answer, Effort, TimeIsUpError


@dataclass(frozen=True, slots=True)
class Noise:
    """How measured times scatter around the true one; every factor multiplies the time.

    ``spread``: standard deviation of the logarithm of one repetition. ``tail_share`` of the repetitions are slower by
    a Pareto factor of index ``tail_index`` (below 2: the variance is infinite). ``drift``: standard deviation of
    the step that the machine's speed takes from one point to the next, alike for all choices; ``unevenness``: of
    what hits the choices of a point differently. Two modes between launches: in half of the launches everything is
    ``launch_mode`` times as slow; and of every (scenario, choice), for itself, ``own_share`` of the launches are
    ``own_mode`` times as slow.
    """

    spread: float = 0.08
    tail_share: float = 0.03
    tail_index: float = 1.5
    drift: float = 0.05
    unevenness: float = 0.02
    launch_mode: float = 1.38
    own_mode: float = 1.08
    own_share: float = 0.5


QUIET = Noise(0.01, 0.0, 1.5, 0.0, 0.0, 1.0, 1.0, 0.0)


class SimulatedSource:
    """A Source whose ``truth`` is given: the true median time in seconds of a choice, or the status it fails with.

    Each choice is timed as often as the effort asks for at least, or the point at most.
    ``launch`` and ``seed`` fix all that is random. ``now_s`` is the source's own clock: the cost of what it measured.
    ``until_s`` is of ``clock``, the source's own by default.
    """

    def __init__(
        self,
        environment: Environment,
        truth: Callable[[Scenario, Choice], float | Status],
        seed: int,
        launch: int = 1,
        noise: Noise = QUIET,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._environment = environment
        self._truth = truth
        self._noise = noise
        self._launch = launch
        self._random = np.random.default_rng([seed, launch])
        self._speed = noise.launch_mode if self._random.random() < 0.5 else 1.0
        self._modes: dict[tuple[Scenario, Choice], float] = {}
        self._group = 0
        self._begun: deque[tuple[int, Point, Effort]] = deque()
        self._tickets = 0
        self.now_s = 0.0
        self._clock = clock or (lambda: self.now_s)
        self.until_s = math.inf
        self.launches = 1
        self.closed = False

    @property
    def environment(self) -> Environment:
        return self._environment

    @property
    def inside_s(self) -> float:
        return self.now_s

    def start(self) -> None:
        """Nothing has to be begun."""

    def kill(self) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            if not point.choices:
                continue
            if self._clock() >= self.until_s:
                return
            yield point, self._measured(point, effort)

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

    def _measured(self, point: Point, effort: Effort) -> list[Sample]:
        self._group += 1
        self._speed *= float(np.exp(self._random.normal(0.0, self._noise.drift)))
        count = min(point.repetitions or effort.fewest, effort.fewest)
        return [self._sample(point.scenario, choice, count) for choice in point.choices]

    def _sample(self, scenario: Scenario, choice: Choice, count: int) -> Sample:
        truth = self._truth(scenario, choice)
        started_s = self.now_s
        status = truth if isinstance(truth, Status) else Status.OK
        times_s = () if isinstance(truth, Status) else self._times_s(truth * self._mode(scenario, choice), count)
        self.now_s += sum(times_s)
        return Sample(
            scenario,
            choice,
            status,
            times_s,
            cost_s=sum(times_s),
            launch=self._launch,
            group=self._group,
            started_s=started_s,
        )

    def _mode(self, scenario: Scenario, choice: Choice) -> float:
        pair = (scenario, choice)
        if pair not in self._modes:
            self._modes[pair] = self._noise.own_mode if self._random.random() < self._noise.own_share else 1.0
        return self._modes[pair]

    def _times_s(self, middle_s: float, count: int) -> tuple[float, ...]:
        noise = self._noise
        middle_s *= self._speed * float(np.exp(self._random.normal(0.0, noise.unevenness)))
        times = middle_s * np.exp(self._random.normal(0.0, noise.spread, count))
        slow = self._random.random(count) < noise.tail_share
        times[slow] *= 1.0 + self._random.pareto(noise.tail_index, int(slow.sum()))
        return tuple(float(time_s) for time_s in times)
