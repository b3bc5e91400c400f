"""From a model and what was measured to one choice for each scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.space import Model, Space

Measured = Mapping[tuple[Scenario, Choice], float]


@dataclass
class Selection:
    """Which choice to make at a scenario, inside the grid and between its points.

    Measured medians decide where all legal choices were measured. Where some were not, the model fills the gaps: its
    predictions are shifted so that they agree on average with the scenario's measured times. A choice that is not
    legal, or that the model holds to be infinitely slow because it failed, is never selected; nor is one that is legal
    only beyond the grid, of which no model knows anything. Equal times go to the default, then to the first in the
    space's order.

    ``measured``: median seconds per pair.
    """

    model: Model
    space: Space
    measured: Measured
    _log_times: dict[Scenario, dict[Choice, float]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _known(self) -> frozenset[Choice]:
        return frozenset(self.space.all_choices)

    def log_times(self, scenario: Scenario) -> dict[Choice, float]:
        """Natural logarithm of the time per legal choice, up to a constant; infinite where the choice failed."""
        if scenario not in self._log_times:
            self.prepare([scenario])
        return self._log_times[scenario]

    def prepare(self, scenarios: Sequence[Scenario]) -> None:
        """Asks the model about many scenarios at once, which is much faster than one at a time."""
        new = [scenario for scenario in dict.fromkeys(scenarios) if scenario not in self._log_times]
        pairs = [(s, choice) for s in new for choice in self.space.choices(s) if choice in self._known]
        self._log_times |= {scenario: {} for scenario in new}
        for (scenario, choice), value in zip(pairs, self.model.predict(pairs).log_time, strict=True):
            self._log_times[scenario][choice] = float(value)
        for scenario in new:
            self._align(scenario, self._log_times[scenario])

    def _align(self, scenario: Scenario, log_times: dict[Choice, float]) -> None:
        known = {
            choice: float(np.log(self.measured[scenario, choice]))
            for choice, predicted in log_times.items()
            if (scenario, choice) in self.measured and np.isfinite(predicted)
        }
        if known:
            shift = float(np.mean([value - log_times[choice] for choice, value in known.items()]))
            log_times.update({choice: value + shift for choice, value in log_times.items()})
            log_times.update(known)

    def best(self, scenario: Scenario) -> Choice:
        """The choice for ``scenario``; the default where nothing else is left."""
        return self._fastest(self.log_times(scenario))

    def best_over(self, scenarios: Sequence[Scenario]) -> Choice:
        """The one choice for all of ``scenarios``: least sum of log times among those that are legal at every one."""
        tables = [self.log_times(scenario) for scenario in scenarios]
        common = [choice for choice in tables[0] if all(choice in table for table in tables)] if tables else []
        return self._fastest({choice: sum(table[choice] for table in tables) / len(tables) for choice in common})

    def _fastest(self, log_times: Mapping[Choice, float]) -> Choice:
        usable = {choice: value for choice, value in log_times.items() if np.isfinite(value)}
        if not usable:
            return DEFAULT
        fastest = min(usable, key=lambda choice: (usable[choice], choice != DEFAULT))
        default = usable.get(DEFAULT)
        if default is not None and usable[fastest] >= default:
            return DEFAULT
        return fastest
