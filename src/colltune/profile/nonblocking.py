"""Calls of an application that do not block: which of them are tuned by name, and which stay with the library.

A profile has the number and the bytes of these calls. What the program sees of them is the time in MPI_Wait, which is
not in the profile. So they cannot be weighed against other calls, and `tune --profile` measures none of them.
"""

from collections.abc import Collection

from colltune.core.sample import NONBLOCKING
from colltune.core.units import format_count
from colltune.profile.application_profile import BLOCKING, Calls, Profile

# Exchanges of irregular counts that neither colltune nor the selection files of the libraries reach.
_IRREGULAR = frozenset({"alltoallv", "alltoallw", "neighbor_alltoallv", "neighbor_alltoallw"})


def tunable_by_name(profile: Profile, known: Collection[str] = NONBLOCKING) -> dict[str, float]:
    """The calls of each non-blocking collective among ``known``, persistent ones included, most first."""
    found: dict[str, float] = {}
    for one in profile.calls:
        name = f"i{one.collective}"
        if one.form != BLOCKING and name in NONBLOCKING and name in known and _has_places(one):
            found[name] = found.get(name, 0.0) + one.calls
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def by_name_text(called: dict[str, float]) -> str:
    """What is called, and why it is tuned by itself; "" for nothing."""
    if not called:
        return ""
    counts = ", ".join(f"{name} ({format_count(round(calls), 'call')})" for name, calls in called.items())
    return f"{counts}: what the application sees of them is in MPI_Wait, which a profile does not time; tuned by name"


def left_text(profile: Profile) -> str:
    """Which irregular exchanges stay with the library, and why; "" for none."""
    found: dict[str, float] = {}
    for one in profile.calls:
        neighbours = one.collective.startswith("neighbor_")
        if one.collective in _IRREGULAR and (neighbours or one.form != BLOCKING):
            name = one.collective if one.form == BLOCKING else f"i{one.collective}"
            found[name] = found.get(name, 0.0) + one.calls
    if not found:
        return ""
    counts = ", ".join(f"{name} ({format_count(round(calls), 'call')})" for name, calls in sorted(found.items()))
    return f"{counts}: left to the library (docs/how-to/alltoallv.md says why)"


def _has_places(one: Calls) -> bool:
    where = one.communicator
    return where.remote_size == 0 and where.nodes > 0 and where.size > 1
