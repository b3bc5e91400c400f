"""The strategies as the papers' figures need them: restricted to some sizes, or watched while they learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colltune.core.sample import Sample, Scenario
from colltune.core.space import Model, Point, Space
from colltune.learn.contract import Learner
from colltune_study.research.contract import Strategy
from colltune_study.research.evaluation import Entrant
from colltune_study.research.learners.acclaim import size_between
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.simulate import Pace
from colltune_study.research.strategies import Contestant, contestants
from papers.study import MARKS, is_power_of_two

AT_MARKS = Pace(marks=tuple(sorted(MARKS)))


def entrant(kind: str, name: str = "", scaling: Scaling | None = None, pace: Pace | None = None) -> Contestant:
    """A strategy of ``colltune_study.research.strategies`` under its name in a figure."""
    [found] = contestants([kind], scaling)
    return shown_as(found, name or kind, pace)


def shown_as(contestant: Contestant, name: str, pace: Pace | None = None) -> Contestant:
    """The same strategy under another name, scored at another pace."""
    return replace(contestant, name=name, pace=pace or contestant.pace, kind=contestant.kind or contestant.name)


@dataclass(frozen=True)
class OnPowersOfTwo:
    """Learns from sizes that are powers of two only; every ``every``-th point moves to a size near by that is not.

    ``every`` 0: never (FACT); 5: ACCLAiM's 80-20 split; 2: 50-50 (ACCLAiM, section IV.B).
    """

    inner: Entrant
    name: str
    every: int
    pace: Pace = AT_MARKS

    def __call__(self, space: Space, seed: int) -> Strategy:
        return _Moving(self.inner, space, seed, self.every)


class _Moving:
    def __init__(self, inner: Entrant, space: Space, seed: int, every: int) -> None:
        small = tuple(scenario for scenario in space.scenarios if is_power_of_two(scenario.size_bytes))
        self._space, self._every = space, every
        self._learner = inner(Space(space.collective, small, space.legal), seed)
        self._random = np.random.default_rng(seed)
        self._others = {scenario for scenario in space.scenarios if not is_power_of_two(scenario.size_bytes)}
        self._asked = 0

    def ask(self, count: int) -> list[Point]:
        points = self._learner.ask(count)
        if not points:
            return points
        self._asked += 1
        if self._every and self._asked % self._every == 0:
            near = self._near(points[0].scenario)
            if near is not None:
                learner: Learner = self._learner  # type: ignore[assignment]
                learner.tell_pending(points[0])
                self._others.discard(near)
                return [Point(near, self._space.choices(near))]
        return points

    def _near(self, scenario: Scenario) -> Scenario | None:
        """A size that is no power of two, nearer to the scenario's than to its neighbours; else the nearest."""
        shape = (scenario.nodes, scenario.ppn)
        if (near := size_between(scenario, self._others, self._random)) is not None:
            return near
        own = sorted(other for other in self._others if (other.nodes, other.ppn) == shape)
        return min(own, key=lambda other: abs(np.log2(other.size_bytes / max(1, scenario.size_bytes))), default=None)

    def tell(self, samples: Sequence[Sample]) -> None:
        self._learner.tell(samples)

    def should_stop(self) -> str | None:
        return self._learner.should_stop()

    def model(self) -> Model:
        return self._learner.model()


class Watched:
    """A strategy of which the cumulative jackknife variance is noted whenever its model is looked at.

    Of t trees with standard deviation s of their predictions the jackknife variance is s^2 / (t - 1) (ACCLAiM, III.B).
    """

    def __init__(self, inner: Entrant, trees: int) -> None:
        self._inner, self._trees = inner, trees
        self.variances: list[float] = []

    def __call__(self, space: Space, seed: int) -> Strategy:
        strategy = self._inner(space, seed)
        pairs = list(space.pairs())
        variances, trees, model = self.variances, self._trees, strategy.model

        def watched() -> Model:
            found = model()
            spread = found.predict(pairs).std
            variances.append(float((spread**2).sum() / (trees - 1)))
            return found

        strategy.model = watched  # type: ignore[method-assign]
        return strategy
