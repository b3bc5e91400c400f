"""Nodes that are slower than the others, as the jobs that ran on them tell."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import comb
from statistics import median

from colltune.core.scenario import Scenario
from colltune.site.index import Index

# A node is named if all jobs on it took so many times as long as the others, and there are as many that chance would
# not have picked out just these of all jobs.
_FACTOR, _FEWEST, _CHANCE = 1.15, 3, 0.01
# Scenarios in which a job must have been compared with others.
_SCENARIOS = 4


def slow_nodes(index: Index, within: Collection[str] | None = None) -> list[str]:
    """A sentence for each slow node, the slowest first; ``within``: only of these nodes."""
    hosts = {entry.name: frozenset(entry.hosts) for entry in index.entries}
    jobs = {entry.name: (entry.job or entry.name, entry.hosts) for entry in index.entries}
    found = slow_among(paces_of(index.paces()), hosts)
    return [
        f"node {host} is {factor:.2g} times slower in all {len({jobs[name] for name in entries})} jobs that ran on it"
        for host, factor, entries in found
        if within is None or host in within
    ]


def paces_of(times: Sequence[tuple[Scenario, str, float]]) -> dict[str, float]:
    """Of each entry, the median over scenarios of log(its time / that of all), where enough can be compared."""
    at: defaultdict[Scenario, dict[str, list[float]]] = defaultdict(dict)
    for scenario, entry, log_s in times:
        at[scenario].setdefault(entry, []).append(log_s)
    beyond: defaultdict[str, list[float]] = defaultdict(list)
    for found in at.values():
        if len(found) > 1:
            each = {entry: median(some) for entry, some in found.items()}
            middle = median(each.values())
            for entry, log_s in each.items():
                beyond[entry].append(log_s - middle)
    return {entry: median(some) for entry, some in beyond.items() if len(some) >= _SCENARIOS}


def slow_among(
    paces: Mapping[str, float], hosts: Mapping[str, Collection[str]]
) -> list[tuple[str, float, Sequence[str]]]:
    """(node, how many times as slow, its entries) of nodes all of whose jobs are slower than those of all others.

    ``paces``: log slowness of each entry; ``hosts``: its nodes. Jobs that a slow node explains say nothing of others.
    """
    left = dict(paces)
    found: list[tuple[str, float, Sequence[str]]] = []
    while True:
        best: tuple[float, str, list[str]] | None = None
        for host in sorted({host for entry in left for host in hosts.get(entry, ())}):
            mine = [entry for entry in left if host in hosts[entry]]
            others = [pace for entry, pace in left.items() if host not in hosts[entry]]
            if len(mine) < _FEWEST or not others:
                continue
            apart = min(left[entry] for entry in mine) - max(others)
            behind = median(left[entry] for entry in mine) - median(others)
            chance = 1.0 / comb(len(left), len(mine))
            if apart > 0.0 and behind > math.log(_FACTOR) and chance < _CHANCE and (best is None or behind > best[0]):
                best = (behind, host, mine)
        if best is None:
            return found
        found.append((best[1], math.exp(best[0]), best[2]))
        left = {entry: pace for entry, pace in left.items() if entry not in best[2]}
