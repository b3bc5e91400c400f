"""The traffic of a choice at a scenario: sums over the rounds of its schedule.

LogGP's terms (Alexandrov et al. 1995) are read off these sums: latency goes with rounds, overhead and gap with
messages, the gap per byte with bytes, for the busiest rank and for the link of the busiest node; Hockney's model (1994)
is the special case of one message at a time. Ranks are placed on the nodes in blocks.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Choice, Scenario
from colltune.traffic.catalogued import COMMON, OF_LIBRARY
from colltune.traffic.names import Planner, ScheduleSetting, first_match
from colltune.traffic.recorded_algorithms import RECORDED
from colltune.traffic.rounds import AllPairs, Round, Schedule


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one call does. Messages and rounds are counts, ``*_bytes`` bytes; sums over the rounds.

    ``network_rounds``, ``local_rounds``: rounds in which some message does and none does cross between nodes.
    ``rank_*``: of the busiest rank in each round, sent or received, ``network`` those between nodes. ``node_*``:
    between the busiest node and the others, ``local_bytes`` within it. ``far_bytes``: ``rank_network_bytes`` times the
    distance in nodes over half the nodes. ``burst``: the most messages that leave a node in one round, ``burst_rank``
    a rank. ``largest``: bytes of the largest message. ``reduced_bytes``, ``copied_bytes``, ``memory_bytes``: of the
    busiest rank.
    ``all_messages``, ``all_bytes``: of all ranks together.
    """

    network_rounds: float
    local_rounds: float
    rank_messages: float
    rank_network_messages: float
    rank_bytes: float
    rank_network_bytes: float
    node_messages: float
    node_bytes: float
    local_bytes: float
    far_bytes: float
    burst: float
    burst_rank: float
    largest: float
    reduced_bytes: float
    copied_bytes: float
    memory_bytes: float
    all_messages: float
    all_bytes: float


_COUNTS = frozenset({"network_rounds", "local_rounds", "rank_messages", "rank_network_messages", "node_messages"})
_COUNTS |= {"burst", "burst_rank", "all_messages"}


@lru_cache(maxsize=10_000)
def _planner(collective: str, algorithm: str, library: str = "") -> Planner | None:
    """The planner of a name; None where nobody described it."""
    return first_match((OF_LIBRARY.get(library, {}), COMMON, RECORDED), collective, algorithm)


def known(collective: str, choice: Choice, library: str = "") -> bool:
    """Whether the choice has a description."""
    return _planner(collective, choice.algorithm, library) is not None


def describe(scenario: Scenario, choice: Choice, library: str = "") -> Traffic | None:
    """What ``choice`` sends at ``scenario``; None for an algorithm that nobody described, or that cannot run there.

    ``library``: "mpich", "openmpi" or "", for names that mean different messages in different libraries.
    """
    find = _planner(scenario.collective, choice.algorithm, library)
    # Most schedules are the same for all sizes: those that are not say so by ``Planner.sized``.
    plan = None if find is None else _sums(find, find.kept(_setting(scenario, choice)))
    if plan is None:
        return None
    size = float(scenario.size_bytes)
    return Traffic(**{name: value if name in _COUNTS else value * size for name, value in plan})


def schedule_of(scenario: Scenario, choice: Choice, library: str = "") -> Schedule | None:
    """The rounds themselves."""
    find = _planner(scenario.collective, choice.algorithm, library)
    return find(_setting(scenario, choice)) if find is not None else None


def _setting(scenario: Scenario, choice: Choice) -> ScheduleSetting:
    return ScheduleSetting(scenario.nodes, scenario.ppn, scenario.size_bytes, choice.parameters)


# By the planner, for several names may stand for one.
@lru_cache(maxsize=20_000)
def _sums(find: Planner, setting: ScheduleSetting) -> tuple[tuple[str, float], ...] | None:
    plan = find(setting)
    return None if plan is None else _of_schedule(plan, setting.nodes, setting.ppn)


