"""A grid: the recorded time of every choice at every scenario of one collective on one cluster.

Notations: N scenarios, M choices; ``time_s`` (N, M) in seconds, NaN where a choice was not recorded.

A table holds medians. Where it also holds quantiles of its repetitions (min_us, p10_us, p25_us, p75_us, p90_us and
mean_us), repetitions are drawn from them: linear between the quantiles, with the maximum that gives the recorded mean.
Where it does not, they are drawn from the quantiles STATED, which are wider than those of the tables that record them:
there half of all repetitions lie within 0.5 to 1.5% of their median, and one in ten is more than 2 to 5% above it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, parse_choice
from colltune.core.space import Space

Floats = NDArray[np.float64]

PROBABILITIES: Floats = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
STATED: Floats = np.array([0.93, 0.96, 0.98, 1.0, 1.02, 1.06, 1.8])


def drawn(median_s: float, spread: Floats | None, count: int, seed: tuple[int, ...]) -> Floats:
    """(count,): seconds. ``spread`` (7,): over the median, at PROBABILITIES; STATED where it is None or not known.

    Equal seeds give equal repetitions, whoever asks.
    """
    shape = STATED if spread is None or np.isnan(spread).any() else spread
    shares = np.random.default_rng(seed).uniform(size=count)
    return np.asarray(median_s * np.interp(shares, PROBABILITIES, shape))


@dataclass(frozen=True, eq=False)
class Grid:
    """``default_s`` (N,): the time of the library's own selection, NaN where it was not recorded.

    ``default_s`` is not a candidate: it is what a tuner's selection is compared with. ``cost_s`` (N, M): what measuring
    each pair took, set-up and repetitions included; None or NaN where that is not known. ``spread`` (N, M, 7):
    quantiles of single repetitions over the recorded median, at PROBABILITIES; None
    or NaN where they are not known.
    """

    name: str
    collective: str
    scenarios: tuple[Scenario, ...]
    choices: tuple[Choice, ...]
    time_s: Floats
    default_s: Floats
    cost_s: Floats | None = None
    spread: Floats | None = None

    def __post_init__(self) -> None:
        if self.time_s.shape != (len(self.scenarios), len(self.choices)):
            raise ValueError(f"{self.name}: times of shape {self.time_s.shape}")
        if not (np.isfinite(self.time_s).sum(axis=1) >= 1).all():
            raise ValueError(f"{self.name}: a scenario without any time")

    @cached_property
    def space(self) -> Space:
        """The recorded pairs as a space: outside of its scenarios no choice is legal, because no time is known."""
        legal = {
            scenario: tuple(self.choices[m] for m in np.flatnonzero(np.isfinite(row)))
            for scenario, row in zip(self.scenarios, self.time_s, strict=True)
        }
        return Space(self.collective, self.scenarios, lambda scenario: legal.get(scenario, ()))

    @cached_property
    def best_s(self) -> Floats:
        """(N,): the time of the fastest choice."""
        return np.asarray(np.nanmin(self.time_s, axis=1))

    @cached_property
    def rows(self) -> dict[Scenario, int]:
        return {scenario: row for row, scenario in enumerate(self.scenarios)}

    @cached_property
    def columns(self) -> dict[Choice, int]:
        return {choice: column for column, choice in enumerate(self.choices)}

    @cached_property
    def environment(self) -> Environment:
        """Where its times count as measured: a machine of the table's name."""
        nodes, ppn = max(s.nodes for s in self.scenarios), max(s.ppn for s in self.scenarios)
        return Environment("recorded", "", "", self.name, nodes, ppn, "single")

    def place(self, scenario: Scenario, choice: Choice) -> tuple[int, int]:
        """Row and column of a recorded pair. Raises KeyError for what was not recorded."""
        row, column = self.rows[scenario], self.columns[choice]
        if np.isnan(self.time_s[row, column]):
            raise KeyError((scenario, choice))
        return row, column

    def time(self, scenario: Scenario, choice: Choice) -> float:
        """Seconds. Raises KeyError for what was not recorded."""
        return float(self.time_s[self.place(scenario, choice)])

    def repetitions(self, scenario: Scenario, choice: Choice, count: int, seed: tuple[int, ...]) -> Floats:
        """(count,): seconds, about the recorded median. Raises KeyError for what was not recorded."""
        place = self.place(scenario, choice)
        return drawn(float(self.time_s[place]), None if self.spread is None else self.spread[place], count, seed)

    def recorded_cost(self, scenario: Scenario, choice: Choice) -> float | None:
        """Seconds that measuring a pair took; None where the table does not say."""
        if self.cost_s is None:
            return None
        cost_s = float(self.cost_s[self.rows[scenario], self.columns[choice]])
        return cost_s if np.isfinite(cost_s) else None

    def with_default(self) -> "Grid":
        """With the library's default as first choice, where it was recorded; of its noise nothing is known."""
        column = self.default_s[:, None]
        nothing = np.full(column.shape, np.nan)
        spread = self.spread
        if spread is not None:
            spread = np.concatenate([np.full((len(spread), 1, spread.shape[2]), np.nan), spread], axis=1)
        return replace(
            self,
            choices=(DEFAULT, *self.choices),
            time_s=np.hstack([column, self.time_s]),
            cost_s=None if self.cost_s is None else np.hstack([nothing, self.cost_s]),
            spread=spread,
        )

    @cached_property
    def recorded(self) -> list[tuple[Scenario, Choice]]:
        """The recorded (scenario, choice) pairs, scenario by scenario."""
        return [(self.scenarios[row], self.choices[column]) for row, column in np.argwhere(np.isfinite(self.time_s))]


PARTS = ("time_s", "default_s", "cost_s", "spread")


def unpack_grids(path: Path) -> list[Grid]:
    """What `benchmarks/make_demo_table.py` wrote; a file of this package, which it does not check."""
    with np.load(path, allow_pickle=False) as arrays:
        return [
            _unpacked(str(name), str(collective), {part: arrays[part] for part in arrays.files}, f"{number}.")
            for number, (name, collective) in enumerate(arrays["names"])
        ]


def _unpacked(name: str, collective: str, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Grid:
    scenarios = tuple(Scenario(collective, *map(int, shape)) for shape in arrays[prefix + "scenarios"])
    choices = tuple(parse_choice(str(text)) for text in arrays[prefix + "choices"])
    parts = {part: arrays[prefix + part] for part in PARTS if prefix + part in arrays}
    return Grid(name, collective, scenarios, choices, **parts)  # type: ignore[arg-type]
