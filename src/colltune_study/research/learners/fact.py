"""FACT (Wilkins et al. 2021): one surrogate forest for each algorithm explores where it is least sure."""

import numpy as np

from colltune.core.sample import Choice, Scenario
from colltune.core.space import Point
from colltune.learn.scenario_columns import scenario_columns
from colltune_study.research.learners import trees
from colltune_study.research.learners.published import PublishedLearner, grow


class FactLearner(PublishedLearner):
    """A surrogate forest for each algorithm explores where it is least sure; one model for each (FACT, IV.B).

    Algorithms take turns: the surrogate of each names the scenario at which its trees differ most in log time. All
    algorithms are measured there, for the output is scaled by the fastest one (IV.A).
    """

    def _rank(self) -> list[Point]:
        seen: dict[Choice, dict[Scenario, float]] = {choice: {} for choice in self._space.all_choices}
        for (scenario, choice), time_s in self._history.times().items():
            seen[choice][scenario] = time_s
        shuffled = [self._space.scenarios[i] for i in self._order]
        open_points = [Point(s, choices) for s in shuffled if (choices := self._history.open_choices(s))]
        if len({scenario for scenario, _ in self._history.times()}) < self._settings.first or not open_points:
            return open_points
        # Only as many turns as there will be before the next ranking need an order.
        turns = max(1, int(self._ranked_at * self._settings.batch / len(seen)) + 1)
        first = len(self._history.scenarios())
        in_turn = list(seen)
        orders: dict[Choice, list[Point]] = {}
        named: dict[Scenario, Point] = {}
        for turn in range(first, first + turns):
            choice = in_turn[turn % len(in_turn)]
            if choice not in orders:
                orders[choice] = self._explore(seen[choice], open_points)
            point = next((p for p in orders[choice] if p.scenario not in named), orders[choice][0])
            named[point.scenario] = point
        return [*named.values(), *(point for point in open_points if point.scenario not in named)]

    def _explore(self, known: dict[Scenario, float], points: list[Point]) -> list[Point]:
        """The open points, those first of which the surrogate of one algorithm is least sure."""
        if len(known) < 2:
            return points
        surrogate = grow(scenario_columns(list(known)), np.log(list(known.values())), self._settings, self._seed)
        spread = trees.predict(surrogate, scenario_columns([point.scenario for point in points])).std(axis=0)
        return [points[i] for i in np.argsort(-spread, kind="stable")]
