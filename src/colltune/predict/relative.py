"""Predicts times relative to the best, from the tables that have times.

One regression forest per collective on scenario, hardware and family of the algorithm. It knows families only: an
algorithm that other MPIs do not have has no time elsewhere to learn from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colltune.core.hardware import Hardware
from colltune.core.scenario import Scenario
from colltune.predict.columns import SCENARIO_COLUMNS, Floats, columns_of
from colltune.predict.families import family
from colltune.predict.table import Timed

_TREES = 60
# What is eight times as slow as the best is never chosen; how much slower it is teaches nothing.
_WORST = float(np.log(8.0))
_SCENARIO = len(SCENARIO_COLUMNS)


@dataclass(frozen=True)
class FamilyTimes:
    """Of one cluster at one scenario: the fastest time in seconds of each family that was measured, two at least."""

    cluster: str
    scenario: Scenario
    times_s: dict[str, float]


def by_family(timed: Sequence[Timed]) -> list[FamilyTimes]:
    found = []
    for one in timed:
        times: defaultdict[str, list[float]] = defaultdict(list)
        for name, time_s in one.times_s.items():
            group = family(one.scenario.collective, name)
            if group is not None:
                times[group].append(time_s)
        if len(times) >= 2:
            found.append(FamilyTimes(one.cluster, one.scenario, {name: min(some) for name, some in times.items()}))
    return found


@dataclass(frozen=True, eq=False)
class RelativeRows:
    """x (n, d + k): scenario, hardware and one column per family; y (n,): logarithm of time over best."""

    x: Floats
    y: Floats
    families: tuple[str, ...]


def relative_rows(times: Sequence[FamilyTimes], hardware: dict[str, Hardware], families: Sequence[str]) -> RelativeRows:
    nothing = Hardware()
    x = columns_of([one.scenario for one in times], [hardware.get(one.cluster, nothing) for one in times])
    rows, y = [], []
    for place, one in enumerate(times):
        best = min(one.times_s.values())
        for name, time_s in sorted(one.times_s.items()):
            if name in families:
                rows.append(np.append(x[place], _one_hot(name, families)))
                y.append(min(float(np.log(time_s / best)), _WORST))
    return RelativeRows(np.array(rows), np.array(y), tuple(families))


def _one_hot(name: str, families: Sequence[str]) -> Floats:
    return np.array([float(name == one) for one in families])


def with_families(x: Floats, families: Sequence[str]) -> Floats:
    """(n * k, d + k): every row with every family, the families of a row together."""
    count = len(families)
    return np.hstack([np.repeat(x, count, axis=0), np.tile(np.eye(count), (len(x), 1))])


def fit_relative(rows: RelativeRows, seed: int) -> Any:
    """A forest of extremely randomised trees: with a handful of clusters, smooth is better than sharp."""
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(_TREES, min_samples_leaf=3, max_features=0.6, random_state=seed).fit(rows.x, rows.y)
