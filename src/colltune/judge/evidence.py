"""How sure it is that a choice is faster, from one number for each launch; and how much runs of a program differ.

The number is the mean over a launch of log(time of the default / time of the choice). Launches are what is
independent: what lies inside one launch shares its placement and its modes. For the hypothesis "the mean is at most
``floor``" the evidence is a Bayes factor: the likelihood of the launches under means above the floor (half a normal
distribution of ``SPREAD``) over their likelihood at the floor. The variance of a launch is unknown in both; it has an
inverse gamma distribution about ``scale``, which is estimated from all regions together, and counts as ``CREDIT``
launches. Half of the weight of the means above the floor lies about what the campaign expected: that was measured
before, in another launch, so it may be chosen freely, and where it is right fewer launches do. Such a ratio is an
e-process: under the hypothesis the chance that it ever reaches 1 / alpha is at most alpha, however often one looks
and whenever one stops (Wang and Ramdas 2025, "Anytime-valid t-tests and confidence sequences for Gaussian means with
unknown variance"; Gruenwald, de Heide and Koolen 2024, "Safe testing", section 4). The chance is taken over the
distribution of the variance too; docs/design/proof.md has the rates with tails and modes that are not Gaussian.

The pairs of a run share what differs between runs (placement, what else there was), so their spread does not show it.
Method of moments: the variance of the runs' means, less what the pairs of each run explain, pooled over kinds of calls.
It begins at what the pairs explain, counted as one run, so that two runs which happen to agree do not take it to zero.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance

import numpy as np
from numpy.typing import NDArray

from colltune.core.interval import Interval

Floats = NDArray[np.float64]
# Chance that a region is called faster which is not.
ALPHA = 0.01
# Standard deviation of a launch's logarithm for which all of this is made. Blocks of calls may spread more.
LAUNCH_SPREAD = 0.3
# Log speed-ups that are to be expected where there is one, and the greatest one that is looked at.
SPREAD, _GREATEST = 0.25, 1.5
# Of what the campaign expected, what is there as a rule, and how much of it that is off; at least so much is it off.
_THERE, _OFF, _LEAST_OFF = 0.8, 0.3, 0.03
# So many launches counts what is known of the variance from all regions.
CREDIT = 4.0
# Below so many launches nothing is decided, however clear it looks: half of the launches may have a mode of their own.
FEWEST_LAUNCHES = 3
# A region whose comparisons scatter so many times as much as in the middle one says nothing of the others.
_ODD = 3.0
# The variance between launches is never taken to be less: clocks and seconds are not better than that.
LEAST_SCALE = 0.02
# However many claims of a file are true.
_LEAST_NULLS, _LEAST_ALPHA, _MOST_ALPHA = 0.05, 1e-4, 0.04
_MEANS: Floats = np.geomspace(0.002, _GREATEST, 96)
# Distances from the mean at which a bound is looked for.
_OFFSETS: list[float] = np.geomspace(1e-3, _GREATEST, 48).tolist()
_WIDTHS: Floats = np.gradient(_MEANS)
_PRIOR: Floats = np.exp(-0.5 * (_MEANS / SPREAD) ** 2) * _WIDTHS
_PRIOR /= _PRIOR.sum()
_LOG_PRIOR: Floats = np.log(_PRIOR)


def log_evidence(launches: Sequence[float], scale: float, floor: float, expected: float | None = None) -> float:
    """Natural logarithm of the evidence that the mean of ``launches`` is above ``floor``; 0 where there are none.

    ``scale``: the standard deviation of a launch as all regions have it. ``expected``: of the mean, before the first
    launch.
    """
    if len(launches) == 0:
        return 0.0
    above = np.asarray(launches, dtype=np.float64) - floor
    known = CREDIT * max(scale, LEAST_SCALE) ** 2
    at_floor = math.log(known + float(np.square(above).sum()))
    squares = np.square(above[:, None] - _MEANS[None, :]).sum(axis=0)
    likelihood = -0.5 * (CREDIT + len(above)) * (np.log(known + squares) - at_floor)
    terms = likelihood + _log_prior(expected, floor)
    greatest = float(terms.max())
    return greatest + math.log(float(np.exp(terms - greatest).sum()))


def _log_prior(expected: float | None, floor: float) -> Floats:
    """Of the means above the floor, which sum to one."""
    if expected is None or expected <= floor:
        return _LOG_PRIOR
    off = (_MEANS - (_THERE * expected - floor)) / max(_OFF * expected, _LEAST_OFF)
    near = np.exp(-0.5 * off**2) * _WIDTHS
    return np.asarray(np.log(0.5 * _PRIOR + 0.5 * near / near.sum()))


def is_above(
    launches: Sequence[float], scale: float, floor: float, alpha: float = ALPHA, expected: float | None = None
) -> bool:
    """Whether the mean is above ``floor``, with the error ``alpha`` over all looks together."""
    enough = math.log(1.0 / alpha)
    return len(launches) >= FEWEST_LAUNCHES and log_evidence(launches, scale, floor, expected) >= enough


def is_below(launches: Sequence[float], scale: float, floor: float, alpha: float) -> bool:
    """The same for a mean below ``floor``."""
    return is_above([-value for value in launches], scale, -floor, alpha)


def low_bound(launches: Sequence[float], scale: float, alpha: float = ALPHA, expected: float | None = None) -> float:
    """The greatest floor that the mean is surely above, of a sequence of bounds that hold all together (1 - alpha).

    Minus infinity where there are too few launches to give one.
    """
    if len(launches) < FEWEST_LAUNCHES:
        return -math.inf
    middle = float(np.mean(launches))
    # The highest floor that it is above. Far below the mean the evidence falls again, for such gains are not expected.
    above = 0.0
    for below in _OFFSETS:
        if is_above(launches, scale, middle - below, alpha, expected):
            break
        above = below
    else:
        return -math.inf
    while below - above > 1e-4:
        half = 0.5 * (below + above)
        above, below = (above, half) if is_above(launches, scale, middle - half, alpha, expected) else (half, below)
    return middle - below


def high_bound(launches: Sequence[float], scale: float, alpha: float = ALPHA) -> float:
    """The least floor that the mean is surely below; infinity where there are too few launches."""
    return -low_bound([-value for value in launches], scale, alpha)


def interval_of(logs: Sequence[float], scale: float, alpha: float) -> Interval:
    """Of the mean of ``logs``; each bound misses with the chance ``alpha``, over all looks together.

    ``logs`` and their ``scale`` in units in which they spread as launches do: the evidence expects such gains.
    """
    unit = max(scale / LAUNCH_SPREAD, 1.0)
    spread = [log / unit for log in logs]
    low, high = unit * low_bound(spread, scale / unit, alpha), unit * high_bound(spread, scale / unit, alpha)
    return Interval(sum(logs) / len(logs), low, high)


@dataclass(frozen=True, slots=True)
class Scatter:
    """Standard deviations of log ratios: ``between`` launches, and ``within`` one from comparison to comparison."""

    between: float = 0.05
    within: float = 0.1

    def of(self, looks: float) -> float:
        """Of the mean of a launch in which there were so many comparisons."""
        return math.sqrt(self.between**2 + self.within**2 / max(looks, 1.0))

    def best_looks(self, launch_s: float, look_s: float) -> int:
        """How many comparisons in a launch tell most for the time (Cochran 1977, "Sampling techniques", 10.6)."""
        return max(math.ceil(math.sqrt(launch_s / look_s) * self.within / self.between), 1)


def scatter_of(regions: Iterable[Sequence[Sequence[float]]]) -> Scatter:
    """The scatter that all ``regions`` show together: of each its launches, of each launch its comparisons.

    A guess counts as one degree of freedom of each kind, so that there is a figure from the start. What a scenario
    has of its own counts as scatter within the launch that it was compared in. A region that scatters far more than
    most, such as that of a choice with two modes, tells of itself alone.
    """
    guess = Scatter()
    own = [(float(np.std(np.concatenate(some), ddof=1)), some) for some in regions if sum(map(len, some)) > 1]
    usual = median([sd for sd, _ in own if sd > 0.0] or [0.0])
    regions = [some for sd, some in own if sd <= _ODD * usual]
    within, freedom = guess.within**2, 1.0
    means: list[tuple[float, float, float]] = []  # squared residual, what it is of a variance, looks
    for launches in regions:
        for values in launches:
            if len(values) > 1:
                within += float(np.square(np.asarray(values) - np.mean(values)).sum())
                freedom += len(values) - 1
        if len(launches) > 1:
            each = np.array([np.mean(values) for values in launches])
            left = 1.0 - 1.0 / len(launches)
            looks = len(launches) / sum(1.0 / len(values) for values in launches)
            means += [(float(residual) ** 2, left, looks) for residual in each - each.mean()]
    if freedom < 2.0 and means:
        # One comparison a launch: what is between launches cannot be told from what is within.
        total = sum(residual for residual, _, _ in means) / sum(left for _, left, _ in means)
        return Scatter(guess.between, math.sqrt(max(total - guess.between**2, LEAST_SCALE**2)))
    variance = within / freedom
    beyond = guess.between**2 + sum(residual - left * variance / looks for residual, left, looks in means)
    between = max(beyond / (1.0 + sum(left for _, left, _ in means)), 0.0)
    return Scatter(max(math.sqrt(between), LEAST_SCALE / 2.0), max(math.sqrt(variance), LEAST_SCALE))


def pooled_scale(regions: Iterable[Sequence[float]]) -> float:
    """The standard deviation of a launch about the mean of its region, where each region has one value for a launch."""
    return scatter_of([[value] for value in values] for values in regions).of(1.0)


def scale_of_few(runs: Sequence[float]) -> float:
    """The standard deviation of a run's mean, as few ``runs`` show it: LAUNCH_SPREAD counts as two of them.

    Runs that happen to agree would otherwise say more than they know: 2% of choices that are at the floor were above it
    after three or four runs, in place of 1%, and 0.4% with what is known of all launches.
    """
    middle = fmean(runs)
    squares = 2.0 * LAUNCH_SPREAD**2 + sum((value - middle) ** 2 for value in runs)
    return math.sqrt(squares / (1.0 + len(runs)))


def share_of_nulls(evidence: Sequence[float]) -> float:
    """The share of claims that are no gain, as their log ``evidence`` tells (found by expectation maximisation).

    It starts at one half and is never taken to be less than a twentieth.
    """
    if not evidence:
        return 1.0
    odds = np.exp(np.clip(np.asarray(evidence, dtype=np.float64), -50.0, 50.0))
    share = 0.5
    for _ in range(50):
        share = max(float(np.mean(share / (share + (1.0 - share) * odds))), _LEAST_NULLS)
        if share >= 1.0 - 1e-9:
            break
    return share


@dataclass(frozen=True, slots=True)
class Reference:
    """What all claims of a file tell of how to judge one: their ``scatter``, and the share of them that are no gain.

    A claim is accepted once the share of ``nulls`` among those with as much evidence is at most ALPHA: where most of
    the campaign's claims are true less evidence is needed for each than where hardly one is.
    """

    scatter: Scatter = Scatter()
    nulls: float = 0.5

    @property
    def alpha(self) -> float:
        """The error with which a single claim is to be tested."""
        return min(max(ALPHA * (1.0 - self.nulls) / self.nulls, _LEAST_ALPHA), _MOST_ALPHA)


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
