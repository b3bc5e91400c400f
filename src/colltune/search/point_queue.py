"""What is still to be measured of one collective, in which order, and what that may bring."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from colltune.core.proven import StopReason
from colltune.core.sample import Choice, Sample, Scenario
from colltune.core.space import Point, Space
from colltune.learn.contract import Learner
from colltune.learn.scenario_columns import Floats
from colltune.schedule.durations import Durations, ScenarioRows

# Scenarios that are looked at where all that a learner asks for is too expensive, and repetitions of what is measured.
_SOME, _FEW = 64, 3


class PointQueue:
    """The open points of one collective.

    They come in the order of the grid (the whole job first, then its parts), by gain per cost, or from the learner.
    """

    def __init__(self, space: Space, learner: Learner, durations: Durations) -> None:
        self._space = space
        self._learner = learner
        self._durations = durations
        ordered = sorted(space.scenarios, key=lambda s: (-s.ranks, -s.nodes, s.size_bytes))
        self._open = {scenario: space.choices(scenario) for scenario in ordered}
        self._place = {scenario: place for place, scenario in enumerate(ordered)}
        self._left = np.array([len(choices) for choices in self._open.values()], dtype=float)
        self._calls = ScenarioRows.of(ordered)
        self._expected_s = self._worst_case_s = np.zeros(0)  # of one choice, by the ``_version`` of the durations
        self._version = -1
        self._broken: set[Choice] = set()
        self._asked: list[Point] | None = None
        self._asked_for = 0
        self._gains: tuple[list[Point], Floats] | None = None  # of points, as long as nothing new is told
        self.reason: StopReason | str | None = None  # why nothing more is measured

    @property
    def collective(self) -> str:
        return self._space.collective

    def know(self, samples: Sequence[Sample]) -> None:
        """Samples of this collective, also of an earlier run: nothing of them is measured again."""
        self._learner.tell(samples)
        self._asked = self._gains = None
        done: dict[Scenario, set[Choice]] = {}
        for sample in samples:
            done.setdefault(sample.scenario, set()).add(sample.choice)
        for scenario, choices in done.items():
            self._close(scenario, choices)

    def exclude(self, choices: Iterable[Choice]) -> None:
        """These are not measured any more."""
        new = set(choices) - self._broken
        self._broken |= new
        for scenario in list(self._open) if new else ():
            self._close(scenario, new)

    def begin(self, point: Point) -> None:
        """``point`` is being measured: it is not offered again."""
        self._learner.tell_pending(point)
        self._gains = None
        self._close(point.scenario, set(point.choices))
        if self._asked is not None:
            self._asked = [other for other in self._asked if other != point]

    def _close(self, scenario: Scenario, choices: set[Choice]) -> None:
        if scenario not in self._open:
            return
        left = tuple(choice for choice in self._open[scenario] if choice not in choices)
        self._left[self._place[scenario]] = len(left)
        if left:
            self._open[scenario] = left
        else:
            del self._open[scenario]

    def rest_s(self, *, worst_case: bool = False) -> float:
        """What the open points are expected to take, all together; ``worst_case``: what they may take."""
        self._look_up()
        return float((self._worst_case_s if worst_case else self._expected_s) @ self._left)

    def _look_up(self) -> None:
        if self._version != self._durations.version:
            self._version = self._durations.version
            self._expected_s = self._durations.expected_s(self._calls)
            self._worst_case_s = self._durations.worst_cases_s(self._calls)

    def in_order(self, count: int) -> list[Point]:
        """The next ``count`` open points in the order of the grid."""
        return [
            Point(scenario, choices) for (scenario, choices), _ in zip(self._open.items(), range(count), strict=False)
        ]

    def everything(self) -> list[Point]:
        """All open points."""
        return [Point(scenario, choices) for scenario, choices in self._open.items()]

    def some_within(self, most_s: float) -> list[Point]:
        """Of the open choices that should take ``most_s`` at most, single first looks from all over the space."""
        self._look_up()
        fitting = (self._left > 0.0) & (self._worst_case_s <= most_s)
        scenarios = [scenario for scenario in self._open if fitting[self._place[scenario]]]
        some = scenarios[:: -(-len(scenarios) // _SOME) or 1]
        return [Point(scenario, (choice,), _FEW) for scenario in some for choice in self._open[scenario]]

    def from_learner(self, count: int) -> list[Point]:
        """What the learner would have measured next; sets ``reason`` once that is nothing."""
        if not self._asked:
            self.reason = self._learner.should_stop()
            if self.reason is not None:
                return []
            self._asked_for = 0
        if self._asked is None or count > self._asked_for:
            self._asked_for = count
            self._asked = [point for point in map(self._without_broken, self._learner.ask(count)) if point.choices]
        return self._asked[:count]

    def worth(self, points: Sequence[Point]) -> Floats:
        """(n,): the expected gain per second of each point."""
        if self._gains is None or self._gains[0] != points:
            self._gains = (list(points), self._learner.expected_gain(points))
        gains = self._gains[1]
        return np.asarray(gains / [self.expect_s(point) for point in points])

    def expect_s(self, point: Point) -> float:
        self._look_up()
        return float(self._expected_s[self._place[point.scenario]]) * len(point.choices)

    def worst_case_s(self, point: Point) -> float:
        """What ``point`` may take, as long as it is not known what large messages cost."""
        self._look_up()
        return float(self._worst_case_s[self._place[point.scenario]]) * len(point.choices)

    def _without_broken(self, point: Point) -> Point:
        choices = tuple(choice for choice in point.choices if choice not in self._broken)
        if len(choices) < len(point.choices):
            self._learner.tell_pending(point)  # what is left out is not asked for again
        return replace(point, choices=choices)
