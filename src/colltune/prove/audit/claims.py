"""Claims: what is put to the audit. One choice, and the region of calls in which it is said to beat the default.

A region is a connected part of the decision table: scenarios of one collective that decide alike and are neighbours in
nodes, ranks per node or size. Where there is time for more comparisons, large regions are cut into smaller ones where
the gain that is expected of them differs most, so that each stands or falls by itself.
"""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.space import connected, neighbours
from colltune.judge.evidence import FEWEST_LAUNCHES

Floats = NDArray[np.float64]
# Doublings of the nodes, the ranks per node and the size that count as equally far.
_DOUBLINGS = (1.0, 1.0, 2.0)
# A region in which the expected log speed-ups differ by less than this and that spans less than so much is not cut.
_EVEN, _NARROW = 0.02, 1.5
# Launches that are planned with: as many as take the first share of the time by themselves, and no more than so many.
_LAUNCH_SHARE, _MOST_PLANNED = 0.3, 12
# Where these are fewer than so many, as many of them as take the second share.
_FIRST_LAUNCHES, _FIRST_SHARE = 6, 0.85
# A claim takes about so many comparisons in each of them; and more claims than this make tables that nobody reads.
_IN_A_LAUNCH, MOST_CLAIMS = 2, 240
# A claim takes so many comparisons, where there is time for all launches.
COMPARISONS = _MOST_PLANNED * _IN_A_LAUNCH
# Of the time for a proof, what comparisons have; of that, what cuts may take, however many claims there are.
_COMPARING_SHARE, _FOR_CUTS = 0.6, 0.5
# What a cut by place alone counts beside one by the gain: variance of log speed-up for a whole unit of distance.
_BY_PLACE = 0.02**2


@dataclass(frozen=True)
class Claim:
    """``choice`` beats the default at ``scenarios``.

    ``gains``: the log speed-up that the measurements let expect at each; ``weights``: what each counts.
    """

    choice: Choice
    scenarios: tuple[Scenario, ...]
    gains: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def collective(self) -> str:
        return self.scenarios[0].collective

    @property
    def expected_gain(self) -> float:
        """The expected log speed-up of all its calls, each by its weight."""
        return sum(gain * weight for gain, weight in zip(self.gains, self.weights, strict=True))

    @cached_property
    def places(self) -> Floats:
        """(N, 3): where each scenario lies, see ``places_of``."""
        return places_of(self.scenarios)

    @cached_property
    def rows(self) -> dict[Scenario, int]:
        """Where each scenario stands in the claim."""
        return {scenario: row for row, scenario in enumerate(self.scenarios)}

    def part(self, rows: Iterable[int]) -> "Claim":
        """The same choice over the scenarios of ``rows``."""
        some = list(rows)
        return Claim(
            self.choice,
            tuple(self.scenarios[row] for row in some),
            tuple(self.gains[row] for row in some),
            tuple(self.weights[row] for row in some),
        )


def places_of(scenarios: Sequence[Scenario]) -> Floats:
    """(N, 3): logarithms of nodes, ranks per node and size, in units that are equally far."""
    values = np.array([(s.nodes, s.ppn, s.size_bytes + 1) for s in scenarios], dtype=np.float64).reshape(-1, 3)
    return np.asarray(np.log2(values) / np.array(_DOUBLINGS))


@dataclass(frozen=True)
class ProofTime:
    """``time_s`` seconds for a proof, in which a launch takes ``launch_s``, and a comparison ``costs_s``, by scenario.

    ``once``: each call is compared once in each launch, all of them together.
    """

    time_s: float
    costs_s: Mapping[Scenario, float]
    launch_s: float = 0.0
    once: bool = False

    @property
    def most(self) -> int:
        """Claims, as far as the number of launches lets bring them to an end."""
        if not self.once:
            return MOST_CLAIMS
        launches = max(self.time_s, 0.0) / (self.launch_s + sum(self.costs_s.values()))
        return min(max(int(launches * len(self.costs_s) / COMPARISONS), 1), MOST_CLAIMS)

    def claim_s(self, claim: Claim) -> float:
        """What its comparisons take until it is proven or refused."""
        comparisons = _IN_A_LAUNCH * planned_launches(self.time_s, self.launch_s)
        return comparisons * median(self.costs_s[scenario] for scenario in claim.scenarios)


def planned_launches(left_s: float, launch_s: float, done: int = 0) -> int:
    """How many the time is divided among, after ``done``: what a launch does to a choice only more of them tell."""
    fitting = max(left_s, 0.0) / max(launch_s, 1e-3)
    first = min(max(int(_FIRST_SHARE * fitting), FEWEST_LAUNCHES - done), _FIRST_LAUNCHES - done)
    return max(min(1 + int(_LAUNCH_SHARE * fitting), _MOST_PLANNED - done), first, 1)


