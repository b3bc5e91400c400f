"""The profile of a job that was not run yet, from profiles of one program at other numbers of ranks.

The sizes of an application's calls follow its number of ranks by few laws: blocks of what is shared out get shorter,
what each rank holds stays (Tianhe-2, 2020, table III). What follows one law in all profiles is extrapolated. What
follows none, or several that say different things of the job, is left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import log, log2
from typing import NamedTuple

from colltune.core.errors import InputError
from colltune.profile.application_profile import Calls, Communicator, Profile

# Powers of the number of ranks; 0.0: the same on all, None: its logarithm.
_LAWS = (0.0, 1.0, -1.0, -2.0, 0.5, -0.5, None)
_ELEMENT_BYTES, _CLOSE = 8.0, 0.03  # blocks are cut to whole elements; a few percent are no other law
_MOST_KINDS, _MOST_TOLD = 1000, 12  # of calls: in a profile, so that comparing them ends soon, and in a message
_NO_LAW = "its size follows no law"
_DO = "Give profiles of one program, each at another number of ranks"
_Shape = tuple[int, int]  # nodes, ranks per node


class _Chain(NamedTuple):
    """Calls of which one law says that they are the same in each profile (``exact``: to the byte), and what follows for
    the job: their sizes, how many are ``made``, and on which communicator; None: not known."""

    calls: list[Calls]
    exact: bool
    sizes: list[float]
    made: float | None
    where: Communicator | None


def extrapolate(profiles: Sequence[Profile], nodes: int, ppn: int) -> tuple[Profile, str]:
    """What ``profiles`` say of a job of ``nodes`` x ``ppn``, and in words what is left out, and why; of one profile, or
    where one is of this job, that profile, and "".

    The times are those of the nearest profile, call by call. Raises InputError for profiles that do not go together,
    and where no call follows a law.
    """
    if len(profiles) == 1:
        return profiles[0], ""
    known, ranks = sorted(profiles, key=lambda profile: profile.ranks), nodes * ppn
    _require_alike(known)
    near = min(known, key=lambda profile: abs(log(profile.ranks / ranks)))
    if (near.ranks, near.shape) == (ranks, (nodes, ppn)):
        return near, ""
    kinds = sorted({(call.collective, call.form, call.op) for profile in known for call in profile.calls})
    chains = [chain for kind in kinds for chain in _explained(known, kind, (nodes, ppn))]
    at = known.index(near)
    calls = tuple(_calls(chain, chain.calls[at]) for chain, obstacle in chains if not obstacle)
    obstacles = {id(chain.calls[at]): obstacle for chain, obstacle in chains}
    out = [(call, obstacle) for call in near.by_time() if (obstacle := obstacles.get(id(call), _NO_LAW))]
    if not calls:
        what = f"no call follows one law from {known[0].ranks} to {known[-1].ranks} ranks, as far as it is certain"
        raise InputError(what, f"Give a profile of {ranks} ranks")
    seen = tuple((where, 1.0) for where in sorted({call.communicator for call in calls}))
    lost = sum(call.time_s for call, _ in out) / max(near.collective_s, 1e-12)
    told = (f"{c.collective} of {c.sizes} on {c.communicator} ranks ({obstacle})" for c, obstacle in out[:_MOST_TOLD])
    named = ": " * bool(out) + "; ".join(told)
    text = f"{len(calls)} kinds of calls extrapolated to {ranks} ranks, {len(out)} left out"
    text += f", {lost:.0%} of the time in collectives of {near.ranks} ranks{named}"
    return replace(near, calls=calls, communicators=seen, ranks=ranks, nodes=nodes, reporting=ranks), text


def _require_alike(profiles: Sequence[Profile]) -> None:
    def program(profile: Profile) -> tuple[bool, list[str]]:  # its command without numbers: those of ranks differ
        return profile.threads_multiple, [re.sub(r"\d+", "", word) for word in profile.command]

    for before, profile in pairwise(profiles):
        if profile.ranks == before.ranks:
            raise InputError(f"two of the profiles are of {profile.ranks} ranks", _DO)
        if program(profile) != program(before):
            named = [" ".join(each.command) + each.threads_multiple * " (threads)" for each in (before, profile)]
            raise InputError(f"the profiles are of {named[0]!r} and of {named[1]!r}", _DO)
    for profile in profiles:
        if profile.ended or len(profile.calls) > _MOST_KINDS or profile.ranks < 2:
            what = f"was ended by {profile.ended}" if profile.ended else f"has {len(profile.calls)} kinds of calls"
            raise InputError(f"the run of {profile.ranks} ranks {what}, from which nothing is extrapolated", _DO)


def _grown(law: float | None, ranks: int, before: int) -> float:
    return log2(ranks) / log2(before) if law is None else (ranks / before) ** law


def _explained(known: Sequence[Profile], kind: tuple[str, str, str], job: _Shape) -> Iterator[tuple[_Chain, str]]:
    """The calls of a ``kind`` that follow a law, with what speaks against extrapolating them, or "".

    The law that explains most calls is believed first: 1 and 2 KiB that become 512 B and 1 KiB on twice the ranks have
    halved, and there is no call of 1 KiB that stayed.
    """
    left = [[call for call in profile.calls if (call.collective, call.form, call.op) == kind] for profile in known]
    while True:
        parts = dict.fromkeys(part for call in left[0] for part in _parts(call.communicator, known[0].ranks))
        tried = [chains for part in parts for law in _LAWS if (chains := _follow(known, left, part, law, job))]
        if not tried:
            return
        weights = [(len(chains), sum(chain.exact for chain in chains)) for chains in tried]
        best = [chains for chains, weight in zip(tried, weights, strict=True) if weight == max(weights)]
        for chain in best[0]:
            mine = {*map(id, chain.calls)}
            rivals = [rival for chains in best for rival in chains if mine & {*map(id, rival.calls)}]
            yield chain, _obstacle(chain, rivals)
            left = [[call for call in calls if id(call) not in mine] for calls in left]


def _obstacle(chain: _Chain, rivals: Sequence[_Chain]) -> str:
    if chain.where is None or chain.made is None:
        return "where its ranks would lie is not known" if chain.where is None else "how often is not known"
    if all(rival.where == chain.where and max(map(_apart, rival.sizes, chain.sizes)) < _CLOSE for rival in rivals):
        return ""
    return "its size follows several laws, which one more profile may tell apart"


def _apart(first: float, second: float) -> float:
    return abs(first - second) / max(first, second, 1e-9)


def _parts(where: Communicator, ranks: int) -> list[int | Fraction]:
    """What a communicator may be in a job of so many ranks: all of it, else a number or a share."""
    if not where.has_places:
        return []
    return [Fraction(1)] if where.size == ranks else [where.size, Fraction(where.size, ranks)]


def _follow(
    known: Sequence[Profile], left: Sequence[Sequence[Calls]], part: int | Fraction, law: float | None, job: _Shape
) -> list[_Chain]:
    """The calls on that part of the job whose sizes follow ``law``, each with one call of every profile."""
    ranks, whole, numbers = [profile.ranks for profile in known], job[0] * job[1], []
    pools = [[c for c in some if part in _parts(c.communicator, p)] for some, p in zip(left, ranks, strict=True)]
    for first in pools[0]:
        calls, off = [first], 0.0
        for pool, now in zip(pools[1:], ranks[1:], strict=True):
            least, most = (size * _grown(law, now, ranks[0]) for size in (first.size_least, first.size_most))
            offs = [max(abs(call.size_least - least), abs(call.size_most - most)) for call in pool]
            if offs and min(offs) < max(_ELEMENT_BYTES, _CLOSE * least):
                off = max(off, min(offs))
                calls.append(pool.pop(offs.index(min(offs))))
        if len(calls) == len(pools):
            last = calls[-1]
            sizes = [size * _grown(law, whole, ranks[-1]) for size in (last.size_least, last.size_most)]
            where = _place(part, [call.communicator for call in calls], known, job)
            numbers.append(_Chain(calls, off < 1e-6, sizes, _number([c.calls for c in calls], ranks, whole), where))
    return numbers


def _number(values: Sequence[float], ranks: Sequence[int], whole: int) -> float | None:
    """What the laws that ``values`` follow say of a job of ``whole`` ranks; None: nothing, or several things."""
    grown = [[values[-1] * _grown(law, rank, ranks[-1]) for rank in (*ranks, whole)] for law in _LAWS]
    fits = [(max(map(_apart, values, by_law)), by_law[-1]) for by_law in grown]
    close = [value for off, value in fits if off < 1e-9] or [value for off, value in fits if off < _CLOSE]
    return close[0] if close and _apart(max(close), min(close)) < _CLOSE else None


def _place(
    part: int | Fraction, seen: Sequence[Communicator], known: Sequence[Profile], job: _Shape
) -> Communicator | None:
    """The communicator of the job that is the same ``part`` of it as ``seen`` of the profiles; None: not known."""
    nodes, ppn = job
    if part == 1:
        return Communicator(nodes * ppn, nodes, ppn)
    size, per_node = part * nodes * ppn if isinstance(part, Fraction) else Fraction(part), {where.ppn for where in seen}
    if nodes == 1 and all(profile.nodes == 1 for profile in known):
        per_node = {int(size)}
    elif any(where.shape[1] != ppn for where in known) or not all(where.even for where in seen) or len(per_node) > 1:
        return None
    count = size / (each := per_node.pop()) if size >= 2 else Fraction(0)
    return Communicator(int(size), int(count), each) if count.denominator == 1 and 0 < count <= nodes else None


def _calls(chain: _Chain, near: Calls) -> Calls:
    """The calls in the job: those of the nearest profile, as many and as long as the laws say."""
    where, made = chain.where or near.communicator, chain.made or 0.0
    more = made * where.size / near.rank_calls if near.rank_calls else where.size / near.communicator.size
    longer = chain.sizes[1] / max(near.size_most, 1)
    return replace(
        near, communicator=where, rank_calls=round(made * where.size), time_s=near.time_s * more,
        blocks=None, gaps=round(near.gaps * more),
        own_bytes=round(near.own_bytes * more * longer), size_mean=near.size_mean * longer,
        size_least=round(chain.sizes[0]), size_most=round(chain.sizes[1]),
    )  # fmt: skip
