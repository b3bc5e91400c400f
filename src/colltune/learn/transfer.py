"""A prior made from the times that other machines measured.

Machines differ much in speed, and less in which choice is best at a scenario. So the prior predicts each time relative
to the best of its scenario, by extremely randomised trees (Geurts, Ernst and Wehenkel 2006). Trees do not extrapolate:
beyond the largest measured machine they predict its values. The deviation of the prediction comes from a Gaussian
process of the same residuals, and grows with the distance from the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from colltune.core.choice import Choice
from colltune.core.model import Prediction
from colltune.core.scenario import Scenario
from colltune.learn.bursts import Times, bearable, in_flight, posts_at_once
from colltune.learn.features import scenario_columns
from colltune.learn.gaussian import (
    PRIOR_MEAN,
    ChoiceProcess,
    Floats,
    Group,
    fit_theta,
    kernel_diagonal,
    rough_variance,
)
from colltune.learn.noise import MEASURED_SD

# More measurements of one choice than this only make the computation slow.
_MOST_ROWS = 300
_FIT_ROWS = 40
_FREEDOM = 3.0
_TREES = 60
# Log of a time over the best: a choice twenty times as slow is never chosen, so larger ratios are cut to this one.
_WORST = 3.0
# Added to the log time of a choice that has more messages in flight than worked on other machines.
_UNBORNE = 1.5


class TransferPrior:
    """A Model of relative times, from measurements of other machines, shapes or simulations (seconds per pair)."""

    def __init__(self, sources: Sequence[Times], choices: Sequence[Choice], seed: int = 0) -> None:
        wanted = set(choices)
        pairs: list[tuple[Scenario, Choice]] = []
        ratios: list[float] = []
        for times in sources:
            for pair, ratio in _ratios({pair: time for pair, time in times.items() if pair[1] in wanted}):
                pairs.append(pair)
                ratios.append(ratio)
        self._number = {choice: place for place, choice in enumerate(sorted({choice for _, choice in pairs}))}
        self._bearable = bearable(sources)
        self._trees: Any = None
        self._theta = PRIOR_MEAN
        self._processes: dict[Choice, ChoiceProcess] = {}
        if pairs:
            self._grow(pairs, np.array(ratios), seed)

    @property
    def choices(self) -> frozenset[Choice]:
        """The choices that some source measured beside another one."""
        return frozenset(self._number)

    def _grow(self, pairs: Sequence[tuple[Scenario, Choice]], ratio: Floats, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        trees = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=seed)
        self._trees = trees.fit(self._rows(pairs), ratio)
        random = np.random.default_rng(seed)
        z = scenario_columns([scenario for scenario, _ in pairs])
        number = np.array([self._number[choice] for _, choice in pairs])
        parts = {choice: (z[number == n], _centred(ratio[number == n])) for choice, n in self._number.items()}
        some = {choice: _part(*part, _MOST_ROWS, random) for choice, part in parts.items()}
        self._theta = fit_theta(PRIOR_MEAN, _groups(some.values(), random), 30)
        self._processes = {c: ChoiceProcess(self._theta, z, y, _noise(y), _FREEDOM) for c, (z, y) in some.items()}

    def _rows(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Floats:
        """(n, 8 + m): nodes, ppn and size, ranks, bytes times and over ranks, messages in flight, all logarithms;
        whether the ranks are no power of two; then the choice.
        """
        nodes, ppn, size = scenario_columns([scenario for scenario, _ in pairs]).T
        ranks = nodes + ppn
        flying = np.log2([in_flight(*pair) for pair in pairs])
        odd = np.array([float(scenario.ranks & (scenario.ranks - 1) != 0) for scenario, _ in pairs])
        chosen = np.eye(len(self._number))[[self._number[choice] for _, choice in pairs]]
        columns = np.stack([nodes, ppn, size, ranks, size + ranks, size - ranks, flying, odd], axis=1)
        return np.hstack([columns, chosen])

    def _unborne(self, pair: tuple[Scenario, Choice]) -> float:
        """1 for a choice that posts more messages at once than worked on other machines, else 0."""
        return float(posts_at_once(pair[1]) and in_flight(*pair) > self._bearable)

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """Logarithm of each time over the best; NaN, with infinite std, for a choice that no source measured."""
        log_time, variance = np.full(len(pairs), np.nan), np.full(len(pairs), np.inf)
        known = np.array([row for row, (_, choice) in enumerate(pairs) if choice in self._number], dtype=np.intp)
        if len(known):
            some = [pairs[row] for row in known]
            risk = np.array([self._unborne(pair) for pair in some])
            log_time[known] = self._trees.predict(self._rows(some)) + _UNBORNE * risk
        z = scenario_columns([scenario for scenario, _ in pairs])
        for choice, process in self._processes.items():
            rows = np.array([row for row in known if pairs[row][1] == choice], dtype=np.intp)
            _, root = process.mean_and_root(z[rows], np.zeros((process.known, len(rows)), dtype=bool))
            prior = kernel_diagonal(self._theta, z[rows]) + rough_variance(self._theta)
            variance[rows] = np.maximum(process.scale * (prior - (root * root).sum(axis=0)), 0.0)
        if len(known):
            # A choice that was marked down by caution may still be fast.
            variance[known] += (_UNBORNE * risk) ** 2
        return Prediction(log_time, np.sqrt(variance))


def _ratios(times: Times) -> Iterable[tuple[tuple[Scenario, Choice], float]]:
    """Each pair with the logarithm of its time over the best, where there is something to compare with."""
    best: dict[Scenario, float] = {}
    count: dict[Scenario, int] = {}
    for (scenario, _), time_s in times.items():
        best[scenario] = min(time_s, best.get(scenario, time_s))
        count[scenario] = count.get(scenario, 0) + 1
    for pair, time_s in sorted(times.items()):
        if count[pair[0]] >= 2:
            yield pair, min(float(np.log(time_s / best[pair[0]])), _WORST)


def _groups(parts: Iterable[tuple[Floats, Floats]], random: np.random.Generator) -> list[Group]:
    some = [_part(z, y, _FIT_ROWS, random) for z, y in parts]
    return [(z, y, _noise(y)) for z, y in some]


def _centred(y: Floats) -> Floats:
    return np.asarray(y - y.mean())


def _noise(y: Floats) -> Floats:
    return np.full(len(y), MEASURED_SD**2)


def _part(z: Floats, y: Floats, most: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    if len(y) <= most:
        return z, y
    rows = random.choice(len(y), most, replace=False)
    return z[rows], y[rows]
