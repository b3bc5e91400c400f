"""A comparison of the proof with its times, and whether the default alone was slowed in it.

Other programs may slow the default and not the choice, in launch after launch: no test of ratios sees that. So what a
comparison says is held against the best times that any launch saw. What a launch does to all choices of a collective it
does to the default too, and the ratio is without it: else the launches that show a gain would be the ones left out.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from colltune.core.sample import Choice, Heaps, OtherViews, Scenario
from colltune.prove.audit.effects import Seen

# A comparison is no evidence where the default took so many times the best that any launch saw of it, or so many times
# what the campaign saw, which times calls among others, and the choice was slowed so much less.
SLOWED, SLOWED_SINCE, _ALONE = math.log(1.5), math.log(2.0), math.log(1.15)
# So many comparisons of a collective tell what a launch does to all of its choices.
_SEVERAL = 3


def centre(values: Sequence[float]) -> float:
    """The median of the means of all pairs of ``values``, one with itself too (Hodges and Lehmann 1963).

    As sure as the mean where they are normal. One comparison that met something else altogether does not move it.
    """
    array = np.array(values)
    first, second = np.triu_indices(len(array))
    return float(np.median(0.5 * (array[first] + array[second])))


class PairTimes(NamedTuple):
    """Seconds of the default and the choice: in a comparison, as the campaign expected them, or the best of each."""

    default_s: float
    choice_s: float

    def slowed(self, best: "PairTimes") -> float:
        """How much longer the default took than at its ``best``, as a logarithm."""
        return math.log(self.default_s / best.default_s)

    def is_slowed_alone(self, best: "PairTimes", limit: float, common: float) -> bool:
        """Whether it took longer by more than ``limit``, and the choice did not, so that its gain is of that time.

        ``common``: how much longer all choices of the collective took in that launch.
        """
        slowed = self.slowed(best)
        return slowed - common > limit and slowed - math.log(self.choice_s / best.choice_s) > _ALONE


class Measured(NamedTuple):
    """The times of a comparison, and its log speed-ups by state of the heap, of calls that meet page faults."""

    times: PairTimes
    heaps: Heaps | None = None


class Taken(NamedTuple):
    """A comparison, the same by other conventions, and what was measured; None where only the ratio is known."""

    seen: Seen
    others: OtherViews
    measured: Measured | None


@dataclass
class Bests:
    """The best times that any launch of the proof saw, and what each launch has in common.

    ``version`` grows whenever any of them changes.
    """

    version: int = 0
    _least_s: dict[tuple[Scenario, Choice | None], float] = field(default_factory=dict)
    # By launch and collective: what was chosen, what it took, and what the campaign expected.
    _chosen: defaultdict[tuple[int, str], list[tuple[Scenario, Choice, float, float | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _common: dict[tuple[int, str], tuple[float, float]] = field(default_factory=dict)

    def tell(self, launch: int, scenario: Scenario, choice: Choice, times: PairTimes, then: PairTimes | None) -> None:
        """``choice``: what was compared with the default; ``then``: as the campaign expected it."""
        self._chosen[launch, scenario.collective].append((scenario, choice, times.choice_s, then and then.choice_s))
        for side, time_s in zip((None, choice), times, strict=True):
            if time_s < self._least_s.get((scenario, side), math.inf):
                self._least_s[scenario, side] = time_s
                self.version += 1

    def of(self, scenario: Scenario, choice: Choice, times: PairTimes) -> PairTimes:
        """``times`` where there are no better ones."""
        pairs = zip((None, choice), times, strict=True)
        return PairTimes(*(min(self._least_s.get((scenario, side), time_s), time_s) for side, time_s in pairs))

    def end_launch(self) -> None:
        """Finds anew what each launch has in common, now that better times may be known."""
        self.version += 1
        for key, some in self._chosen.items():
            since_best = [math.log(time_s / self._least_s[scenario, choice]) for scenario, choice, time_s, _ in some]
            since_campaign = [math.log(time_s / then_s) for _, _, time_s, then_s in some if then_s]
            self._common[key] = _middle(since_best), _middle(since_campaign)

    def common(self, seen: Seen) -> tuple[float, float]:
        """How much longer the choices of its collective took in its launch than at best, and than once expected.

        Logarithms, of the choices alone: where the default alone is slowed they stay as they are.
        """
        return self._common.get((seen.launch, seen.scenario.collective), (0.0, 0.0))


def _middle(values: Sequence[float]) -> float:
    """The median; 0 of too few to tell."""
    return median(values) if len(values) >= _SEVERAL else 0.0
