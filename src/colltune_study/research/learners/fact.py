"""FACT (Wilkins et al. 2021): one surrogate forest for each algorithm explores where it is least sure."""

import numpy as np

from colltune.core.sample import Scenario
from colltune.core.space import Point
from colltune.learn.scenario_columns import scenario_columns
from colltune_study.research.learners import trees
from colltune_study.research.learners.published import PublishedLearner, grow, on_powers_of_two


class FactLearner(PublishedLearner):
    """A surrogate forest for each algorithm explores where it is least sure; one model for each (FACT, IV.B).

    The surrogates are DeepHyper's: they know nodes, ranks per node and size, and predict a time (IV.D). Algorithms take
    turns: the surrogate of each names the scenario at which its trees differ most in log time. All algorithms are
    measured there, for the output is scaled by the fastest one (IV.A). All features are powers of two (V.B); other
    scenarios are measured once no such one is left. The paper does not say how many points come first, nor that the
    surrogate learns a logarithm; but of plain times it would not prefer small messages, as it does (V.A).
    """

    def _rank(self) -> list[Point]:
        points = self._open_points(on_powers_of_two(self._space.scenarios, ("nodes", "ppn", "size_bytes")))
        if self._begins() or not points:
            return points
        times = self._history.times()
        choices = self._space.all_choices
        choice = choices[len({scenario for scenario, _ in times}) % len(choices)]
        known = {scenario: time_s for (scenario, other), time_s in times.items() if other == choice}
        return self._explore(known, [point for point in points if choice in point.choices] or points)

    def _explore(self, known: dict[Scenario, float], points: list[Point]) -> list[Point]:
        """Those first of which the surrogate of one algorithm, with these times in seconds, is least sure."""
        if len(known) < 2:
            return points
        surrogate = grow(scenario_columns(list(known)), np.log(list(known.values())), self._settings, self._seed)
        spread = trees.predict(surrogate, scenario_columns([point.scenario for point in points])).std(axis=0)
        return [points[i] for i in np.argsort(-spread, kind="stable")]
