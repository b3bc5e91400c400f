"""How much what runs of an application say of a rule differs from run to run: by placement, by what else there was.

The pairs of a run share that, so their spread does not show it. Method of moments: the variance of the runs' means,
less what the pairs of each run explain, pooled over kinds of calls. It begins at what the pairs explain, counted as one
run, so that two runs which happen to agree do not take it to zero.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from colltune.core.interval import Interval
from colltune.judge.evidence import FEWEST_LAUNCHES

# Runs that differ as little as their pairs explain, which count beside those that were made.
_CREDIT = 1.0


@dataclass(frozen=True, slots=True)
class BetweenRuns:
    """``spread``: standard deviation of a run's mean beside what its pairs explain; ``runs``: how many were compared at
    most, with so many ``degrees`` of freedom."""

    runs: int = 1
    spread: float = 0.0
    degrees: float = 0.0

    def widened(self, log: Interval, alpha: float, pairs: Sequence[int] = (1,)) -> Interval:
        """``log``, of which each bound misses with ``alpha``, for any such runs: it is of so many ``pairs`` of each."""
        if self.runs < 2:
            return log
        from scipy.special import stdtrit  # 0.15 s, of which a run has none to lose at its start

        more = float(-stdtrit(self.degrees, alpha)) * self.spread * math.hypot(*pairs) / sum(pairs)
        low, high = (math.hypot(end - log.estimate, more) for end in (log.low, log.high))
        return Interval(log.estimate, log.estimate - low, log.estimate + high)


def between_runs(kinds: Iterable[Sequence[Sequence[float]]]) -> BetweenRuns:
    """``kinds``: of each kind of calls, the logarithms of the pairs of each run. No spread where no two are alike."""
    repeated = []
    for runs in kinds:
        known = [(fmean(logs), variance(logs) / len(logs)) for logs in runs if len(logs) >= FEWEST_LAUNCHES]
        if len(known) > 1:
            repeated.append(known)
    if not repeated:
        return BetweenRuns()
    degrees = sum(len(runs) - 1 for runs in repeated)
    explained = fmean(error for runs in repeated for _, error in runs)
    excess = sum(
        (len(runs) - 1) * (variance([mean for mean, _ in runs]) - fmean(error for _, error in runs))
        for runs in repeated
    )
    spread = math.sqrt((_CREDIT * explained + max(excess, 0.0)) / (_CREDIT + degrees))
    return BetweenRuns(max(map(len, repeated)), spread, _CREDIT + degrees)
