"""Cells of the look-up table: which patterns share one, and which sizes share a setting.

A cell is what the ranks of a call can know of it together: the busiest rank's average block, and the share of blocks
that are not empty, of the rank that has fewest. Many patterns look alike by these; a rule must fit all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log
from typing import TypeVar

from colltune.alltoallv.table import FILLS

_UNEVEN = ("skewed", "power")
_SWITCH = 0.05  # log time: what another setting at the next size has to bring at least

Key = TypeVar("Key")


def fill_class(share: float) -> int:
    """The class of FILLS of a share of blocks that are not empty, as native/alltoallv/table.h has it."""
    return next(at for at, most in enumerate(FILLS) if share <= most)


def patterns(fill: int, ranks: int) -> list[tuple[str, int]]:
    """Distributions, each with the peers of a rank, that look alike at one average block; the first is the usual one.

    The others are what forwarding gains least from: as few messages as the class allows, and few ranks that have much.
    None where no number of peers among ``ranks`` is of the class.
    """
    peers = [count for count in range(1, ranks) if fill_class(count / (ranks - 1)) == fill]
    if not peers:
        return []
    fewest, most = peers[0], peers[-1]
    all_peers = 0 if most == ranks - 1 else most
    few = all_peers if fewest == most else fewest
    found = [("uniform", all_peers), ("uniform", few), *((name, few) for name in _UNEVEN)]
    return list(dict.fromkeys(found))


def smooth(times_s: Mapping[int, Mapping[Key, float]]) -> dict[int, Key]:
    """For each size a setting of the least time over all sizes, where a change between neighbours has its price.

    A program's blocks are seldom of one size; each change of the setting comes a call late.
    """
    sizes = sorted(times_s)
    costs: dict[Key, float] = {}
    chains: dict[Key, list[Key]] = {}
    for size in sizes:
        least = min(times_s[size].values())
        before = min(costs, key=lambda key: costs[key]) if costs else None
        now: dict[Key, float] = {}
        via: dict[Key, list[Key]] = {}
        for key, time_s in times_s[size].items():
            own = log(time_s / least)
            stay, switch = costs.get(key, inf), (costs[before] + _SWITCH if before is not None else 0.0)
            now[key] = own + min(stay, switch)
            came = chains.get(key, []) if stay <= switch else chains[before] if before is not None else []
            via[key] = [*came, key]
        costs, chains = now, via
    if not costs:
        return {}
    return dict(zip(sizes, chains[min(costs, key=lambda key: costs[key])], strict=True))


def runs(chosen: Mapping[int, Key]) -> list[list[int]]:
    """Neighbouring sizes, each twice the one before, with one setting."""
    found: list[list[int]] = []
    for size in sorted(chosen):
        last: Sequence[int] = found[-1] if found else ()
        if last and size == 2 * last[-1] and chosen[size] == chosen[last[-1]]:
            found[-1].append(size)
        else:
            found.append([size])
    return found