# Few: of one shape at several sizes. A schedule of many ranks is large.
@lru_cache(maxsize=16)
def _of_schedule(plan: Schedule, nodes: int, ppn: int) -> tuple[tuple[str, float], ...]:
    total = dict.fromkeys(Traffic.__slots__, 0.0)
    for step in plan.steps:
        part = _of_pairs(step, nodes, ppn) if isinstance(step, AllPairs) else _of_round(step, nodes, ppn)
        for name, value in part.items():
            total[name] = max(total[name], value) if name in ("burst", "burst_rank", "largest") else total[name] + value
    total["copied_bytes"] += plan.copied
    total["memory_bytes"] += plan.memory
    return tuple(total.items())


def _busiest(source: NDArray[Any], target: NDArray[Any]) -> float:
    return float(max(source.max(initial=0.0), target.max(initial=0.0)))


def _of_round(step: Round, nodes: int, ppn: int) -> dict[str, float]:
    p, times, share = nodes * ppn, step.times, step.share
    source_node, target_node = step.source // ppn, step.target // ppn
    away = source_node != target_node
    pieces = np.broadcast_to(np.asarray(step.pieces, dtype=float), share.shape)
    crosses, net = away * pieces, away * share
    hops = np.abs(source_node - target_node)
    hops = np.minimum(hops, nodes - hops) / max(nodes / 2.0, 1.0)
    leaving = np.bincount(source_node, crosses, nodes)
    out_messages = np.bincount(step.source, pieces, p)
    received = np.bincount(step.target, share, p)
    return {
        "network_rounds": times * step.depth * float(away.any()),
        "local_rounds": times * step.depth * float(not away.any()),
        "rank_messages": times * _busiest(out_messages, np.bincount(step.target, pieces, p)),
        "rank_network_messages": times
        * _busiest(np.bincount(step.source, crosses, p), np.bincount(step.target, crosses, p)),
        "rank_bytes": times * _busiest(np.bincount(step.source, share, p), received),
        "rank_network_bytes": times * _busiest(np.bincount(step.source, net, p), np.bincount(step.target, net, p)),
        "node_messages": times * _busiest(leaving, np.bincount(target_node, crosses, nodes)),
        "node_bytes": times * _busiest(np.bincount(source_node, net, nodes), np.bincount(target_node, net, nodes)),
        "local_bytes": times * float(np.bincount(source_node, share - net, nodes).max(initial=0.0)),
        "far_bytes": times * float(np.bincount(step.source, net * hops, p).max(initial=0.0)),
        "burst": float(leaving.max(initial=0.0)),
        "burst_rank": float(out_messages.max(initial=0.0)),
        "largest": float((share / pieces).max(initial=0.0)),
        "reduced_bytes": times * float(received.max(initial=0.0)) if step.reduces else 0.0,
        "all_messages": times * float(pieces.sum()),
        "all_bytes": times * float(share.sum()),
    }


def _of_pairs(step: AllPairs, nodes: int, ppn: int) -> dict[str, float]:
    groups, n = step.members.shape
    where = step.members // ppn
    inside = np.zeros((groups, nodes))
    np.add.at(inside, (np.arange(groups)[:, None], where), 1.0)
    away = n - inside  # (G, nodes): partners of a member on that node that are elsewhere
    leaving = (inside * away).sum(axis=0)
    far = float(np.where(inside > 0, away, 0.0).max())
    rounds = -(-(n - 1) // step.width)
    width = min(step.width, n - 1)
    busiest = float(leaving.max())
    return {
        "network_rounds": rounds * min(1.0, far / (n - 1)) if far else 0.0,
        "local_rounds": rounds * (1.0 - min(1.0, far / (n - 1))),
        "rank_messages": float(n - 1),
        "rank_network_messages": far,
        "rank_bytes": (n - 1) * step.share,
        "rank_network_bytes": far * step.share,
        "node_messages": busiest,
        "node_bytes": busiest * step.share,
        "local_bytes": float((inside * (inside - 1.0)).sum(axis=0).max()) * step.share,
        "far_bytes": far * step.share * 0.5,
        "burst": busiest * width / (n - 1),
        "burst_rank": float(width),
        "largest": step.share,
        "reduced_bytes": (n - 1) * step.share if step.reduces else 0.0,
        "all_messages": float(groups * n * (n - 1)),
        "all_bytes": groups * n * (n - 1) * step.share,
    }
