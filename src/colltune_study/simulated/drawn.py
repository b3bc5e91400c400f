"""Measures nothing: draws times from a known truth and known noise, so that decisions can be judged against it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Choice, Environment, Scenario, Status
from colltune.measure.answers import Answered, AnsweringSource
from colltune.measure.contract import Effort
from colltune_study.recorded.launch_effects import NO_EFFECTS, LaunchEffects


@dataclass(frozen=True, slots=True)
class Noise:
    """How measured times scatter around the true one; every factor multiplies the time.

    ``spread``: standard deviation of the logarithm of one repetition. ``tail_share`` of the repetitions are slower by
    a Pareto factor of index ``tail_index`` (below 2: the variance is infinite). ``drift``: standard deviation of
    the step that the machine's speed takes from one point to the next, alike for all choices; ``unevenness``: of
    what hits the choices of a point differently. Two modes between launches: in half of the launches everything is
    ``launch_mode`` times as slow; and of every (scenario, choice), for itself, ``own_share`` of the launches are
    ``own_mode`` times as slow. ``effects``: what else launches and moments do.
    """

    spread: float = 0.08
    tail_share: float = 0.03
    tail_index: float = 1.5
    drift: float = 0.05
    unevenness: float = 0.02
    launch_mode: float = 1.38
    own_mode: float = 1.08
    own_share: float = 0.5
    effects: LaunchEffects = NO_EFFECTS


QUIET = Noise(0.01, 0.0, 1.5, 0.0, 0.0, 1.0, 1.0, 0.0)


class SimulatedSource(AnsweringSource):
    """A Source whose ``truth`` is given: the true median time in seconds of a choice, or the status it fails with.

    Each choice is timed as often as the effort asks for at least, or the point at most.
    ``launch`` and ``seed`` fix all that is random. ``clock``: see AnsweringSource.
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
        super().__init__(environment, launch, clock=clock)
        self._truth = truth
        self._noise, self._seed = noise, seed
        self._random = np.random.default_rng([seed, launch])
        self._modes: dict[tuple[Scenario, Choice], float] = {}
        self._draw_launch()

    def kill(self) -> None:
        super().kill()
        self._draw_launch()

    def _draw_launch(self) -> None:
        self._modes.clear()
        self._speed = self._noise.launch_mode if self._random.random() < 0.5 else 1.0

    def _begin_group(self) -> None:
        self._speed *= float(np.exp(self._random.normal(0.0, self._noise.drift)))

    def _answer(self, scenario: Scenario, choice: Choice, repetitions: int, effort: Effort) -> Answered:
        truth = self._truth(scenario, choice)
        if isinstance(truth, Status):
            return Answered(truth, (), 0.0)
        count = min(repetitions or effort.fewest, effort.fewest)
        key, effects = (self._seed, self._launch, self.launches), self._noise.effects
        truth *= effects.of_launch(scenario, choice, key) * self._mode(scenario, choice)
        times_s = self._times_s(truth * effects.of_calls(choice, count, (*key, self._group)))
        return Answered(Status.OK, times_s, sum(times_s))

    def _mode(self, scenario: Scenario, choice: Choice) -> float:
        pair = (scenario, choice)
        if pair not in self._modes:
            self._modes[pair] = self._noise.own_mode if self._random.random() < self._noise.own_share else 1.0
        return self._modes[pair]

    def _times_s(self, middle_s: NDArray[np.float64]) -> tuple[float, ...]:
        """``middle_s``: of each call, but for what all calls of the moment share."""
        noise, count = self._noise, len(middle_s)
        middle_s = middle_s * self._speed * float(np.exp(self._random.normal(0.0, noise.unevenness)))
        times = middle_s * np.exp(self._random.normal(0.0, noise.spread, count))
        slow = self._random.random(count) < noise.tail_share
        times[slow] *= 1.0 + self._random.pareto(noise.tail_index, int(slow.sum()))
        return tuple(float(time_s) for time_s in times)
