"""The MPI_Alltoallv calls of a profiled application: which parts of the job, sizes and classes of fill they need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from colltune.alltoallv.lookup_table import COLLECTIVE, FEWEST_RANKS, Shape, fill_class
from colltune.core.errors import InputError
from colltune.profile.application_profile import BLOCKING, Calls, Profile

_COLLECTIVES = (COLLECTIVE, "alltoallw")
# A profile has each rank's own average block. The rules go by the busiest rank's, sent or received, which is larger.
_BUSIER = 2


@dataclass(frozen=True)
class Called:
    """``parts``: of the job. ``sizes``: average blocks in bytes. ``fills``: classes of FILLS. ``share``: of the run."""

    parts: tuple[Shape, ...]
    sizes: tuple[int, ...]
    fills: tuple[int, ...]
    share: float


def alltoallv_share(profile: Profile) -> float:
    """The share of the run's time over all ranks in calls of MPI_Alltoallv and MPI_Alltoallw that can be tuned."""
    return sum(one.time_s for one in _blocking(profile)) / max(profile.core_s, 1e-12)


def called_by(profile: Profile, whole: Shape, sizes: Sequence[int]) -> Called:
    """What ``profile`` calls that the job ``whole`` can form, of the ``sizes`` that are tuned.

    Raises InputError where there is none of it.
    """
    parts, found, densest = set(), set(), 0
    for one in _blocking(profile):
        where = one.communicator
        ppn = where.ppn if where.even else max(1, round(where.size / where.nodes))
        if where.nodes > whole.nodes or ppn > whole.ppn or where.nodes * ppn < FEWEST_RANKS:
            continue
        mine = [size for size in sizes if one.size_least <= size * 1.5 and size * 0.75 <= _BUSIER * one.size_most]
        if mine:
            parts.add(Shape(where.nodes, ppn))
            found |= set(mine)
            densest = max(densest, fill_class(_share_not_empty(one)))
    if not parts:
        raise InputError(_nothing(profile, whole, sizes), "Tune without --profile, or profile a run that makes them")
    return Called(tuple(sorted(parts)), tuple(sorted(found)), tuple(range(densest + 1)), alltoallv_share(profile))


def _blocking(profile: Profile) -> Iterator[Calls]:
    for one in profile.calls:
        where = one.communicator
        tunable = one.collective in _COLLECTIVES and one.form == BLOCKING and where.nodes and not where.remote_size
        if tunable and where.size >= FEWEST_RANKS and not _has_gaps(one):
            yield one


def _has_gaps(one: Calls) -> bool:
    """Whether most of the calls have data with gaps, which the rules leave to the library."""
    return 2 * one.gaps > one.rank_calls


def _share_not_empty(one: Calls) -> float:
    """Of the blocks for other ranks at most, where each rank's own is empty; no rank has fewer than the mean."""
    if one.blocks is None or not one.blocks.count:
        return 1.0
    ranks = one.communicator.size
    return min(1.0, (1.0 - one.blocks.sparsity) * ranks / (ranks - 1))


def _nothing(profile: Profile, whole: Shape, sizes: Sequence[int]) -> str:
    calls = [one for one in profile.calls if one.collective in _COLLECTIVES]
    others = [f"{form} calls" for form in sorted({one.form for one in calls} - {BLOCKING})]
    others += ["calls whose data have gaps"] if any(map(_has_gaps, calls)) else []
    besides = f"; its {' and '.join(others)} are the library's" if others else ""
    return (
        f"the profile has no blocking MPI_Alltoallv of {sizes[0]} to {sizes[-1]} B that a job of"
        f" {whole.nodes} x {whole.ppn} can form{besides}"
    )
