"""A few dozen measurements of a machine that no source has seen, and what they say of everything else.

The prior of other machines is the mean, ``predict/pair_kernel.py`` the covariance of what it leaves; measured pairs are
observations. What to measure next is what lowers the expected time of the selection most, per pair (the knowledge
gradient; Frazier, Powell and Dayanik 2009). One time of a scenario says little of which choice is best there, since the
level of the scenario is unknown; so beside single pairs, differences are considered: the best choice against another
one, measured together at the cost of two. Without differences this search never looks at a new scenario.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import Choice
from colltune.core.grouping import grouped
from colltune.core.model_answers import Model, Prediction
from colltune.core.scenario import Scenario
from colltune.learn.noise import MEASURED_SD
from colltune.learn.scenario_columns import Floats
from colltune.predict.cost import Constants, Pair, textbook_seconds
from colltune.predict.pair_kernel import UNKNOWN, Columns, PairKernel

Rows = NDArray[np.intp]

# Points and weights of Gauss-Hermite quadrature of a standard normal variable.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Pairs that are considered for one measurement, drawn at random from all that are affordable.
_CONSIDERED = 200
# Pairs of the grid on which the loss is expected; more only make the computation slow.
_MOST_PAIRS = 1500
# No measurement may take more than this share of the time that is left.
_SHARE = 0.25
# The mean of a lognormal time is above its median by half of the variance of the logarithm.
_HALF = 0.5
# What is more standard deviations than this above its mean was not to be expected.
_ODD = 2.0
# A gain over the default is as sure as its mean less this many standard deviations, when measurements are chosen.
_ASSURED = 2.0
# Of the standard deviation of an expected time, so much is added when a cost is estimated, and at most this log time.
_CAUTION, _MOST_CAUTION = 0.5, 1.0
# A slowdown against the default that counts as a loss.
LOSS = 0.03
# With no more than this probability may a choice that replaces the default lose more than LOSS.
MOST_PROBABLE = 0.01
# Standard deviation of a measured log time, where nothing better is known.
_NOISE_SD = 1.5 * MEASURED_SD
# Times that a collective can take, and one of which nothing is known.
_LEAST_S, _UNKNOWN_S, _MOST_S = 1e-7, 1e-4, 100.0


@dataclass(frozen=True)
class Proposal:
    """Pairs of one scenario to be measured together, and the log time of selections that each is expected to save."""

    pairs: tuple[Pair, ...]
    value: float


class Calibration:
    """What is known of the log times of one collective on one machine. A Model, once something was told.

    ``pairs``: the grid over which the selection is to be good.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        prior: Model,
        constants: Constants,
        kernel: PairKernel,
        seed: int = 0,
        defaults: Mapping[Scenario, Choice] | None = None,
    ) -> None:
        """``defaults``: what stays in each scenario unless another choice is surely faster; it is in the grid."""
        self._prior, self._constants, self._kernel = prior, constants, kernel
        self._noise = _NOISE_SD**2
        self._random = np.random.default_rng(seed)
        self._pairs = self._thinned(pairs)
        self._row = {pair: row for row, pair in enumerate(self._pairs)}
        self._columns = kernel.columns(self._pairs)
        self._scenario, self._table = _table(self._pairs)
        self._first = self._expected(self._pairs)
        self._mean = self._first
        self._default = None if defaults is None else self._rows_of(defaults)
        self._covariance = kernel.covariance(self._columns, self._columns)
        self._told: dict[Pair, float] = {}
        self._noises: list[float] = []
        self._left_out: list[int] = []

    @property
    def told(self) -> dict[Pair, float]:
        """Seconds of the measured pairs."""
        return dict(self._told)

    def _thinned(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Whole scenarios, drawn at random where there are too many pairs."""
        if len(pairs) <= _MOST_PAIRS:
            return list(pairs)
        scenarios = list(dict.fromkeys(scenario for scenario, _ in pairs))
        share = _MOST_PAIRS / len(pairs)
        kept = self._random.permutation(len(scenarios))[: max(1, int(share * len(scenarios)))]
        some = {scenarios[number] for number in kept}
        return [pair for pair in pairs if pair[0] in some]

    def _rows_of(self, defaults: Mapping[Scenario, Choice]) -> Rows:
        """(S,): the row of each scenario's default."""
        scenarios = [self._pairs[row[0]][0] for row in self._table]
        return np.array([self._row[scenario, defaults[scenario]] for scenario in scenarios], dtype=np.intp)

    def _expected(self, pairs: Sequence[Pair]) -> Floats:
        """(n,): log seconds before any measurement: the cost model's level of the scenario, and the prior's ratio."""
        said = self._prior.predict(pairs).log_time
        scenarios = list(dict.fromkeys(scenario for scenario, _ in pairs))
        best_s = textbook_seconds(scenarios, self._constants.values)
        level = np.log(np.clip(np.where(np.isfinite(best_s), best_s, _UNKNOWN_S), _LEAST_S, _MOST_S))
        of_scenario = dict(zip(scenarios, level.tolist(), strict=True))
        ratio = self._kernel.trees * np.where(np.isfinite(said), said, UNKNOWN)
        return np.asarray(np.array([of_scenario[scenario] for scenario, _ in pairs]) + ratio)

    def expected_s(self, pairs: Sequence[Pair]) -> Floats:
        """(n,): cautious estimates of the times of pairs of the grid, in seconds."""
        rows = [self._row[pair] for pair in pairs]
        spread = np.sqrt(np.maximum(np.diag(self._covariance)[rows], 0.0))
        return np.asarray(np.exp(self._mean[rows] + np.minimum(_CAUTION * spread, _MOST_CAUTION)))

    def ask(self, cost_s: Callable[[Floats], Floats], left_s: float, most: int = 2) -> Proposal | None:
        """What to measure next; None where nothing is affordable.

        ``cost_s``: what measuring pairs takes, whose calls take (n,) seconds. ``left_s``: machine time that is left.
        ``most``: pairs that may be measured.
        """
        cost = cost_s(self.expected_s(self._pairs))
        free = cost <= _SHARE * left_s
        free[[*(self._row[pair] for pair in self._told), *self._left_out]] = False
        rows = np.flatnonzero(free)
        if not len(rows) or most < 1:
            return None
        if len(rows) > _CONSIDERED:
            rows = self._random.choice(rows, _CONSIDERED, replace=False)
        risk = self._at_risk(self._mean)
        against = self._table[np.arange(len(self._table)), risk.argmin(axis=1)]
        if self._default is not None:
            against = np.where(free[self._default], self._default, against)
        against = against[self._scenario[rows]]
        both = (rows != against) & free[against] & (cost[rows] + cost[against] <= _SHARE * left_s) & (most >= 2)
        first, second = rows[both], against[both]
        cov = self._covariance
        alone = cov[:, rows] / np.sqrt(cov[rows, rows] + self._noise)
        spread = cov[first, first] + cov[second, second] - 2.0 * cov[first, second] + 2.0 * self._noise
        together = (cov[:, first] - cov[:, second]) / np.sqrt(np.maximum(spread, self._noise))
        slope = np.hstack([alone, together])
        value = self._saved(risk, slope) if self._default is None else self._assured(self._default, slope)
        value[len(rows) :] /= 2.0
        place = int(value.argmax())
        found = [rows[place]] if place < len(rows) else [second[place - len(rows)], first[place - len(rows)]]
        return Proposal(tuple(self._pairs[row] for row in found), float(value[place]))

    def _at_risk(self, mean: Floats) -> Floats:
        """(S, M): log of the expected time over the scenario's mean choice; infinite where there is no such pair."""
        found = np.full(self._table.shape, np.inf)
        for place, row in enumerate(self._table):
            own = row[row >= 0]
            found[place, row >= 0] = mean[own] + _HALF * _contrasts(self._covariance[np.ix_(own, own)])
        return found

    def _saved(self, risk: Floats, slope: Floats) -> Floats:
        """(k,): how much lower the least expected log times are after each of k measurements, summed over scenarios.

        ``slope`` (n, k): change of each mean for one standard deviation of a measurement.
        """
        at = np.where((self._table >= 0)[..., None], slope[self._table], 0.0)
        later = np.zeros(slope.shape[1])
        for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
            later += weight * (risk[..., None] + point * at).min(axis=1).sum(axis=0)
        return np.asarray(risk.min(axis=1).sum() - later)

    def _assured(self, default: Rows, slope: Floats) -> Floats:
        """(k,): as ``_saved``, of gains over the default that are sure: the mean and some deviations above it."""
        known = self._table >= 0
        diagonal = np.diag(self._covariance)
        gap = np.where(known, self._mean[self._table] - self._mean[default][:, None], np.inf)
        both = self._covariance[self._table, default[:, None]]
        variance = np.maximum(diagonal[self._table] + diagonal[default][:, None] - 2.0 * both, 0.0)
        at = np.where(known[..., None], slope[self._table] - slope[default][:, None], 0.0)
        spread = _ASSURED * np.sqrt(np.maximum(variance[..., None] - at**2, 0.0))
        later = np.zeros(slope.shape[1])
        for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
            later += weight * np.minimum((gap[..., None] + point * at + spread).min(axis=1), 0.0).sum(axis=0)
        now = np.minimum((gap + _ASSURED * np.sqrt(variance)).min(axis=1), 0.0).sum()
        return np.asarray(now - later)

    def tell(self, pair: Pair, time_s: float, noise_sd: float | None = None) -> None:
        """A measured pair of the grid. Raises KeyError for another one, ValueError for one that was told before.

        ``noise_sd``: of the log time, where it is known better than by the default.
        """
        row = self._row[pair]
        if pair in self._told:
            raise ValueError(f"{pair[0]} {pair[1]} was told before")
        noise = self._noise if noise_sd is None else noise_sd**2
        column = self._covariance[:, row].copy()
        variance = column[row] + noise
        self._mean = self._mean + column * ((np.log(time_s) - self._mean[row]) / variance)
        self._covariance = self._covariance - np.outer(column, column) / variance
        self._told[pair] = time_s
        self._noises.append(noise)

    def excess(self, pair: Pair, time_s: float) -> float:
        """By how much a log time of a pair of the grid is above all that was to be expected of it; 0 if it is not."""
        row = self._row[pair]
        most = self._mean[row] + _ODD * np.sqrt(self._covariance[row, row] + self._noise)
        return max(0.0, float(np.log(time_s) - most))

    def correct(self, pair: Pair, time_s: float, noise_sd: float) -> None:
        """Another time of a pair that was told. It is in all that is predicted, but not in what ``ask`` proposes."""
        place = list(self._told).index(pair)
        self._told[pair], self._noises[place] = time_s, noise_sd**2

    def leave_out(self, pairs: Sequence[Pair]) -> None:
        """Pairs of the grid that cannot be measured: they are not asked for again."""
        self._left_out += [self._row[pair] for pair in pairs]

    def posteriors(self, groups: Sequence[Sequence[Pair]]) -> list[tuple[Floats, Floats]]:
        """Of each group of m pairs, (m,) log seconds and (m, m) their covariance, given all that was told."""
        pairs = [pair for group in groups for pair in group]
        if not pairs:
            return []
        columns, mean = self._kernel.columns(pairs), self._expected(pairs)
        cross: Floats = np.zeros((0, len(pairs)))
        if self._told:
            seen, root, white = self._solved()
            cross = np.asarray(np.linalg.solve(root, self._kernel.covariance(seen, columns)))
            mean = mean + cross.T @ white
        found, first = [], 0
        for group in groups:
            rows = np.arange(first, first + len(group), dtype=np.intp)
            own = columns.some(rows)
            reduced = cross[:, rows].T @ cross[:, rows]
            found.append((mean[rows], np.asarray(self._kernel.covariance(own, own) - reduced)))
            first += len(group)
        return found

    def _solved(self) -> tuple[Columns, Floats, Floats]:
        """What was told: its columns, the root of its covariance, and what it deviates by, decorrelated."""
        rows = np.array([self._row[pair] for pair in self._told], dtype=np.intp)
        seen = self._columns.some(rows)
        covariance = self._kernel.covariance(seen, seen)
        covariance[np.diag_indices(len(covariance))] += self._noises
        root: Floats = np.asarray(np.linalg.cholesky(covariance), dtype=float)
        left = np.log(list(self._told.values())) - self._first[rows]
        return seen, root, np.asarray(np.linalg.solve(root, left), dtype=float)

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        """Log of each time, up to a level of the scenario, such that the least one is the best selection.

        Before anything was told this is the prior's word; afterwards the log of the expected time: the mean of a time
        whose logarithm is uncertain is above its median.
        """
        if not self._told:
            return self._prior.predict(pairs)
        log_time, std = np.zeros(len(pairs)), np.zeros(len(pairs))
        places = grouped(range(len(pairs)), lambda place: pairs[place][0])
        groups = [[pairs[place] for place in own] for own in places.values()]
        for own, (mean, covariance) in zip(places.values(), self.posteriors(groups), strict=True):
            contrast = _contrasts(covariance)
            log_time[own], std[own] = mean + _HALF * contrast, np.sqrt(contrast)
        return Prediction(log_time, std)

    def against(self, groups: Sequence[tuple[Scenario, Choice, Sequence[Choice]]]) -> list[tuple[Floats, Floats]]:
        """Of each scenario, default and m choices: (m,) mean and deviation of the log times over the default's."""
        asked = [[(scenario, one) for one in (default, *choices)] for scenario, default, choices in groups]
        found = []
        for mean, covariance in self.posteriors(asked):
            variance = np.diag(covariance)[1:] + covariance[0, 0] - 2.0 * covariance[0, 1:]
            found.append((mean[1:] - mean[0], np.sqrt(np.maximum(variance, 0.0))))
        return found


def probability_of_loss(mean: Floats, std: Floats) -> Floats:
    """(m,): how likely log times over the default's are above that of a loss of LOSS.

    Student's t with 3 degrees of freedom, whose distribution function has a closed form: on left-out clusters
    deviations have long tails (docs/design/prior.md).
    """
    scaled = (np.log1p(LOSS) - mean) / np.maximum(std, 1e-9) / np.sqrt(3.0)
    # By the complement of the arctangent: a small probability must not be a difference of large numbers.
    far = np.arctan2(1.0, scaled) - scaled / (1.0 + scaled**2)
    return np.asarray(np.clip(far / np.pi, 0.0, 1.0), dtype=float)


def _contrasts(covariance: Floats) -> Floats:
    """(m,): variances of the log times of a scenario's choices over their geometric mean."""
    rows = covariance.mean(axis=1)
    return np.asarray(np.maximum(np.diag(covariance) - 2.0 * rows + rows.mean(), 0.0))


def _table(pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
    """(n,) the number of each pair's scenario; (S, M) the pairs of each scenario, filled up with -1."""
    number: dict[Scenario, int] = {}
    of_pair = np.array([number.setdefault(scenario, len(number)) for scenario, _ in pairs], dtype=np.intp)
    widest = int(np.bincount(of_pair).max()) if len(of_pair) else 0
    table = np.full((len(number), widest), -1, dtype=np.intp)
    filled = [0] * len(number)
    for row, place in enumerate(of_pair):
        table[place, filled[place]] = row
        filled[place] += 1
    return of_pair, table
