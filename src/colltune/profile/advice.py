"""What a user is told of a profile beside its calls: whether tuning can pay, what page faults cost, which do not block.

An algorithm that allocates scratch memory in each call, or a program that receives into memory it has just allocated,
meets page faults where the heap gives memory back between the calls (docs/design/agent.md).

Of calls that do not block a profile has the number and the bytes. What the program sees of them is the time in
MPI_Wait, which is not in the profile. So they cannot be weighed against other calls, and `tune --profile` measures none
of them: which are tuned by name is said.
"""

from collections.abc import Collection

from colltune.core.heap import setting_text
from colltune.core.sample import NONBLOCKING
from colltune.core.units import format_count
from colltune.profile.application_profile import BLOCKING, Calls, Profile

# Published gains on single collectives reach from nothing to several times; half of the time is a generous bound.
HEADROOM = 0.5


def tunable_share(profile: Profile) -> float:
    """The share of the run's time over all ranks in collectives that tuning reaches."""
    return sum(calls.time_s for calls, _ in profile.tunable()) / max(profile.core_s, 1e-12)


def benefit_text(tunable: float) -> str:
    """A sentence for the user on what tuning can save at the very most where it reaches a share of ``tunable``."""
    bound = tunable * HEADROOM
    if bound < 0.005:
        return f"Tuning cannot pay: it could save {bound:.1%} of the run at the very most."
    return (
        f"Tuning can save at most {bound:.1%} of the run, if the right algorithms take half of the time; less"
        " where ranks wait for one that is late."
    )


# Page faults of a call on all ranks together from which it is named, and of how many calls.
_MANY_FAULTS, _FEW_CALLS = 4.0, 20


def faulting(profile: Profile) -> list[Calls]:
    """The calls that meet page faults again and again, those that take most time first."""
    return [
        calls
        for calls in profile.by_time()
        if calls.faults * calls.communicator.size >= _MANY_FAULTS and calls.calls >= _FEW_CALLS
    ]


def page_faults_text(profile: Profile) -> str:
    """Which collectives pay, how much, and what may remove it; empty where none does."""
    rows = faulting(profile)
    if not rows:
        return ""
    share = sum(calls.time_s for calls in rows) / max(profile.core_s, 1e-12)
    named = ", ".join(f"{calls.collective} of {calls.sizes} ({calls.faults:.3g} in each call)" for calls in rows)
    return (
        f"Page faults: {named}. These calls take {share:.1%} of the time. A heap that keeps memory may remove"
        f" them: {setting_text()}. Whole runs with it and without say whether it does, and it costs memory."
    )


def tunable_by_name(profile: Profile, known: Collection[str] = NONBLOCKING) -> dict[str, float]:
    """The calls of each non-blocking collective among ``known``, persistent ones included, most first."""
    counts: dict[str, float] = {}
    for call in profile.calls:
        name = f"i{call.collective}"
        if call.form != BLOCKING and name in NONBLOCKING and name in known and call.communicator.has_places:
            counts[name] = counts.get(name, 0.0) + call.calls
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def by_name_text(called: dict[str, float]) -> str:
    """What is called, and why it is tuned by itself."""
    counts = ", ".join(f"{name} ({format_count(round(calls), 'call')})" for name, calls in called.items())
    return f"{counts}: what the application sees of them is in MPI_Wait, which a profile does not time; tuned by name"
