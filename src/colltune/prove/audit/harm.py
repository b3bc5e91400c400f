"""Which scenarios may be slower under a rule, and which of them lose it so that the file keeps its promise.

The promise for a whole file: with 99% confidence at most 2% of the weighted scenarios are slower than the default by
more than 3%, and no scenario that was compared is slower by more than 10%.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from colltune.core.sample import Choice, Scenario, grouped
from colltune.prove.audit.claims import Claim
from colltune.prove.audit.effects import ChoiceEffect, Seen

Floats = NDArray[np.float64]
CONFIDENCE = 0.99
# The share of the weighted scenarios that may be slower by more than this, and by how much none may be that was seen.
HARMED_SHARE, SLOWER, MOST_SLOWER = 0.02, 1.03, 1.10
# A scenario that is more likely than this to be slower keeps the default, whatever the share of the file.
_LIKELY = 0.05
_DRAWS = 400
# Scenarios of one region that are drawn jointly; of more, so many at random stand for all.
_JOINT = 250


@dataclass(frozen=True, slots=True)
class ClaimOutlook:
    """What a claim is worth at its scenarios: ``mean`` and ``sd`` (N,) of the log speed-up."""

    mean: Floats
    sd: Floats

    @property
    def harmed(self) -> Floats:
        """(N,): the chance that the scenario is slower by more than ``SLOWER``."""
        return np.asarray(ndtr((-math.log(SLOWER) - self.mean) / np.maximum(self.sd, 1e-6)))


def outlook_of(claim: Claim, effect: ChoiceEffect) -> ClaimOutlook:
    return ClaimOutlook(*effect.outlook(claim.scenarios, claim.gains))


def spared(
    claims: Sequence[Claim],
    effects: Mapping[tuple[str, Choice], ChoiceEffect],
    seen: Sequence[tuple[Choice, Seen]],
    total_weight: float,
    seed: int,
) -> list[set[Scenario]]:
    """For each claim, the scenarios that are better left to the default; ``total_weight`` is of the whole file.

    First those that were never compared (the default may change its ways just there, and no model knows), those that
    are likely to be slower, and those that were seen to be, whatever is thought of their neighbours; then, the
    likeliest first, as many as it takes until the file keeps its promise.
    """
    left_out: list[set[Scenario]] = []
    chances: list[tuple[float, int, Scenario]] = []
    draws: list[Floats] = []
    random = np.random.default_rng(seed)
    for number, claim in enumerate(claims):
        effect = effects[claim.collective, claim.choice]
        harmed = outlook_of(claim, effect).harmed
        ours = [comparison for choice, comparison in seen if choice == claim.choice]
        means = own_means(ours)
        out = {
            scenario
            for scenario, chance in zip(claim.scenarios, harmed, strict=True)
            if scenario not in means or chance > _LIKELY or means[scenario] < -math.log(SLOWER)
        }
        out |= _much_slower(ours) & claim.rows.keys()
        left_out.append(out)
        rows = [row for row, scenario in enumerate(claim.scenarios) if scenario not in out]
        if len(rows) > _JOINT:
            rows = sorted(random.choice(rows, _JOINT, replace=False))
        if rows:
            chances += [(float(harmed[row]), number, claim.scenarios[row]) for row in rows]
            left = sum(weight for s, weight in zip(claim.scenarios, claim.weights, strict=True) if s not in out)
            draws.append(_drawn(claim.part(rows), effect, random, left))
    if draws:
        for number, scenario in _over_the_share(chances, np.concatenate(draws, axis=1) / total_weight):
            left_out[number].add(scenario)
    return left_out


def own_means(seen: Iterable[Seen]) -> dict[Scenario, float]:
    """The mean log speed-up of each scenario by its own comparisons alone."""
    by_scenario = grouped(seen, lambda comparison: comparison.scenario)
    return {scenario: sum(look.value for look in some) / len(some) for scenario, some in by_scenario.items()}


def _drawn(part: Claim, effect: ChoiceEffect, random: np.random.Generator, weight: float) -> Floats:
    """(draws, N): the weight of each scenario in the draws in which it is slower, 0 in the others."""
    mean, covariance = effect.posterior(part.scenarios, part.gains)
    values = random.multivariate_normal(mean, covariance, _DRAWS, check_valid="ignore", method="eigh")
    weights = np.array(part.weights)
    return np.asarray((values < -math.log(SLOWER)) * (weights * weight / weights.sum()))


def _over_the_share(chances: Sequence[tuple[float, int, Scenario]], draws: Floats) -> list[tuple[int, Scenario]]:
    """The likeliest to be slower, as many as must go until the share is kept in all but 1% of the draws."""
    order = np.argsort([-chance for chance, _, _ in chances], kind="stable")
    # (draws, N + 1): the share that is harmed once the first 0, 1, 2 ... are gone.
    gone = np.concatenate([np.zeros((len(draws), 1)), np.cumsum(draws[:, order], axis=1)], axis=1)
    shares = np.quantile(draws.sum(axis=1, keepdims=True) - gone, CONFIDENCE, axis=0)
    fewest = int(np.argmax(shares <= HARMED_SHARE))
    return [chances[place][1:] for place in order[:fewest]]


def _much_slower(seen: Sequence[Seen]) -> set[Scenario]:
    """The scenarios that were seen to be slower than any may be, in more than one launch.

    One launch may have had a mode of its own; the audit looks again where that is all there is.
    """
    values: defaultdict[Scenario, dict[int, float]] = defaultdict(dict)
    for comparison in seen:
        values[comparison.scenario][comparison.launch] = comparison.value
    return {
        scenario
        for scenario, some in values.items()
        if len(some) > 1 and sum(some.values()) / len(some) < -math.log(MOST_SLOWER)
    }
