"""A prior beside what is measured: what it says of each pair, and whether the measurements bear it out.

Two hypotheses are kept: the prior's relative times hold here but for small deviations, or it says nothing. Which one is
believed is decided, again at every fit, by the marginal likelihood of all measurements under each (Rasmussen and
Williams 2006, section 5.2): a wrong prior is found out by the first few measurements, and from then on the learner is
the one that it would have been without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from colltune.core.choice import Choice
from colltune.core.model import Model
from colltune.core.scenario import Scenario
from colltune.learn.belief import Observations
from colltune.learn.gaussian import PRIOR_MEAN, ChoiceProcess, Floats, Group, Rows, Trend, fit_theta
from colltune.learn.history import Pair

# Deviations from a prior that holds are smaller than the differences between choices: amplitudes of constant, linear
# and smooth part over those without a prior.
_SHRUNK: Floats = np.log(np.array([0.6, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0]))
INFORMED_MEAN: Floats = PRIOR_MEAN + _SHRUNK
# Logarithm of the odds that a prior holds, before anything was measured.
_LOG_ODDS = 1.0
# Below this difference of log likelihoods the prior is given up without fitting its hyperparameters any more.
_HOPELESS = -25.0
_FIT_ROWS = 16


@dataclass
class Trust:
    """Whether the prior is believed. ``theta``: the hyperparameters with it and without it."""

    prior: Model | None
    seed: int

    def __post_init__(self) -> None:
        self.believed = self.prior is not None
        self._offset: dict[Pair, float] = {}
        self.theta = {True: INFORMED_MEAN, False: PRIOR_MEAN}

    def offsets(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Floats:
        """(n,): what the prior adds to the logarithm of each time; 0 where it says nothing, or is not believed."""
        return self._said(pairs) if self.believed else np.zeros(len(pairs))

    def weigh(
        self, seen: Observations, pairs: Sequence[tuple[Scenario, Choice]], choices: int, iterations: int
    ) -> None:
        """Decides anew, with hyperparameters fitted under both hypotheses where ``iterations`` is above zero."""
        if self.prior is None:
            self._fit(False, seen, choices, iterations)
            return
        informed = replace(seen, log_time=seen.log_time - self._said(pairs))
        plain = self._fit(False, seen, choices, iterations)
        hopeless = _evidence(self.theta[True], informed, choices) < plain + _HOPELESS
        self.believed = self._fit(True, informed, choices, 0 if hopeless else iterations) + _LOG_ODDS > plain

    def _fit(self, held: bool, seen: Observations, choices: int, iterations: int) -> float:
        """The evidence for a hypothesis, with hyperparameters fitted where ``iterations`` is above zero."""
        groups = _groups(seen, choices, self.seed) if iterations else []
        if groups:
            self.theta[held] = fit_theta(self.theta[held], groups, iterations)
        return _evidence(self.theta[held], seen, choices) if self.prior is not None else 0.0

    def trial(self, scenarios: Sequence[Scenario], legal: Callable[[Scenario], Sequence[Choice]]) -> list[Pair]:
        """The cheap pairs that tell most about the prior: where it differs most, at sizes and shapes that cost little.

        On the smallest shape, at its smallest size and at one in the middle: what it holds to be best, worst, and half
        way between.
        """
        if self.prior is None or not scenarios:
            return []
        shape = min((s.ranks, s.nodes, s.ppn) for s in scenarios)
        smallest = sorted((s for s in scenarios if (s.ranks, s.nodes, s.ppn) == shape), key=lambda s: s.size_bytes)
        pairs = []
        for scenario in dict.fromkeys((smallest[0], smallest[(len(smallest) - 1) // 2])):
            said = {choice: self._alone(scenario, choice) for choice in legal(scenario)}
            known = sorted((choice for choice in said if np.isfinite(said[choice])), key=lambda c: (said[c], c))
            if len(known) >= 2:
                pairs += [(scenario, c) for c in dict.fromkeys((known[0], known[-1], known[len(known) // 2]))]
        return pairs

    def _alone(self, scenario: Scenario, choice: Choice) -> float:
        return float(self.prior.predict([(scenario, choice)]).log_time[0]) if self.prior is not None else np.nan

    def _said(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Floats:
        if self.prior is None:
            return np.zeros(len(pairs))
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._offset]
        if new:
            said = self.prior.predict(new).log_time
            self._offset.update(zip(new, np.where(np.isfinite(said), said, 0.0).tolist(), strict=True))
        return np.array([self._offset[pair] for pair in pairs])

    def anew(self) -> Trust:
        """The same prior, with nothing yet seen of it."""
        other = Trust(self.prior, self.seed)
        other._offset = self._offset
        return other


def _residuals(seen: Observations, choices: int) -> tuple[Floats, list[Rows]]:
    if not len(seen):
        return seen.log_time, []
    residual = seen.log_time - Trend(seen.z, seen.number, seen.log_time, choices).at(seen.z)
    return residual, [np.flatnonzero(seen.number == number) for number in range(choices)]


def _groups(seen: Observations, choices: int, seed: int) -> list[Group]:
    residual, of_choice = _residuals(seen, choices)
    random = np.random.default_rng(seed)
    some = [rows if len(rows) <= _FIT_ROWS else random.choice(rows, _FIT_ROWS, False) for rows in of_choice]
    return [(seen.z[rows], residual[rows], seen.noise[rows]) for rows in some if len(rows)]


def _evidence(theta: Floats, seen: Observations, choices: int) -> float:
    """The logarithm of the likelihood of ``seen``, up to a constant that both hypotheses share."""
    residual, of_choice = _residuals(seen, choices)
    parts = [(seen.z[rows], residual[rows], seen.noise[rows]) for rows in of_choice]
    return sum(ChoiceProcess(theta, *part, freedom=1.0).log_likelihood for part in parts)
