"""Checks whether proven rules still pay: compares default and choice side by side again, in fresh launches.

Notations: a launch yields one speed-up of a rule, default over choice. A rule pays if the median speed-up over all
possible launches is at least its limit. The limit of a scenario that was proven by itself is a gain. The limit of one
that was proven with its region is less: it is not slower than the default by more than the threshold. If a rule pays,
a launch falls short with probability 1/2 at most, for every distribution of launches, with heavy tails or several
modes. A rule is lost only if so many of its launches fell short that chance explains it in less than ``ERROR`` of all
checks of a tuning, however many rules a check judges. Until then the rule holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import comb
from statistics import median, quantiles

from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.proven import THRESHOLD, Decision
from colltune.core.sample import Choice, Sample, Scenario, Status
from colltune.judge.finding import Because, Finding
from colltune.judge.sentinels import Validity

# The chance that a check reports any rule as lost although all of them pay.
ERROR = 0.01
# Launches of a look at most, and those that no rule is spared.
MOST_LAUNCHES, FEWEST_LAUNCHES = 30, 5
# A rule that paid in so many launches is measured no further: it cannot be lost any more.
_ACQUITTED = 5
# A median over the fastest call, from which on other programs had the cores; and the speed-up of fastest calls below
# which one is slower.
_DISTURBED, _CLEARLY_SLOWER = 3.0, 0.9
# An algorithm that gave no time in so many launches, while the default did, does not run here any more.
_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Promise:
    """A rule at one scenario. ``proof``: the decision that was kept there; None for a rule that was never proven.

    ``default_s``: what the default took then, in seconds; None where that is not known.
    """

    scenario: Scenario
    choice: Choice
    proof: Decision | None
    default_s: float | None

    @property
    def limit(self) -> float:
        """The speed-up below which it does not pay. Without a proof: as slow as the default."""
        if self.proof is None:
            return 1.0
        return min(self.proof.speedup.low, THRESHOLD) if self.proof.region is None else 1.0 / THRESHOLD

    @property
    def text(self) -> str:
        """What was promised, in words that follow the place."""
        if self.proof is None:
            return "it was never proven"
        who = "it" if self.proof.region is None else "its region"
        return f"{who} was proven to be at least {self.proof.speedup.low:.2f} times as fast"


@dataclass(frozen=True, slots=True)
class LaunchTiming:
    """The repetitions of a choice in one launch, in seconds."""

    median_s: float
    fast_s: float  # the median of the faster half
    least_s: float

    @property
    def disturbed(self) -> bool:
        """Whether other programs had the cores for most of the calls, so that the median tells of these."""
        return self.median_s > _DISTURBED * self.least_s


@dataclass(frozen=True, slots=True)
class Look:
    """Default and choice in one launch."""

    default: LaunchTiming
    choice: LaunchTiming

    @property
    def speedup(self) -> float:
        return self.default.median_s / self.choice.median_s

    def pays(self, limit: float) -> bool:
        """Whether the choice reaches ``limit`` in this launch; in a disturbed one, by its fastest calls alone.

        A neighbour adds time to some calls, whatever the algorithm. The faster half hardly shows it, and where most
        calls are hit, the fastest one may not; it is one call alone, so it has to be clearly slower to count.
        """
        if self.default.disturbed or self.choice.disturbed:
            return self.default.least_s / self.choice.least_s >= _CLEARLY_SLOWER
        return max(self.speedup, self.default.fast_s / self.choice.fast_s) >= limit


@dataclass(frozen=True, slots=True)
class Holding:
    """A rule and its launches. ``rules``: how many are judged together. ``failures``: launches without a time."""

    promise: Promise
    looks: tuple[Look, ...]
    rules: int
    failures: int = 0
    legal: bool = True

    @property
    def pace(self) -> float | None:
        """The present time of the default over the earlier one."""
        then_s = self.promise.default_s
        return median(look.default.median_s for look in self.looks) / then_s if self.looks and then_s else None

    @property
    def short(self) -> int:
        """Launches that fell short."""
        return sum(not look.pays(self.promise.limit) for look in self.looks)

    @property
    def finding(self) -> Finding:
        """The median of the launches between the least and the most of them: these miss it twice in 2^n of n."""
        speedups = [look.speedup for look in self.looks]
        speedup = Interval(median(speedups), min(speedups), max(speedups)) if speedups else None
        if not self.legal or (self.failures >= _FAILURES and speedup is None):
            return Finding(SpeedVerdict.GONE, speedup, len(speedups), Because.FAILED)
        if speedup is None:
            return Finding(SpeedVerdict.UNMEASURED, why=Because.NO_TIME)
        verdict = SpeedVerdict.HOLDS
        if len(speedups) >= launches_to_lose(len(speedups) - self.short, self.rules):
            verdict = SpeedVerdict.SLOWER
        elif self.short > len(speedups) / 2 and speedup.estimate < 1.0:
            verdict = SpeedVerdict.OPEN
        return Finding(verdict, speedup, len(speedups))

    @property
    def verdict(self) -> SpeedVerdict:
        return self.finding.verdict

    @property
    def open(self) -> bool:
        """Whether a further launch could still show that it is lost."""
        return not self.failed and len(self.looks) - self.short < _ACQUITTED

    @property
    def failed(self) -> bool:
        return self.verdict in (SpeedVerdict.SLOWER, SpeedVerdict.GONE)

    @property
    def reason(self) -> str:
        """Why it failed."""
        scenario, choice = self.promise.scenario, self.promise.choice
        where = f"{choice} at {scenario.nodes} x {scenario.ppn}, {scenario.size_bytes} B,"
        if self.verdict is SpeedVerdict.GONE:
            return f"{where} does not run on this MPI any more"
        return (
            f"{where} is {self.finding.speedup} times as fast as the default, and paid in"
            f" {len(self.looks) - self.short} of {len(self.looks)} fresh launches; {self.promise.text}"
        )


@cache
def launches_to_lose(paid: int, rules: int) -> int:
    """Launches of which no more than ``paid`` may have paid, from which on a rule is lost.

    More than can be made, where it is lost no more.
    """
    if paid >= _ACQUITTED:
        return MOST_LAUNCHES + 1
    # Each number that may have paid is a look of its own.
    allowed = ERROR / (rules * _ACQUITTED)
    count = paid + 1
    while sum(comb(count, index) for index in range(paid + 1)) > allowed * 2**count:
        count += 1
    return count


def add_launch(
    holdings: Iterable[Holding], samples: Iterable[Sample], baselines: Mapping[Scenario, Choice]
) -> list[Holding]:
    """``holdings`` after one more launch, in which ``samples`` were taken; what was not measured stays as it is."""
    measured = {(sample.scenario, sample.choice): sample for sample in samples}
    after = []
    for rule in holdings:
        scenario = rule.promise.scenario
        default = measured.get((scenario, baselines[scenario]))
        choice = measured.get((scenario, rule.promise.choice))
        looks, failures = rule.looks, rule.failures
        if default is not None and default.status is Status.OK and choice is not None:
            if choice.status is Status.OK:
                looks = (*looks, Look(_timing(default), _timing(choice)))
            else:
                failures += 1
        after.append(replace(rule, looks=looks, failures=failures))
    return after


def _timing(sample: Sample) -> LaunchTiming:
    times_s = sample.times_s
    fast_s = quantiles(times_s, n=4, method="inclusive")[0] if len(times_s) > 1 else times_s[0]
    return LaunchTiming(sample.time_s, fast_s, min(times_s))


def verdicts(holdings: Sequence[Holding]) -> dict[str, Validity]:
    """By collective, whether its rules hold; the first that is lost says why not."""
    by_name: dict[str, Validity] = {}
    for rule in sorted(holdings, key=lambda holding: holding.promise.scenario):
        name = rule.promise.scenario.collective
        if by_name.get(name, Validity()).holds:
            by_name[name] = Validity(rule.reason if rule.failed else None)
    return by_name
