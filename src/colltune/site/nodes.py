"""Nodes that are slower than the others, as the jobs that ran on them tell."""

import json
import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from math import comb
from statistics import median
from typing import TypeVar

from colltune.core.garbage import without_collections
from colltune.site.index import Index, Job

_J = TypeVar("_J", bound=Hashable)

# A node is named if all jobs on it took so many times as long as the others, and there are as many that chance would
# not have picked out just these of all jobs.
_FACTOR, _FEWEST, _CHANCE = 1.15, 3, 0.01
# Scenarios in which a job must have been compared with others.
_SCENARIOS = 4


@without_collections()
def slow_nodes(index: Index, within: Collection[str] | None = None) -> list[str]:
    """A sentence for each slow node, the slowest first; ``within``: only of these nodes."""
    # By numbers, since a job is asked for at each of its times, and its name is long.
    number_of: dict[Job, int] = {}
    jobs = {name: number_of.setdefault(job, len(number_of)) for name, job in index.jobs().items()}
    times = ((place, jobs[entry], log_s) for place, entry, log_s in index.paces() if entry in jobs)
    return [
        f"node {host} is {factor:.2g} times slower in all {len(found)} jobs that ran on it"
        for host, factor, found in slow_among(paces_of(times), _Hosts([job[2] for job in number_of]))
        if within is None or host in within
    ]


class _Hosts(dict[int, frozenset[str]]):
    """The nodes of each job by its number, out of what is written of them as soon as somebody asks."""

    def __init__(self, written: Sequence[str]) -> None:
        super().__init__()
        self._written = written

    def __missing__(self, job: int) -> frozenset[str]:
        self[job] = found = frozenset(json.loads(self._written[job]))
        return found


def paces_of(times: Iterable[tuple[Hashable, _J, float]]) -> dict[_J, float]:
    """Of each job, the median over scenarios of log(its time / that of all), where enough can be compared.

    ``times``: (scenario, job, logarithm of the time).
    """
    at: defaultdict[Hashable, dict[_J, list[float]]] = defaultdict(dict)
    for scenario, job, log_s in times:
        at[scenario].setdefault(job, []).append(log_s)
    beyond: defaultdict[_J, list[float]] = defaultdict(list)
    for found in at.values():
        if len(found) > 1:
            each = {job: median(some) if len(some) > 1 else some[0] for job, some in found.items()}
            middle = median(each.values())
            for job, log_s in each.items():
                beyond[job].append(log_s - middle)
    return {job: median(some) for job, some in beyond.items() if len(some) >= _SCENARIOS}


def slow_among(paces: Mapping[_J, float], hosts: Mapping[_J, Collection[str]]) -> list[tuple[str, float, Sequence[_J]]]:
    """(node, how many times as slow, its jobs) of nodes all of whose jobs are slower than those of all others.

    ``paces``: log slowness of each job; ``hosts``: its nodes. Jobs that a slow node explains say nothing of others.
    """
    left = dict(paces)
    found: list[tuple[str, float, Sequence[_J]]] = []
    while (worst := _slowest(left, hosts)) is not None:
        found.append(worst)
        for job in worst[2]:
            del left[job]
    return found


def _slowest(paces: Mapping[_J, float], hosts: Mapping[_J, Collection[str]]) -> tuple[str, float, Sequence[_J]] | None:
    """The node whose jobs are furthest behind, of those that can be told from chance.

    All of its jobs are the slowest there are: then it is one of the nodes on which the first few of all ran.
    """
    ordered = sorted(paces, key=lambda job: -paces[job])
    if len(ordered) <= _FEWEST:
        return None
    best: tuple[float, str, list[_J]] | None = None
    for host in sorted(set.intersection(*(set(hosts[job]) for job in ordered[:_FEWEST]))):
        mine = [job for job in ordered if host in hosts[job]]
        count = len(mine)
        if count == len(ordered) or mine != ordered[:count]:
            continue
        if paces[ordered[count - 1]] <= paces[ordered[count]] or comb(len(ordered), count) * _CHANCE <= 1.0:
            continue
        behind = median(paces[job] for job in mine) - median(paces[job] for job in ordered[count:])
        if behind > math.log(_FACTOR) and (best is None or behind > best[0]):
            best = (behind, host, mine)
    return None if best is None else (best[1], math.exp(best[0]), best[2])
