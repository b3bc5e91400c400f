"""A prior and its weight: what it predicts for each pair, and how far the measurements confirm it.

The prediction of the prior, times a weight from 0 to 1 for each choice, is subtracted from the logarithm of each time
before the Gaussian processes see it. The weight is its posterior mean: the likelihood of the choice's own measurements
under each of a few weights, times a prior of these weights that the other choices determine (empirical Bayes; Gelman
et al., "Bayesian Data Analysis", chapter 5). So one that is wrong about some choices loses its weight for these, and
one with a large deviation has a small effect. After the first measurements a prior counts only once they are likelier
with it than without it, so that a wrong one costs no more than what tried it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import Choice
from colltune.core.model_answers import Model
from colltune.core.scenario import Scenario
from colltune.learn.belief import Observations
from colltune.learn.gaussian import (
    PRIOR_MEAN,
    ChoiceProcess,
    Floats,
    Group,
    Rows,
    Trend,
    fit_theta,
    kernel_diagonal,
    rough_variance,
)
from colltune.learn.scenario_columns import scenario_columns
from colltune.learn.told import Pair

# The weights that a choice's prior may have, and the probability of each before anything was measured.
_WEIGHTS: Floats = np.array([0.0, 0.35, 0.7, 1.0])
_LIKELY: Floats = np.array([1.0, 1.35, 2.7, 1.35]) / 6.4
# These probabilities count as much as the measurements of this many choices.
_LIKELY_CHOICES = 2.0
# Iterations between the weights of single choices and their common distribution.
_PASSES = 10
# The logarithm of how much likelier the measurements have to be with the prior than without it, for it to count.
_EARNED = 1.0
# From this mean weight on, the prior decides what to try first.
_BELIEVED = 0.4
# Degrees of freedom of the likelihood: one outlier must not outweigh the rest.
_FREEDOM = 3.0
# The most observations of one choice that the fit of the hyperparameters uses: more cost time and change little.
_FIT_ROWS = 16


class Trust:
    """The weights of a prior. ``theta``: the hyperparameters of the residuals that it leaves.

    ``choices``: all of the space; the prior is normalised over those of them that it knows.
    """

    def __init__(self, prior: Model | None, choices: Sequence[Choice], seed: int) -> None:
        self.prior, self.seed = prior, seed
        self.theta = PRIOR_MEAN
        self._choices = list(choices)
        self._offset: dict[Scenario, dict[Choice, float]] = {}
        self._weight: dict[Choice, float] = {}
        self._common = float(_LIKELY @ _WEIGHTS)  # the weight of a choice that was not measured

    @property
    def believed(self) -> bool:
        """Whether there is a prior, and the measurements so far confirm it."""
        return self.prior is not None and self._common >= _BELIEVED

    def offsets(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Floats:
        """(n,): the weighted prediction of the prior for the logarithm of each time."""
        if self.prior is None:
            return np.zeros(len(pairs))
        return self._said(pairs) * [self._weight.get(choice, self._common) for _, choice in pairs]

    def weigh(
        self, seen: Observations, pairs: Sequence[tuple[Scenario, Choice]], choices: int, iterations: int
    ) -> None:
        """Computes the weights again; the hyperparameters are fitted too where ``iterations`` is above zero."""
        if self.prior is not None and len(seen):
            self._reweigh(seen, pairs, choices)
        if iterations:
            rest = replace(seen, log_time=seen.log_time - self.offsets(pairs))
            if groups := _groups(rest, choices, self.seed):
                self.theta = fit_theta(self.theta, groups, iterations)

    def _reweigh(self, seen: Observations, pairs: Sequence[tuple[Scenario, Choice]], choices: int) -> None:
        said = self._said(pairs)
        evidence = np.stack(
            [
                _evidence(self.theta, replace(seen, log_time=seen.log_time - weight * said), choices)
                for weight in _WEIGHTS
            ],
            axis=1,
        )
        measured = np.bincount(seen.number, minlength=choices) > 0
        if support(evidence[measured]) < _EARNED:
            self._common, self._weight = 0.0, {}
            return
        posterior, everywhere = posteriors(evidence, measured)
        self._common = float(everywhere @ _WEIGHTS)
        number = {choice: int(n) for (_, choice), n in zip(pairs, seen.number, strict=True)}
        self._weight = {choice: float(posterior[n] @ _WEIGHTS) for choice, n in number.items()}

    def trial(self, scenarios: Sequence[Scenario], legal: Callable[[Scenario], Sequence[Choice]]) -> list[Pair]:
        """Cheap pairs that test the prior: choices for which it predicts very different times.

        On the smallest shape, at its smallest size and at one in the middle: the choices that it predicts to be best,
        worst and median.
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
        """(n,): logarithm of each time over the mean one of the scenario's known choices; 0 where nothing is known.

        Shrunk to 0 by the variance that the prior gives itself, as a share of the variance without a prior.
        """
        new = [scenario for scenario in dict.fromkeys(s for s, _ in pairs) if scenario not in self._offset]
        if new and self.prior is not None:
            shape = (len(new), len(self._choices))
            said = self.prior.predict([(scenario, choice) for scenario in new for choice in self._choices])
            log_time = said.log_time.reshape(shape)
            known = np.isfinite(log_time)
            mean = np.where(known, log_time, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
            z = scenario_columns(new)
            free = kernel_diagonal(PRIOR_MEAN, z) + rough_variance(PRIOR_MEAN)
            sure = np.maximum(1.0 - said.std.reshape(shape) ** 2 / free[:, None], 0.0)
            offset = np.where(known, (log_time - mean[:, None]) * sure, 0.0)
            for scenario, row in zip(new, offset.tolist(), strict=True):
                self._offset[scenario] = dict(zip(self._choices, row, strict=True))
        return np.array([self._offset[scenario].get(choice, 0.0) for scenario, choice in pairs])

    def anew(self) -> Trust:
        """The same prior before any measurement."""
        other = Trust(self.prior, self._choices, self.seed)
        other._offset = self._offset
        return other


def support(evidence: Floats) -> float:
    """The logarithm of how much likelier measurements are with a prior, whatever its weight, than without one.

    ``evidence`` (M, W): their log likelihood by choice, under each of the W weights. One weight serves all choices.
    """
    together = evidence.sum(axis=0)
    likely = _LIKELY[1:] / _LIKELY[1:].sum()
    return float(np.logaddexp.reduce(np.log(likely) + together[1:]) - together[0])


def posteriors(evidence: Floats, measured: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(M, W): how likely each of W weights is for each of M choices; (W,): for a choice that was not measured.

    ``evidence`` (M, W): the log likelihood of each choice's measurements; ``measured`` (M,): whether it has any.
    """
    posterior = np.tile(_LIKELY, (len(evidence), 1))
    for _ in range(_PASSES):
        of_measured = posterior * measured[:, None]
        others = _LIKELY_CHOICES * _LIKELY + of_measured.sum(axis=0) - of_measured
        logs = np.log(others) + evidence
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    everywhere = _LIKELY_CHOICES * _LIKELY + (posterior * measured[:, None]).sum(axis=0)
    return posterior, everywhere / everywhere.sum()


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


def _evidence(theta: Floats, seen: Observations, choices: int) -> Floats:
    """(M,): the logarithm of the likelihood of each choice's measurements, up to a constant."""
    residual, of_choice = _residuals(seen, choices)
    parts = [ChoiceProcess(theta, seen.z[rows], residual[rows], seen.noise[rows], 1.0) for rows in of_choice]
    return np.array([-0.5 * (_FREEDOM + part.known) * np.log1p(part.surprise / _FREEDOM) for part in parts])
