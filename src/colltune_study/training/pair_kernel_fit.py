"""Fits the hyperparameters of ``predict/pair_kernel.py`` to what priors left of machines that they had not seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from colltune.core.sample import grouped
from colltune.learn.posterior import MEASURED_SD
from colltune.learn.scenario_columns import Floats
from colltune.predict.cost import Pair, kind_of, terms
from colltune_study.training.learned_times import Times, learn_times
from colltune_study.training.pair_kernel import PRIOR_THETA, UNKNOWN, Columns, PairKernel

_ROWS = 100
_SCENARIOS = 12
_ITERATIONS = 25


@dataclass(frozen=True)
class Study:
    """Some pairs of one table: log seconds (n,), and what the others' prior predicted (n,), up to a level."""

    columns: Columns
    log_time: Floats
    predicted: Floats
    kernel: PairKernel


def study(own: Times, others: Mapping[str, Times], seed: int) -> Study | None:
    """What the prior of ``others`` leaves of ``own``; None where it knows nothing."""
    choices = {choice for _, choice in own}
    prior = learn_times(others, choices, seed)
    if prior is None or not any(kind_of(prior.collective, choice) in prior.column for choice in choices):
        return None
    random = np.random.default_rng(seed)
    by_scenario = grouped(sorted(own), lambda pair: pair[0])
    scenarios = list(by_scenario)
    pairs: list[Pair] = []
    for number in random.permutation(len(scenarios)):
        mine = by_scenario[scenarios[number]]
        pairs += [mine[place] for place in random.permutation(len(mine))[: max(4, _ROWS // _SCENARIOS)]]
        if len(pairs) >= _ROWS:
            break
    kernel = PairKernel(PRIOR_THETA, prior.constants, prior.bearable)
    log_time = np.log([own[pair] for pair in pairs])
    predicted = prior.predict(pairs).log_time
    level = np.nanmedian(np.log(np.maximum(terms(pairs) @ prior.constants, 1e-7)))
    return Study(kernel.columns(pairs), log_time - level, np.where(np.isfinite(predicted), predicted, UNKNOWN), kernel)


def studies_of(tables: Mapping[str, Mapping[str, Times]], seed: int = 0) -> list[Study]:
    """One of each table that has another machine's beside it. ``tables``: by collective and machine."""
    found = [
        study(own, {key: other for key, other in by_machine.items() if key != name}, seed)
        for _, by_machine in sorted(tables.items())
        if len(by_machine) > 1
        for name, own in sorted(by_machine.items())
    ]
    return [one for one in found if one is not None]


def fit_pair_theta(studies: Sequence[Study], iterations: int = _ITERATIONS) -> Floats:
    """The hyperparameters under which the ``studies`` are most likely, drawn towards PRIOR_THETA (log sd 1)."""
    if not studies:
        return PRIOR_THETA

    def objective(theta: Floats) -> float:
        value = 0.5 * float(((theta - PRIOR_THETA) ** 2).sum())
        for one in studies:
            kernel = PairKernel(theta, one.kernel.values, one.kernel.bearable)
            covariance = kernel.covariance(one.columns, one.columns)
            covariance[np.diag_indices(len(covariance))] += MEASURED_SD**2
            try:
                lower = np.linalg.cholesky(covariance)
            except np.linalg.LinAlgError:
                return 1e12
            white = np.linalg.solve(lower, one.log_time - kernel.trees * one.predicted)
            value += 0.5 * float(white @ white) + float(np.log(np.diag(lower)).sum())
        return value

    bounds = [(low - 3.0, low + 3.0) for low in PRIOR_THETA]
    found = minimize(objective, PRIOR_THETA, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    return np.asarray(found.x, dtype=float)
