"""A comparison of the proof with its times, and whether the default alone was slowed in it.

Other programs may slow the default and not the choice, in launch after launch: no test of ratios sees that. So what a
comparison says is held against the best times that any launch saw.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from colltune.core.choice import Choice
from colltune.core.sample import Heaps, OtherViews
from colltune.core.scenario import Scenario
from colltune.prove.audit.effects import Seen

# A comparison is no evidence where the default took so many times the best that any launch saw of it, or so many times
# what the campaign saw, which times calls among others, and the choice was slowed so much less.
SLOWED, SLOWED_SINCE, _ALONE = math.log(1.5), math.log(2.0), math.log(1.15)


class PairTimes(NamedTuple):
    """Seconds of the default and the choice: in a comparison, as the campaign expected them, or the best of each."""

    default_s: float
    choice_s: float

    def slowed(self, best: "PairTimes") -> float:
        """How much longer the default took than at its ``best``, as a logarithm."""
        return math.log(self.default_s / best.default_s)

    def is_slowed_alone(self, best: "PairTimes", limit: float) -> bool:
        """Whether it took longer by more than ``limit``, and the choice did not, so that its gain is of that time."""
        slowed = self.slowed(best)
        return slowed > limit and slowed - math.log(self.choice_s / best.choice_s) > _ALONE


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
    """The best times that any launch of the proof saw. ``version`` grows with each that is better than before."""

    version: int = 0
    _least_s: dict[tuple[Scenario, Choice | None], float] = field(default_factory=dict)

    def tell(self, scenario: Scenario, choice: Choice, times: PairTimes) -> None:
        """``choice``: what was compared with the default."""
        for one, time_s in zip((None, choice), times, strict=True):
            if time_s < self._least_s.get((scenario, one), math.inf):
                self._least_s[scenario, one] = time_s
                self.version += 1

    def of(self, scenario: Scenario, choice: Choice, times: PairTimes) -> PairTimes:
        """``times`` where there are no better ones."""
        pairs = zip((None, choice), times, strict=True)
        return PairTimes(*(min(self._least_s.get((scenario, one), time_s), time_s) for one, time_s in pairs))
