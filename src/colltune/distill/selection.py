"""From a model and what was measured to one choice for each scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.space import Model, Space

Measured = Mapping[tuple[Scenario, Choice], float]
Floats = NDArray[np.float64]


class _Legal(NamedTuple):
    """Choices that are legal together, with their columns, and these alone."""

    choices: tuple[Choice, ...]
    columns: Mapping[Choice, int]
    places: NDArray[np.int_]


@dataclass
class Selection:
    """Which choice to make at a scenario, inside the grid and between its points.

    Measured medians decide where all legal choices were measured. Where some were not, the model fills the gaps: its
    predictions are shifted so that they agree on average with the scenario's measured times. Where measured times are
    unsure (``Prediction.measured_sd``), the model has weighed them and decides alone. A choice that is not legal, or
    that the model holds to be infinitely slow because it failed, is never selected; nor is one that is legal only
    beyond the grid, of which no model knows anything. Equal times go to the default, then to the first in the space's
    order.

    ``measured``: median seconds per pair. ``measured_sd``: what the model said last.
    """

    model: Model
    space: Space
    measured: Measured
    measured_sd: float = field(default=0.0, init=False)
    _log_times: dict[Scenario, Floats] = field(default_factory=dict, init=False, repr=False)
    _legal: dict[Scenario, "_Legal"] = field(default_factory=dict, init=False, repr=False)
    _together: dict[int, "_Legal"] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def columns(self) -> dict[Choice, int]:
        """The place of each choice that is legal somewhere on the grid in a row of ``log_times``."""
        return {choice: place for place, choice in enumerate(self.space.all_choices)}

    def legal(self, scenario: Scenario) -> Mapping[Choice, int]:
        """Those of ``columns`` that are legal in ``scenario``, in the space's order."""
        return self._of(scenario).columns

    def _of(self, scenario: Scenario) -> "_Legal":
        if (legal := self._legal.get(scenario)) is None:
            choices = self.space.choices(scenario)
            # Many scenarios have the same tuple; to hash each takes longer than all the rest.
            if (legal := self._together.get(id(choices))) is None:
                columns = {choice: self.columns[choice] for choice in choices if choice in self.columns}
                legal = _Legal(choices, columns, np.array([*columns.values()], dtype=int))
                self._together[id(choices)] = legal
            self._legal[scenario] = legal
        return legal

    def log_times(self, scenario: Scenario) -> Floats:
        """(choices,): natural logarithm of the time of each of ``columns``, up to a constant; infinite where the choice
        failed, NaN where it is not legal.
        """
        if scenario not in self._log_times:
            self.prepare([scenario])
        return self._log_times[scenario]

    def prepare(self, scenarios: Sequence[Scenario]) -> None:
        """Asks the model about many scenarios at once, which is much faster than one at a time."""
        new = [scenario for scenario in dict.fromkeys(scenarios) if scenario not in self._log_times]
        legal = [self._of(scenario) for scenario in new]
        pairs = [(scenario, choice) for scenario, some in zip(new, legal, strict=True) for choice in some.columns]
        table, predicted, first = np.full((len(new), len(self.columns)), np.nan), self.model.predict(pairs), 0
        for row, some in zip(table, legal, strict=True):
            row[some.places] = predicted.log_time[first : first + len(some.places)]
            first += len(some.places)
        self.measured_sd = predicted.measured_sd
        if not self.measured_sd:
            self._align({scenario: row for row, scenario in enumerate(new)}, table)
        self._log_times |= dict(zip(new, table, strict=True))

    def _align(self, rows: Mapping[Scenario, int], table: Floats) -> None:
        """Puts what was measured into ``table``, and shifts the rest of its row by as much."""
        known: dict[int, dict[int, float]] = {}
        for (scenario, choice), time_s in self.measured.items():
            row, column = rows.get(scenario), self.columns.get(choice)
            if row is not None and column is not None and np.isfinite(table[row, column]):
                known.setdefault(row, {})[column] = float(np.log(time_s))
        for row, some in known.items():
            columns, values = list(some), np.array(list(some.values()))
            table[row] += np.mean(values - table[row, columns])
            table[row, columns] = values

    def best(self, scenario: Scenario) -> Choice:
        """The choice for ``scenario``; the default where nothing else is left."""
        return self._fastest(self.log_times(scenario), self.legal(scenario))

    def best_over(self, scenarios: Sequence[Scenario]) -> Choice:
        """The one choice for all of ``scenarios``: least sum of log times among those that are legal at every one."""
        if not scenarios:
            return DEFAULT
        table = np.array([self.log_times(scenario) for scenario in scenarios])
        return self._fastest(table.mean(axis=0), self.legal(scenarios[0]))

    def _fastest(self, log_times: Floats, legal: Mapping[Choice, int]) -> Choice:
        usable = {choice: value for choice, column in legal.items() if np.isfinite(value := log_times[column])}
        return min(usable, key=lambda choice: (usable[choice], choice != DEFAULT), default=DEFAULT)
