"""One claim before the audit: what was compared of it, where to look next, and what that says."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median

import numpy as np

from colltune.core.proven import Verdict, Why, launches_text
from colltune.core.sample import Heaps, OtherViews, Scenario
from colltune.core.units import format_count
from colltune.judge import evidence
from colltune.prove.audit.claims import Claim, cut_in_two
from colltune.prove.audit.effects import GREATEST, PRIOR_SHARE, ChoiceEffect, Seen
from colltune.prove.audit.harm import SLOWER, ClaimOutlook, Floats, outlook_of, own_means
from colltune.prove.audit.taken import SLOWED, SLOWED_SINCE, Bests, Measured, PairTimes, Taken, centre

# Error with which a claim is given up: it costs a gain, and no user is the slower for it.
_GIVEN_UP = 0.10
# Launches after which a claim whose mean is below the threshold is given up, however unsure.
_ENOUGH_LAUNCHES = 8
# After so many, those of other jobs too, what is still open gains about the threshold: nobody would notice.
MOST_LAUNCHES = 40
# A scenario that is less likely than this to be slower needs no look of its own; nor does a region where so little of
# the weight is likelier.
_SURE, _UNSURE_PART = 0.03, 0.02
# The least chance to be slower of what was never compared.
_UNSEEN = 1e-3
# And of what was slower whenever it was compared, on average.
_SEEN_SLOWER = 0.5
# Each part of a claim that is cut is so much of its weight at least.
_PART = 0.15
# Where the default was slowed alone in more of the comparisons, what is left of them is what slipped through.
_SLOWED_SHARE = 1.0 / 3.0
# Fewer comparisons say too little of a kind of start that seems to lose: what scatters by 0.2 is off by 0.14 in two.
_ENOUGH_LOOKS = 8
# In the order of OtherViews, with what the log speed-up has to exceed. Late ranks scatter most, and a call that waits
# for them takes what is left of it anyway: there a claim may lose less than counts as slower.
_VIEWS = (
    ("back to back", 0.0),
    ("by the mean over ranks", 0.0),
    ("where ranks come late", -math.log(SLOWER)),
    ("into memory that was never touched", 0.0),
)
_WIDEST = math.log(100.0)  # an upper bound beyond this says nothing
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@dataclass
class Case:
    """``floor``: the log speed-up that is to be beaten. ``costs_s``: what a comparison takes at each scenario, about.

    ``bests``: of the whole proof. ``expected_times``: those of the campaign.
    ``applications``: the launches that are runs of the application. ``late_too``: it has to be faster where ranks come
    late, too.
    """

    claim: Claim
    floor: float
    seed: int
    costs_s: Sequence[float]
    bests: Bests = field(default_factory=Bests)
    expected_times: Callable[[Scenario], PairTimes | None] = lambda _scenario: None
    verdict: Verdict = Verdict.OPEN
    why: Why = Why.MEASURED
    reason: str = ""
    proven_low: float = 0.0  # the bound by which it was proven
    cut: bool = False  # a ratio was so large that it counts for less
    taken: list[Taken] = field(default_factory=list)
    basis: list[Taken] = field(default_factory=list)  # what was evidence when it was proven
    _counted: tuple[tuple[int, int], list[Taken]] | None = field(default=None, init=False)
    applications: set[int] = field(default_factory=set)
    late_too: bool = False
    looked_again: bool = False  # since it seemed to lose by another kind of start
    impossible: set[Scenario] = field(default_factory=set)  # cannot be compared here
    replaced: set[Scenario] = field(default_factory=set)  # judged by a claim that was cut out of this one
    outlook: ClaimOutlook | None = None

    @property
    def counted(self) -> list[Taken]:
        """The comparisons that are evidence: those in which the default was not slowed alone."""
        now = self.bests.version, len(self.taken)
        if self._counted is None or self._counted[0] != now:
            self._counted = now, [taken for taken in self.taken if not self._is_slowed_alone(taken)]
        return self._counted[1]

    def _is_slowed_alone(self, taken: Taken) -> bool:
        if taken.measured is None:
            return False
        since_best, since_then = self.bests.common(taken.seen)
        best, then = self._best(taken), self.expected_times(taken.seen.scenario)
        return taken.measured.times.is_slowed_alone(best, SLOWED, since_best) or (
            then is not None and taken.measured.times.is_slowed_alone(then, SLOWED_SINCE, since_then)
        )

    def _best(self, taken: Taken) -> PairTimes:
        """The best times that any launch saw of the two; ``taken`` has times."""
        assert taken.measured is not None
        return self.bests.of(taken.seen.scenario, self.claim.choice, taken.measured.times)

    @property
    def seen(self) -> list[Seen]:
        """The comparisons that are evidence, from a common start."""
        return [taken.seen for taken in self.counted]

    @property
    def near_best(self) -> list[float]:
        """Log speed-ups of the comparisons in which the default was near the best that any launch saw of it."""
        return [
            taken.seen.value
            for taken in self.taken
            if taken.measured is not None and taken.measured.times.slowed(self._best(taken)) <= SLOWED
        ]

    @property
    def _is_often_slowed(self) -> bool:
        return len(self.taken) - len(self.counted) > _SLOWED_SHARE * len(self.taken)

    @property
    def slowed_text(self) -> str:
        """Why it was not judged, where the default was often slowed alone; else ""."""
        if not self._is_often_slowed:
            return ""
        slowed = [taken for taken in self.taken if self._is_slowed_alone(taken)]
        times = math.exp(median(self._slowed(taken) for taken in slowed))
        return (
            f"the default's times moved: in {len(slowed)} of {format_count(len(self.taken), 'comparison')} it took"
            f" {times:.2f} times its best at the median, and the choice did not; these are no evidence"
        )

    def _slowed(self, taken: Taken) -> float:
        assert taken.measured is not None
        bests = (self._best(taken), self.expected_times(taken.seen.scenario))
        return max(taken.measured.times.slowed(best) for best in bests if best is not None)

    @property
    def by_launch(self) -> list[list[float]]:
        """Of each launch in which anything was compared, what each comparison says of the mean of the region.

        Where the campaign expected a scenario to gain more or less than the region, most of that is taken off: it has
        mean 0 over the region, whether it is right or not, and where it is right launches agree that looked at
        different scenarios (a control variate).
        """
        launches: dict[int, list[float]] = {}
        for seen in self.seen:
            beyond = PRIOR_SHARE * (seen.expected - self.expected)
            launches.setdefault(seen.launch, []).append(seen.value - beyond)
        return list(launches.values())

    @cached_property
    def usual_cost_s(self) -> float:
        return max(float(np.median(self.costs_s)), 1e-9)

    @cached_property
    def expected(self) -> float:
        """The mean log speed-up of the region that the campaign let expect."""
        return float(np.average(self.claim.gains, weights=self.claim.weights))

    @property
    def launches(self) -> list[float]:
        """The mean log speed-up of each."""
        return [sum(values) / len(values) for values in self.by_launch]

    @property
    def gain(self) -> float:
        """The log speed-up of the region as far as is known by now."""
        weights = np.array(self.claim.weights)
        expected = PRIOR_SHARE * np.array(self.claim.gains) if self.outlook is None else self.outlook.mean
        return float(np.average(expected, weights=weights))

    def scale(self, reference: evidence.Reference) -> float:
        """The standard deviation of the mean of a launch, with as many comparisons as its launches have here."""
        counts = [len(values) for values in self.by_launch]
        return reference.scatter.of(len(counts) / sum(1.0 / count for count in counts) if counts else 1.0)

    def log_evidence(self, reference: evidence.Reference) -> float:
        return evidence.log_evidence(self.launches, self.scale(reference), self.floor, self.expected)

    @property
    def speedup(self) -> float:
        """Geometric mean over the launches."""
        return max(math.exp(float(np.mean(self.launches))), self.proven_low) if self.seen else 1.0

    def interval(self, reference: evidence.Reference) -> tuple[float, float]:
        """Bounds of the mean speed-up of the region; 0 and infinity where there are too few launches."""
        launches, scale, alpha = self.launches, self.scale(reference), reference.alpha
        bounds = evidence.low_bound(launches, scale, alpha, self.expected), evidence.high_bound(launches, scale, alpha)
        low, high = (math.exp(min(bound, _WIDEST)) for bound in bounds)
        # What held when the claim was proven holds on: all bounds hold together.
        return max(low, self.proven_low), max(high, self.proven_low)

    @property
    def by_heap(self) -> Heaps | None:
        """The geometric mean of the speed-ups of those comparisons whose calls meet page faults, in either state."""
        heaps = [taken.measured.heaps for taken in self.counted if taken.measured and taken.measured.heaps]
        return Heaps(*(math.exp(fmean(values)) for values in zip(*heaps, strict=True))) if heaps else None

    def take(
        self, scenario: Scenario, launch: int, value: float, others: OtherViews, measured: Measured | None = None
    ) -> None:
        """``measured``: None where only the ratio is known."""
        if self.verdict is Verdict.REFUSED:
            return  # its reason tells of what was compared by then
        self.cut = self.cut or abs(value) > GREATEST
        value = min(max(value, -GREATEST), GREATEST)
        seen = Seen(scenario, launch, value, self.claim.gains[self.claim.rows[scenario]])
        self.taken.append(Taken(seen, others, measured))

    def forget_launch(self, launch: int) -> None:
        """What was compared in a launch that others disturbed is no evidence."""
        self.taken, self._counted = [taken for taken in self.taken if taken.seen.launch != launch], None

    def judge(self, reference: evidence.Reference) -> Verdict:
        """Sets the verdict of an open case where there is enough to tell, a fresh launch of its own among it.

        Runs of the application do not compare calls back to back, and a gain in their calls may only have moved.
        """
        launches, scale = self.launches, self.scale(reference)
        if len(launches) < evidence.FEWEST_LAUNCHES or {seen.launch for seen in self.seen} <= self.applications:
            return self.verdict
        middle = math.exp(float(np.mean(launches)))
        if evidence.is_above(launches, scale, self.floor, reference.alpha, self.expected):
            if self.ends_unseen or self._is_often_slowed or self._late_unseen or self.looks_due:
                return self.verdict
            worse = self.by_heap
            if worse is not None and min(worse) <= 1.0:
                gives_back, keeps = worse
                return self._refuse(
                    f"{gives_back:.2f} times as fast where the heap gives memory back, {keeps:.2f} where it keeps it"
                )
            for values, (how, least) in zip(self._views, _VIEWS, strict=True):
                if values and centre(values) <= min(least, self.floor):
                    if len(values) < _ENOUGH_LOOKS and not self.looked_again:
                        self.looked_again = True
                        return self.verdict
                    other = math.exp(centre(values))
                    return self._refuse(f"{middle:.2f} times as fast from a common start, {other:.2f} times {how}")
            if (near := self.near_best) and centre(near) <= min(0.0, self.floor):
                near_text = f"{math.exp(centre(near)):.2f} times where the default was near its best"
                return self._refuse(f"{middle:.2f} times as fast on average, {near_text}")
            self.verdict, self.basis = Verdict.KEPT, self.counted
            self.proven_low = max(self.interval(reference)[0], math.exp(self.floor))
        elif evidence.is_below(launches, scale, self.floor, _GIVEN_UP):
            self._refuse(f"{middle:.2f} times as fast in its region, by {self._launches_text}")
        elif len(launches) >= _ENOUGH_LAUNCHES and middle <= math.exp(self.floor):
            self._refuse(f"only {middle:.2f} times as fast in its region after {self._launches_text}")
        elif len(launches) >= MOST_LAUNCHES:
            self._refuse(
                f"{middle:.2f} times as fast in its region, too near to the threshold to tell after so many"
                f" ({self._launches_text})"
            )
        return self.verdict

    def recheck_basis(self) -> None:
        """Opens a proven case anew where a better time of the default shows that it was slowed in the proof."""
        counted = self.counted
        if self.verdict is Verdict.KEPT and any(taken not in counted for taken in self.basis):
            self.verdict, self.reason, self.proven_low = Verdict.OPEN, "", 0.0

    @property
    def may_stand(self) -> bool:
        """Whether it gains enough as far as is known, so that kinds of start that cost more are looked at."""
        return self.verdict is Verdict.KEPT or (bool(self.seen) and fmean(self.launches) > self.floor)

    @property
    def _late_unseen(self) -> bool:
        """Whether nobody looked yet how it fares where ranks come late; long calls have the common start alone."""
        others = [taken.others for taken in self.counted]
        short = self.late_too and any(views.back_to_back is not None for views in others)
        return short and all(views.late_arrivals is None for views in others)

    @property
    def _views(self) -> list[list[float]]:
        """Log speed-ups by each kind of start of OtherViews, where it was looked at."""
        views = zip(*(taken.others for taken in self.counted), strict=True)
        return [[value for value in view if value is not None] for view in views]

    @property
    def looks_due(self) -> int:
        """How many comparisons more it takes to judge anew what seemed to lose by few; it is judged so but once."""
        views = self._views if self.looked_again else []
        return max([0, *(_ENOUGH_LOOKS - len(values) for values in views if values)])

    @property
    def ends_unseen(self) -> list[int]:
        """Rows of the ends of the region that nobody compared yet, where other jobs' comparisons count in it.

        The regions of their claims may have been smaller ones.
        """
        if not any(seen.launch < 0 and seen.launch not in self.applications for seen in self.seen):
            return []
        often, scenarios = self._often(), self.claim.scenarios
        return [row for row in self._ends.values() if often[row] == 0.0 and scenarios[row] not in self.impossible]

    @property
    def counts(self) -> tuple[int, int]:
        """Fresh launches, and runs of the application, in which anything was compared."""
        numbers = {seen.launch for seen in self.seen}
        runs = len(numbers & self.applications)
        return len(numbers) - runs, runs

    @property
    def _launches_text(self) -> str:
        return launches_text(*self.counts)

    def _refuse(self, reason: str) -> Verdict:
        self.verdict, self.reason = Verdict.REFUSED, reason
        return self.verdict

    def look_ahead(self, effect: ChoiceEffect) -> None:
        """Takes in what the comparisons say of every scenario, also of those that were not compared."""
        self.outlook = outlook_of(self.claim, effect)

    @property
    def uncertain_count(self) -> int:
        """Of how many scenarios further looks could tell whether the rule is good for them, too."""
        if self.outlook is None:
            return 0
        uncertainty, weights = self._uncertainty(), np.array(self.claim.weights)
        unsure = weights * (uncertainty > _SURE)
        unseen = (uncertainty > 0.0) & (self._often() == 0)
        return int(np.count_nonzero(unseen | (unsure.sum() > _UNSURE_PART * weights.sum()) & (unsure > 0.0)))

    def _often(self) -> Floats:
        """(N,): how often each scenario was compared."""
        looks = Counter(seen.scenario for seen in self.seen)
        return np.array([looks[scenario] for scenario in self.claim.scenarios], dtype=np.float64)

    def _uncertainty(self) -> Floats:
        """(N,): the chance to be slower of what is expected to be faster; the less, the more often it was compared.

        What was never compared is uncertain, whatever is expected of it: the default may change its ways just there. So
        is what was slower when it was compared, whatever its neighbours are.
        """
        assert self.outlook is not None
        often, own = self._often(), own_means(self.seen)
        slower = np.array([own.get(scenario, 0.0) < 0.0 for scenario in self.claim.scenarios])
        chance = np.maximum(self.outlook.harmed, np.where(slower, _SEEN_SLOWER, _UNSEEN * (often == 0.0)))
        possible = np.array([scenario not in self.impossible for scenario in self.claim.scenarios])
        return np.asarray(chance * (self.outlook.mean > 0.0) * possible / (1.0 + often))

    def parts(self) -> list[Claim]:
        """Where one part of the region is faster and another is not: the part that is, as a claim of its own."""
        if self.outlook is None or len(self.launches) < evidence.FEWEST_LAUNCHES:
            return []
        mean, sd = self.outlook.mean, self.outlook.sd
        weights = np.array(self.claim.weights)
        good, bad = mean - sd > self.floor, mean + sd < self.floor
        if min(weights[good].sum(), weights[bad].sum()) < _PART * weights.sum():
            return []
        seen_now = Claim(self.claim.choice, self.claim.scenarios, tuple(mean.tolist()), self.claim.weights)
        cut = cut_in_two(seen_now)
        return [] if cut is None else [part for part in cut if part.expected_gain > self.floor * sum(part.weights)]

    def next_scenario(self, is_cheap_enough: Sequence[bool]) -> Scenario | None:
        """Where to compare next: the corners, then all over the region by weight; once kept, where it is least sure."""
        possible = [
            cheap and scenario not in self.impossible
            for cheap, scenario in zip(is_cheap_enough, self.claim.scenarios, strict=True)
        ]
        if not any(possible):
            return None
        if self.outlook is not None and self.verdict is Verdict.KEPT:
            uncertainty = self._uncertainty() * np.array(self.claim.weights) * np.array(possible)
            return self.claim.scenarios[int(np.argmax(uncertainty))] if uncertainty.max() > 0.0 else None
        for row in self.ends_unseen:
            if possible[row]:
                return self.claim.scenarios[row]
        looks = self._often()
        if (end := self._ends.get(len(self.seen))) is not None and possible[end]:
            return self.claim.scenarios[end]
        # By the root of the weight: none is compared again long before others are at all.
        due = np.sqrt(self.claim.weights) / (2.0 * looks + 1.0) * (1.0 - 1e-6 * self._turn)
        return self.claim.scenarios[int(np.argmax(np.where(possible, due, -1.0)))]

    @cached_property
    def _ends(self) -> dict[int, int]:
        """Rows that come early, by the number of comparisons before: the largest call, the smallest on most ranks."""
        places = self.claim.places
        return {1: int(np.argmax(places.sum(axis=1))), 3: int(np.argmax(places[:, 0] + places[:, 1] - places[:, 2]))}

    @cached_property
    def _turn(self) -> Floats:
        """(N,): when the turn of each row is among those of equal weight; one after another lie far apart."""
        places = self.claim.places
        order = np.lexsort((places[:, 1], places[:, 0], places[:, 2]))
        start = np.random.default_rng(self.seed).random()
        turn = np.empty(len(order))
        turn[order] = np.argsort(np.argsort((start + np.arange(len(order)) * _GOLDEN) % 1.0))
        return turn / len(order)
