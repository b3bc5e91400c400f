"""The skeleton of a program on a cluster that it never ran on: its collective calls, and the computing between them.

Made of its profiles at some numbers of ranks. What a profile does not say is given (in steps) or assumed: calls and
computing are spread evenly over the run, and computing evenly over the ranks. Point-to-point messages are in no
profile; they count as computing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from colltune.core.errors import InputError
from colltune.core.sample import Scenario
from colltune.profile.application_profile import Calls, Profile
from colltune.profile.extrapolate import extrapolate

ROOTED = frozenset({"bcast", "reduce", "gather", "scatter"})
_LEFT_OUT = re.compile(r"left out, (\d+)% of the time in collectives")


@dataclass(frozen=True, slots=True)
class Kind:
    """``calls`` of the whole run, maybe a fraction. ``moving``: their roots are not one and the same rank."""

    scenario: Scenario
    calls: float
    moving: bool = False


@dataclass(frozen=True, slots=True)
class Computing:
    """Seconds outside collectives on ``ranks`` ranks: ``whole_s`` of one rank that had it all, of which ``own_s`` are
    done by every rank alike, however many there are."""

    whole_s: float
    own_s: float = 0.0

    def on(self, ranks: int) -> float:
        """Seconds of each of so many ranks."""
        return self.own_s + (self.whole_s - self.own_s) / ranks


@dataclass(frozen=True, slots=True)
class Skeleton:
    """``left_out``: the share of the time in collectives, in the nearest profile, that no kind stands for; ``why`` says
    of what."""

    kinds: tuple[Kind, ...]
    left_out: float
    why: str

    @property
    def calls(self) -> float:
        return sum(kind.calls for kind in self.kinds)


def computing_of(alone: Profile, pair: Profile, alike_s: float = 0.0) -> Computing:
    """What runs on one and on two ranks, each on a core of its own, say of computing.

    Time outside collectives that two ranks do not halve is taken for what every rank does alike (that the cores slow
    one another down is in it as well), and at least ``alike_s``. Raises InputError for other numbers of ranks.
    """
    for profile, ranks in ((alone, 1), (pair, 2)):
        if profile.ranks != ranks:
            what = f"the computing is taken from a profile of {ranks}, and this one is of {profile.ranks} ranks"
            raise InputError(what, "Give the profiles of 1 and of 2 ranks")
    whole_s, half_s = (one.elapsed_s - one.collective_s / one.ranks for one in (alone, pair))
    return Computing(whole_s, min(max(2.0 * half_s - whole_s, alike_s), whole_s))


def make_skeleton(profiles: Sequence[Profile], nodes: int, ppn: int) -> Skeleton:
    """Of a job of ``nodes`` x ``ppn``. Raises InputError where nothing can be said of it (see ``extrapolate``)."""
    profile, why = extrapolate(profiles, nodes, ppn)
    # The share is told in words only: of the calls that are left out the result has nothing.
    said = _LEFT_OUT.search(why)
    lost = int(said[1]) / 100.0 if said else 0.0
    whole = [one for one in profile.calls if _can_replay(one, profile)]
    other = [one for one in profile.calls if not _can_replay(one, profile)]
    time_s = max(profile.collective_s, 1e-12)
    lost += (1.0 - lost) * sum(one.time_s for one in other) / time_s
    if other:
        why += "; not replayed: " + ", ".join(f"{one.collective} ({one.form}) on {one.communicator}" for one in other)
    kinds = tuple(kind for one in sorted(whole, key=lambda one: -one.rank_calls) for kind in _kinds(one))
    if not kinds:
        raise InputError("none of the calls can be replayed", "Give profiles of a program with blocking collectives")
    return Skeleton(kinds, lost, why)


def _can_replay(one: Calls, profile: Profile) -> bool:
    """Blocking calls of all ranks: what the simulated algorithms can do."""
    return bool(one.scenarios()) and one.communicator.size == profile.ranks and one.rank_calls > 0


def _kinds(one: Calls) -> Iterator[Kind]:
    """A size, or the two ends of a range of sizes, with as many calls of each as give the mean size."""
    scenarios = one.scenarios()
    # Both counts are those of the nearest profile; a root that stays is repeated in all calls but the first.
    moving = one.collective in ROOTED and 2 * one.root_repeated < one.root_zero
    if len(scenarios) == 1:
        yield Kind(scenarios[0], one.calls, moving)
        return
    least, most = (scenario.size_bytes for scenario in scenarios)
    upper = min(max((one.size_mean - least) / (most - least), 0.0), 1.0)
    for scenario, share in zip(scenarios, (1.0 - upper, upper), strict=True):
        if share > 0.0:
            yield Kind(scenario, one.calls * share, moving)


def order_of(calls: Sequence[float], scale: float = 1.0, steps: int = 0) -> list[tuple[int, float]]:
    """The calls of a replay: of which kind each is, and which share of the run's computing is before it.

    ``scale`` of ``calls``, at most 1, but one of each kind at least. With ``steps`` the run is so many steps that first
    compute and then make the calls, kind after kind as they stand; else calls and computing are spread evenly.
    """
    numbers = [max(1, round(scale * one)) for one in calls]
    if not steps:
        places = [(Fraction(2 * i + 1, 2 * number), kind) for kind, number in enumerate(numbers) for i in range(number)]
        return [(kind, 1.0 / sum(calls)) for _, kind in sorted(places)]
    found: list[tuple[int, float]] = []
    for step in range(steps):
        share = 1.0 / steps
        for kind, number in enumerate(numbers):
            for _ in range(number * (step + 1) // steps - number * step // steps):
                found.append((kind, share))
                share = 0.0
    return found
