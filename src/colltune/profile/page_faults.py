"""Collectives of a program that pay for page faults in each call, and the process setting that removes them.

An algorithm that allocates scratch memory in each call, or a program that receives into memory it has just allocated,
meets page faults where the heap gives memory back between the calls (docs/design/agent.md).
"""

from collections.abc import Iterable

from colltune.core.heap import setting_text
from colltune.core.units import format_size
from colltune.profile.application_profile import Calls, Profile

# Page faults of a call on all ranks together from which it is named, and of how many calls.
_MANY_FAULTS, _FEW_CALLS = 4.0, 20


def faulting(profile: Profile) -> list[Calls]:
    """The calls that meet page faults again and again, those that take most time first."""
    return [
        one
        for one in profile.by_time()
        if one.faults * one.communicator.size >= _MANY_FAULTS and one.calls >= _FEW_CALLS
    ]


def page_faults_text(profile: Profile) -> str:
    """Which collectives pay, how much, and what may remove it; empty where none does."""
    found = faulting(profile)
    if not found:
        return ""
    share = sum(one.time_s for one in found) / max(profile.core_s, 1e-12)
    return (
        f"Page faults: {_listed(found)}. These calls take {share:.1%} of the time. A heap that keeps memory may remove"
        f" them: {setting_text()}. `colltune tune --profile ... --check` compares whole runs with it and without, and"
        " says what it costs in memory."
    )


def _listed(calls: Iterable[Calls]) -> str:
    return ", ".join(f"{one.collective} of {_size(one)} ({one.faults:.3g} in each call)" for one in calls)


def _size(one: Calls) -> str:
    least, most = format_size(one.size_least), format_size(one.size_most)
    return least if least == most else f"{least} to {most}"