def claims_of(
    decided: Mapping[Scenario, Choice],
    gains: Mapping[Scenario, float],
    weights: Mapping[Scenario, float],
    time: ProofTime,
) -> list[Claim]:
    """The connected regions of ``decided`` that depart from the default, cut as far as ``time`` is enough for.

    ``gains`` and ``weights`` as in Claim. The greatest expected gain comes first.
    """
    whole = [
        Claim(choice, tuple(part), tuple(gains[s] for s in part), tuple(weights[s] for s in part))
        for choice, part in _connected(decided)
    ]
    return sorted(_cut(whole, time), key=lambda claim: -claim.expected_gain)


def most_claims(comparison_s: float, time_s: float, launch_s: float) -> int:
    """As many as can be brought to an end in ``time_s``, where a comparison and a launch take so long."""
    claim_s = _IN_A_LAUNCH * planned_launches(time_s, launch_s) * comparison_s
    return min(int(_COMPARING_SHARE * max(time_s, 0.0) / claim_s), MOST_CLAIMS) if claim_s > 0.0 else 0


def cut_in_two(claim: Claim) -> tuple[Claim, Claim] | None:
    """Where the gains on both sides differ most; None for a claim that is too small or too even to be cut."""
    cut = _best_cut(claim)
    return None if cut is None else cut[1]


def _connected(decided: Mapping[Scenario, Choice]) -> list[tuple[Choice, list[Scenario]]]:
    """The largest sets of neighbours that decide alike, but for the default."""
    beside = neighbours(decided)
    non_default = [scenario for scenario, choice in decided.items() if choice != DEFAULT]
    alike = connected(non_default, lambda here: [other for other in beside[here] if decided[other] == decided[here]])
    return [(decided[part[0]], part) for part in alike]


def _cut(claims: Sequence[Claim], time: ProofTime) -> list[Claim]:
    """By the cuts that tell most of the gain for the time that one more claim takes.

    Where there is no time for all claims some have none in any case, and parts that gain most should not be among them.
    """
    claim_s, most = time.claim_s, time.most
    comparing_s = _COMPARING_SHARE * time.time_s
    left_s = max(comparing_s - sum(map(claim_s, claims)), _FOR_CUTS * comparing_s)
    done: list[Claim] = []
    open_cuts: list[tuple[float, int, float, Claim, tuple[Claim, Claim]]] = []
    number = count()

    def consider(claim: Claim) -> None:
        cut = _best_cut(claim)
        if cut is None:
            done.append(claim)
        else:
            more_s = sum(map(claim_s, cut[1])) - claim_s(claim)
            heapq.heappush(open_cuts, (-cut[0] / max(more_s, 1e-9), next(number), more_s, claim, cut[1]))

    for claim in claims:
        consider(claim)
    while open_cuts and len(done) + len(open_cuts) < most:
        _, _, more_s, claim, parts = heapq.heappop(open_cuts)
        if more_s > left_s:
            done.append(claim)
            continue
        left_s -= more_s
        for part in parts:
            consider(part)
    return [*done, *(claim for *_, claim, _ in open_cuts)]


def _best_cut(claim: Claim) -> tuple[float, tuple[Claim, Claim]] | None:
    """The cut across one axis that leaves the least variance of the gain, and what it takes away of it."""
    if len(claim.scenarios) < 2:
        return None
    places, gains, weights = claim.places, np.array(claim.gains), np.array(claim.weights)
    extent = places.max(axis=0) - places.min(axis=0)
    if float(gains.max() - gains.min()) < _EVEN and float(extent.max()) < _NARROW:
        return None
    best: tuple[float, NDArray[np.bool_]] | None = None
    for axis in range(3):
        values = np.unique(places[:, axis])
        for low, high in pairwise(values):
            below = places[:, axis] <= 0.5 * (low + high)
            drop = _between(gains, weights, below) + _BY_PLACE * _between(places[:, axis], weights, below)
            if best is None or drop > best[0]:
                best = (drop, below)
    if best is None or not math.isfinite(best[0]):
        return None
    below = best[1]
    return best[0], (claim.part(np.flatnonzero(below)), claim.part(np.flatnonzero(~below)))


def _between(values: Floats, weights: Floats, below: NDArray[np.bool_]) -> float:
    """The weighted sum of squares between the two sides of a cut."""
    below_weight, above_weight = weights[below].sum(), weights[~below].sum()
    if below_weight == 0.0 or above_weight == 0.0:
        return 0.0
    means = [float(np.average(values[side], weights=weights[side])) for side in (below, ~below)]
    return float(below_weight * above_weight / (below_weight + above_weight)) * (means[0] - means[1]) ** 2
