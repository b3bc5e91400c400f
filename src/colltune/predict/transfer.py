"""A prior made from the times that other machines measured.

Machines differ much in speed, and less in which choice is best at a scenario. So the prior predicts each time
relative to the best of its scenario, by extremely randomised trees (Geurts, Ernst and Wehenkel 2006) on what a choice
sends (``colltune.traffic``), on the cost model's prediction from it (``predict/cost.py``) and on its name. So what was
measured of one algorithm teaches about others, also of other libraries. Trees do not extrapolate: beyond the largest
measured machine they predict its values. The deviation of the prediction comes from a Gaussian process of the same
residuals, and grows with the distance from the measurements.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from colltune.core.choice import Choice
from colltune.core.model_answers import Prediction
from colltune.core.scenario import Scenario
from colltune.learn.gaussian import PRIOR_MEAN, ChoiceProcess, Floats, Group, fit_theta, kernel_diagonal, rough_variance
from colltune.learn.noise import MEASURED_SD
from colltune.learn.scenario_columns import scenario_columns
from colltune.predict.bursts import Times, bearable, in_flight, posts_at_once
from colltune.predict.cost import Constants, described, fit_constants, pooled
from colltune.predict.prior_rows import UNBORNE, prior_rows
from colltune.store.grid import Grid

# More measurements of one choice than this only make the computation slow.
_MOST_ROWS = 300
_FIT_ROWS = 40
_FREEDOM = 3.0
_TREES = 60
# Log of a time over the best: a choice twenty times as slow is never chosen, so larger ratios are cut to this one.
_WORST = 3.0
# The share of the variance that is left of a choice of which nothing is known but what it sends.
_DESCRIBED = 0.5


def times_of(grid: Grid) -> Times:
    """What was measured of a recorded table."""
    rows, columns = np.nonzero(np.isfinite(grid.time_s))
    return {
        (grid.scenarios[row], grid.choices[column]): float(grid.time_s[row, column])
        for row, column in zip(rows, columns, strict=True)
    }


class TransferPrior:
    """A Model of relative times, from measurements of other machines, shapes or simulations (seconds per pair).

    ``trees``: the fitted forest of scikit-learn; None where there is nothing to learn from. ``number``: the column of
    each choice that some source measured, behind those of what it sends.
    """

    def __init__(self, sources: Sequence[Times], choices: Sequence[Choice], seed: int = 0) -> None:
        wanted = set(choices)
        pairs: list[tuple[Scenario, Choice]] = []
        ratios: list[float] = []
        for times in sources:
            useful = {p: time for p, time in times.items() if p[1] in wanted or described(*p) is not None}
            for pair, ratio in _ratios(useful):
                pairs.append(pair)
                ratios.append(ratio)
        seen = sorted({choice for _, choice in pairs})
        self.number = {choice: place for place, choice in enumerate(seen)}
        self._wanted = frozenset(choices)
        self.bearable = bearable(sources)
        self.constants = self._constants(sources)
        self.trees: Any = None
        self._theta = PRIOR_MEAN
        self._processes: dict[Choice, ChoiceProcess] = {}
        if pairs:
            self._grow(pairs, np.array(ratios), seed)

    @staticmethod
    def _constants(sources: Sequence[Times]) -> Constants | None:
        """The mean of those of the sources."""
        found = [one for one in map(fit_constants, sources) if one is not None]
        if not found:
            return None
        return Constants(pooled(found), np.std(np.log([one.values + 1e-16 for one in found]), axis=0))

    @property
    def choices(self) -> frozenset[Choice]:
        """The choices that some source measured beside another one."""
        return frozenset(self.number) & self._wanted

    def _knows(self, pair: tuple[Scenario, Choice]) -> bool:
        """A choice that was measured, or one that sends what the trees know about."""
        return self.trees is not None and (pair[1] in self.number or described(*pair) is not None)

    def _grow(self, pairs: Sequence[tuple[Scenario, Choice]], ratio: Floats, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        trees = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=seed)
        self.trees = trees.fit(self._rows(pairs), ratio)
        random = np.random.default_rng(seed)
        z = scenario_columns([scenario for scenario, _ in pairs])
        number = np.array([self.number[choice] for _, choice in pairs])
        parts = {choice: (z[number == n], _centred(ratio[number == n])) for choice, n in self.number.items()}
        some = {choice: _part(*part, _MOST_ROWS, random) for choice, part in parts.items()}
        self._theta = fit_theta(PRIOR_MEAN, _groups(some.values(), random), 30)
        self._processes = {c: ChoiceProcess(self._theta, z, y, _noise(y), _FREEDOM) for c, (z, y) in some.items()}

    def _rows(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Floats:
        return prior_rows(pairs, self.number, None if self.constants is None else self.constants.values)

    def _unborne(self, pair: tuple[Scenario, Choice]) -> float:
        """1 for a choice that posts more messages at once than worked on other machines, else 0."""
        return float(posts_at_once(pair[1]) and in_flight(*pair) > self.bearable)

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """Logarithm of each time over the best; NaN, with infinite std, for what nobody measured or described."""
        log_time, variance = np.full(len(pairs), np.nan), np.full(len(pairs), np.inf)
        known = np.array([row for row, pair in enumerate(pairs) if self._knows(pair)], dtype=np.intp)
        if len(known):
            some = [pairs[row] for row in known]
            risk = np.array([self._unborne(pair) for pair in some])
            log_time[known] = self.trees.predict(self._rows(some)) + UNBORNE * risk
        z = scenario_columns([scenario for scenario, _ in pairs])
        variance[known] = _DESCRIBED * (kernel_diagonal(self._theta, z[known]) + rough_variance(self._theta))
        for choice, process in self._processes.items():
            rows = np.array([row for row in known if pairs[row][1] == choice], dtype=np.intp)
            _, root = process.mean_and_root(z[rows], np.zeros((process.known, len(rows)), dtype=bool))
            prior = kernel_diagonal(self._theta, z[rows]) + rough_variance(self._theta)
            variance[rows] = np.maximum(process.scale * (prior - (root * root).sum(axis=0)), 0.0)
        if len(known):
            # A choice that was marked down by caution may still be fast.
            variance[known] += (UNBORNE * risk) ** 2
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
