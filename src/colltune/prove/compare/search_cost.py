"""What rules gain in force: their search is part of every call, and their launches are not those of the default.

The audit compares a choice with the default in one launch, side by side. Whether files are in force differs from
launch to launch, and launches differ by more than a search costs. So what was measured in force is read beside what was
proven. For a scenario i of one collective, log(default / tuned) in force is taken to be

    r_i = g_i - s / t_i + a + d_i + e_i,

with g_i the proven log speed-up (0 without a rule), s the seconds that the search takes in each call, t_i the time of a
call, a what the launches with files differ by from those without, d_i what the scenario has for itself in force, and
e_i the noise of its launches. All but g_i are normal about 0 (Bayesian linear regression, Bishop 2006, section 3.3).
Long calls tell a, short ones s.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from colltune.core.proven import Decision
from colltune.core.sample import DEFAULT, Scenario
from colltune.judge.spread import spreads
from colltune.judge.verdict import Comparison

Floats = NDArray[np.float64]
# Standard deviations before anything is compared: seconds that a search takes, and what a scenario has for itself.
_SEARCH_S, _OWN = 1e-6, 0.05
# Launches are never taken to agree better than this.
_LEAST = 0.01


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Of the files of one collective: ``search_s`` a call and its standard deviation ``unsure_s``, in seconds.

    ``own``: by scenario that was compared, the log speed-up that it has in force beyond what is proven and the search.
    """

    search_s: float
    unsure_s: float
    own: dict[Scenario, float]

    def gain(self, decision: Decision, time_s: float, growth: float = 1.0) -> float:
        """The log speed-up in force over a call of ``time_s`` by default; ``growth``: of the file since then.

        What a longer file costs is not known, so its search is taken to be as long as it may well be.
        """
        proven = proven_gain(decision)
        search_s = self.search_s if growth <= 1.0 else growth * (self.search_s + self.unsure_s)
        return proven - search_s / (time_s * math.exp(-proven)) + self.own.get(decision.scenario, 0.0)


def proven_gain(decision: Decision) -> float:
    """The log speed-up by the audit: between that of its region and that of its own comparisons."""
    gains = [] if decision.region is None else [math.log(decision.region.estimate)]
    if decision.ratios:
        gains.append(fmean(math.log(ratio) for ratio in decision.ratios))
    return fmean(gains or [0.0])


def search_cost(
    compared: Sequence[Comparison], kept: Sequence[Decision], time_s: Callable[[Scenario], float]
) -> SearchCost:
    """What ``compared``, the comparisons of one collective with files and without, say of their search.

    ``time_s``: what a call takes by default, in seconds.
    """
    if not compared:
        return SearchCost(0.0, _SEARCH_S, {})
    proven = {decision.scenario: proven_gain(decision) for decision in kept}
    expected = np.array([0.0 if c.choice == DEFAULT else proven.get(c.scenario, 0.0) for c in compared])
    times_s = np.array([time_s(c.scenario) for c in compared])
    times_s = np.where(np.isfinite(times_s), times_s, [c.a_s for c in compared]) * np.exp(-expected)
    sides = [(c.a_launches_s, c.b_launches_s) for c in compared]
    noise = np.array(
        [
            max(spread.deviation, _LEAST) * math.sqrt(1.0 / len(default) + 1.0 / len(tuned))
            for spread, (default, tuned) in zip(spreads(sides), sides, strict=True)
        ]
    )
    # Unknown: the search in units of _SEARCH_S, what the launches differ by in units of its own deviation.
    design = np.stack([-_SEARCH_S / times_s, np.full(len(compared), _between_launches(sides))], axis=1)
    beyond = np.log([c.speedup.estimate for c in compared]) - expected
    precision = 1.0 / (noise**2 + _OWN**2)
    covariance = np.linalg.inv(np.eye(2) + design.T @ (design * precision[:, None]))
    mean = covariance @ (design.T @ (precision * beyond))
    mean[0] = max(mean[0], 0.0)  # a search takes no less than nothing
    left = (beyond - design @ mean) * _OWN**2 * precision
    own = {c.scenario: float(value) for c, value in zip(compared, left, strict=True)}
    return SearchCost(_SEARCH_S * float(mean[0]), _SEARCH_S * math.sqrt(float(covariance[0, 0])), own)


def _between_launches(sides: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The standard deviation of the difference that launches of two kinds show in all points alike."""
    variance = 0.0
    for kind in (0, 1):
        means = np.log([list(both[kind]) for both in sides]).mean(axis=0)
        variance += float(np.var(means, ddof=1)) / len(means) if len(means) > 1 else 0.0
    return max(math.sqrt(variance), _LEAST)
