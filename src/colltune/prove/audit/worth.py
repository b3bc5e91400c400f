"""Whether it pays to go on with a proof, in a job whose site knows much already.

A user who gives a tuning ``budget_s`` seconds says that what a whole tuning brings is worth them. Its last seconds
bring less than its first ones, and are worth their time all the same: on the tables of `make bench-delivery` captured
headroom grows with the budget to the power of 0.14 to 0.32, so the last second brings at least a seventh of what a
second brings on average. Time is spent as long as it is expected to bring as much as that. Gains are log speed-ups,
each by the weight of its scenario.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from colltune.core.proven import Decision, Verdict
from colltune.core.space import Weight
from colltune.judge.evidence import FEWEST_LAUNCHES, Reference
from colltune.prove.audit.case import Case

# Of what a second of a tuning brings on average, what its last second does.
_LAST_SECOND = 0.15
# Numbers of launches that are looked ahead.
_AHEAD = (1, 2, 3, 4, 6, 8, 12)


def least_gain_per_s(captured: float, budget_s: float) -> float:
    """What a second has to bring, where a tuning of ``budget_s`` has brought ``captured``; 0 where nothing is known."""
    return _LAST_SECOND * max(captured, 0.0) / budget_s


def captured_by(decisions: Iterable[Decision], weight: Weight, verdict: Verdict = Verdict.KEPT) -> float:
    """What those of ``decisions`` that have the ``verdict``, the kept ones, gain, each by its ``weight``."""
    mine = (decision for decision in decisions if decision.verdict is verdict)
    return sum(weight(decision.scenario) * math.log(max(decision.speedup.estimate, 1.0)) for decision in mine)


def gain_of(case: Case) -> float:
    """What the claim is expected to gain as far as is known by now, at all of its scenarios."""
    return max(case.gain, 0.0) * sum(case.claim.weights)


def chance_of(case: Case, reference: Reference) -> float:
    """That there is a gain: the share of true claims before any evidence, and what the evidence makes of it."""
    odds = (1.0 - reference.nulls) / max(reference.nulls, 1e-9)
    log_odds = math.log(max(odds, 1e-9)) + case.log_evidence(reference)
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -50.0), 50.0)))


@dataclass
class ComparisonCosts:
    """What comparisons take, from what they were expected to take and took so far.

    Took = what each takes besides its calls + a factor x expected, by least squares of relative errors, neither below
    0; the factor is held near 1, weakly, for comparisons that are all alike do not tell it. One factor alone, learnt
    from short calls that take little but what comes with each, would overestimate long calls a thousandfold.
    """

    _ones: float = 0.0  # sums over comparisons, in units of what each took
    _expected: float = 0.0
    _products: float = 0.0
    _squares: float = 0.02
    _shares: float = 0.02
    besides_s: float = 0.0
    factor: float = 1.0

    def note(self, expected_s: float, took_s: float) -> None:
        took_s = max(took_s, 1e-9)
        constant, expected = 1.0 / took_s, expected_s / took_s
        self._ones += constant * constant
        self._expected += constant
        self._products += constant * expected
        self._squares += expected * expected
        self._shares += expected
        determinant = self._ones * self._squares - self._products**2
        besides_s = self._expected * self._squares - self._products * self._shares
        factor = self._ones * self._shares - self._products * self._expected
        if determinant <= 1e-9 * self._ones * self._squares or besides_s <= 0.0:
            self.besides_s, self.factor = 0.0, self._shares / self._squares
        elif factor <= 0.0:
            self.besides_s, self.factor = self._expected / self._ones, 0.0
        else:
            self.besides_s, self.factor = besides_s / determinant, factor / determinant

    def likely_s(self, expected_s: float) -> float:
        return self.besides_s + self.factor * expected_s


@dataclass(frozen=True)
class ContinuationCosts:
    """What going on costs: ``launch_s`` for each launch, ``after_s`` once if anything is proven, ``least`` gain per s.

    ``looks``: how often a case has to be compared in each of so many launches; more than ``most_looks``: in vain.
    """

    least: float
    launch_s: float
    after_s: float
    looks: Callable[[Case, int], int]
    cost_s: Callable[[Case], float]
    most_looks: int

    def paying(self, cases: Collection[Case], reference: Reference, most_launches: int) -> tuple[int, list[Case]]:
        """The number of launches that gains most beyond its cost, and the cases that pay in it; 0 where none does."""
        best: tuple[float, int, list[Case]] = (0.0, 0, [])
        expected = [(case, chance_of(case, reference) * gain_of(case)) for case in cases]
        for launches in (number for number in _AHEAD if number <= most_launches):
            surplus, some = -self.least * (launches * self.launch_s + self.after_s), []
            for case, gain in expected:
                if len(case.launches) + launches < FEWEST_LAUNCHES:
                    continue
                looks = self.looks(case, launches)
                left = gain - self.least * launches * looks * self.cost_s(case)
                if looks <= self.most_looks and left > 0.0:
                    surplus += left
                    some.append(case)
            if surplus > best[0]:
                best = (surplus, launches, some)
        return best[1:]
