"""What a choice gains at each scenario of its region, from comparisons at a few of them.

The model has five levels. Log speed-up of one comparison = mean of the choice (near what the campaign expected) + a
smooth deviation over nodes, ranks per node and size + one that the scenario has for itself + an effect of the launch +
noise. Their standard deviations are common to all choices of a file and are found by greatest likelihood; so neighbours
share evidence, launches that differ do not count as many, and where nothing was compared a scenario is as unsure as
scenarios are in this file.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from colltune.core.sample import Scenario, grouped
from colltune.prove.audit.claims import places_of

Floats = NDArray[np.float64]
# The part of the gain that the campaign expected which counts before the first comparison (the fastest of many
# measured choices looks faster than it is), and how far a file may be from that; the spread of the mean.
PRIOR_SHARE, _PRIOR_SD, _MEAN_SD = 0.7, 0.3, 0.15
# Distance (two doublings of nodes or ranks per node, four of the size) over which deviations are alike.
_REACH = 2.0
# A ratio beyond this is a call that was held up, and counts as this.
GREATEST = float(np.log(4.0))
# Smooth deviations as they mostly are, and how many times more or less they may well be (a log-normal prior).
_USUAL_SMOOTH, _USUAL_SPREAD = 0.08, 0.5
_DEVIATIONS = (0.03, 0.07, 0.15, 0.3)
_OWN = (0.01, 0.04, 0.08, 0.15, 0.3)
_LAUNCHES = (0.01, 0.04, 0.12, 0.3)
_NOISES = (0.02, 0.05, 0.1, 0.2, 0.4)
# Comparisons of one choice that enter the model; further ones of a scenario and launch that are there count as one.
_MOST = 500
# Below so many, a group says nothing of the deviations.
_FEWEST = 3
# So many groups tell enough of the deviations, and those with more comparisons than this take too long.
_GROUPS, _LIGHT = 12, 60


@dataclass(frozen=True, slots=True)
class Seen:
    """One comparison: ``value`` is log(default / choice); ``expected`` what the campaign expected of it."""

    scenario: Scenario
    launch: int
    value: float
    expected: float


@dataclass(frozen=True, slots=True)
class Deviations:
    """Standard deviations of log speed-ups: ``smooth`` over scenarios, each one's ``own``, of a ``launch``, ``noise``.

    What a scenario has for itself stays in every launch, such as a default that changes its algorithm there alone.
    """

    smooth: float = 0.15
    own: float = 0.08
    launch: float = 0.12
    noise: float = 0.1


class ChoiceEffect:
    """What is known of one choice of one collective."""

    def __init__(self, group: "Group", deviations: Deviations) -> None:
        self._group, self._deviations = group, deviations
        self._factor = cho_factor(group.covariance(deviations), lower=True)
        beyond = group.value - PRIOR_SHARE * group.expected
        self._weights = cho_solve(self._factor, beyond)
        self.log_likelihood = float(-0.5 * beyond @ self._weights - np.log(np.diag(self._factor[0])).sum())

    def posterior(self, scenarios: Sequence[Scenario], expected: Sequence[float]) -> tuple[Floats, Floats]:
        """Means (N,) and covariances (N, N) of the log speed-up at ``scenarios``, launches apart."""
        places, gains = places_of(scenarios), np.asarray(expected, dtype=np.float64)
        cross = self._cross(places, gains)
        prior = _deviation(self._deviations, places, places) + _common(gains, gains)
        mean = PRIOR_SHARE * gains + cross @ self._weights
        return mean, prior - cross @ cho_solve(self._factor, cross.T)

    def outlook(self, scenarios: Sequence[Scenario], expected: Sequence[float]) -> tuple[Floats, Floats]:
        """Means and standard deviations (N,) of the same, without what they have in common."""
        places, gains = places_of(scenarios), np.asarray(expected, dtype=np.float64)
        cross = self._cross(places, gains)
        deviations = self._deviations
        prior = deviations.smooth**2 + deviations.own**2 + _MEAN_SD**2 + _PRIOR_SD**2 * gains**2
        known = np.square(solve_triangular(self._factor[0], cross.T, lower=True)).sum(axis=0)
        return PRIOR_SHARE * gains + cross @ self._weights, np.sqrt(np.maximum(prior - known, 0.0))

    def _cross(self, places: Floats, gains: Floats) -> Floats:
        """(N, n): covariances with what was compared."""
        group = self._group
        return _deviation(self._deviations, places, group.places) + _common(gains, group.expected)


class Group:
    """The comparisons of one choice of one collective, those of one scenario in one launch taken together.

    ``places`` (n, 3), ``value`` and ``expected`` (n,) as in Seen.
    """

    def __init__(self, seen: Sequence[Seen]) -> None:
        together = grouped(seen, lambda comparison: (comparison.scenario, comparison.launch))
        kept = list(together.values())[-_MOST:]
        firsts = [some[0] for some in kept]
        self.places = places_of([comparison.scenario for comparison in firsts])
        self.value: Floats = np.array(
            [sum(min(max(comparison.value, -GREATEST), GREATEST) for comparison in some) / len(some) for some in kept]
        )
        self.expected: Floats = np.array([comparison.expected for comparison in firsts])
        launch = np.array([comparison.launch for comparison in firsts])
        self._alike, self._same = _alike(self.places, self.places), _same(self.places, self.places)
        self._common = _common(self.expected, self.expected)
        self._same_launch = np.asarray(launch[:, None] == launch[None, :], dtype=np.float64)
        self._noise = np.diag([1.0 / len(some) for some in kept])

    def __len__(self) -> int:
        return len(self.value)

    def covariance(self, deviations: Deviations) -> Floats:
        """(n, n), the launch effects and the noise included."""
        known = self._common + deviations.smooth**2 * self._alike + deviations.own**2 * self._same
        return np.asarray(known + deviations.launch**2 * self._same_launch + deviations.noise**2 * self._noise)


def deviations_of(groups: Iterable[Group], start: Deviations) -> Deviations:
    """The deviations under which all ``groups`` are likeliest, one after the other beginning with ``start``."""
    telling = sorted((group for group in groups if _FEWEST <= len(group) <= _LIGHT), key=len)[-_GROUPS:]
    if not telling:
        return start

    def likelihood(tried: Deviations) -> float:
        usual = -0.5 * (math.log(tried.smooth / _USUAL_SMOOTH) / _USUAL_SPREAD) ** 2
        return usual + sum(ChoiceEffect(group, tried).log_likelihood for group in telling)

    best = start
    for name, values in (("noise", _NOISES), ("own", _OWN), ("launch", _LAUNCHES), ("smooth", _DEVIATIONS)):
        best = max((replace(best, **{name: value}) for value in values), key=likelihood)
    return best


def _deviation(deviations: Deviations, places: Floats, others: Floats) -> Floats:
    """Covariances of the deviations of two sets of places."""
    return np.asarray(deviations.smooth**2 * _alike(places, others) + deviations.own**2 * _same(places, others))


def _same(places: Floats, others: Floats) -> Floats:
    return np.asarray((np.abs(places[:, None, :] - others[None, :, :]).max(axis=2) < 1e-9), dtype=np.float64)


def _alike(places: Floats, others: Floats) -> Floats:
    """Correlations of the smooth deviation: Matern 3/2, which allows for kinks where an algorithm changes its ways."""
    apart = np.sqrt(3.0) * np.linalg.norm(places[:, None, :] - others[None, :, :], axis=2) / _REACH
    return np.asarray((1.0 + apart) * np.exp(-apart))


def _common(gains: Floats, others: Floats) -> Floats:
    """Covariances of the mean, and of the part of the expected gain that is true."""
    return np.asarray(_MEAN_SD**2 + _PRIOR_SD**2 * np.outer(gains, others))
