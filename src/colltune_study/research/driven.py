"""A strategy as the campaign drives it: the same loop as in tuning, and the strategy's own order of measurements."""

from collections.abc import Callable, Sequence

import numpy as np

from colltune.core.sample import Sample
from colltune.core.space import Model, Point
from colltune.learn.scenario_columns import Floats
from colltune_study.research.contract import Strategy


class Driven:
    """The Learner of a strategy. It is asked for one point after another, each once the last one is told, as published.

    ``ended`` says when nothing more needs to be measured; the strategy's own stop, after which others go on, does not
    end it. What is to be gained is not asked of a strategy: with one collective nothing is compared.
    """

    def __init__(self, strategy: Strategy, ended: Callable[[], bool]) -> None:
        self._strategy, self._ended = strategy, ended
        self._next: list[Point] = []

    def should_stop(self) -> str | None:
        if self._ended():
            return "all that is to be known of this run is known"
        self._next = self._strategy.ask(1)
        return None if self._next else "the strategy asks for nothing more"

    def ask(self, count: int) -> list[Point]:
        return self._next[:count]

    def tell(self, samples: Sequence[Sample]) -> None:
        if samples:
            self._strategy.tell(samples)

    def tell_pending(self, point: Point) -> None:
        """One point at a time is measured: what is under way is told before the next question."""

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        return np.ones(len(points))

    def model(self) -> Model:
        return self._strategy.model()
