"""The traffic of a choice at a scenario: sums over the rounds of its schedule.

LogGP's terms (Alexandrov et al. 1995) are read off these sums: latency goes with rounds, overhead and gap with
messages, the gap per byte with bytes, for the busiest rank and for the link of the busiest node; Hockney's model (1994)
is the special case of one message at a time. Ranks are placed on the nodes in blocks.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from colltune.core.sample import Choice, Scenario
from colltune.traffic.catalogued import COMMON, Table
from colltune.traffic.names import Parameters, Planner, ScheduleSetting, first_match
from colltune.traffic.rounds import AllPairs, Floats, Ranks, Round, Schedule

# What one call does: counts of messages and rounds, and bytes, summed over the rounds. ``network_rounds`` and
# ``local_rounds``: rounds in which some message does and none does cross between nodes. ``rank_*``: of the busiest rank
# in each round, sent or received, ``network`` those between nodes. ``node_*``: between the busiest node and the others,
# ``local_bytes`` within it. ``far_bytes``: ``rank_network_bytes`` times the distance in nodes over half the nodes.
# ``burst``: the most messages that leave a node in one round, ``burst_rank`` a rank. ``largest``: bytes of the largest
# message. ``reduced_bytes``, ``copied_bytes``, ``memory_bytes``: of the busiest rank. ``all_*``: of all ranks together.
_COUNTS = (
    "network_rounds", "local_rounds", "rank_messages", "rank_network_messages", "node_messages", "burst", "burst_rank",
    "all_messages",
)  # fmt: skip
COLUMNS = (
    "network_rounds", "local_rounds", "rank_messages", "rank_network_messages", "rank_bytes", "rank_network_bytes",
    "node_messages", "node_bytes", "local_bytes", "far_bytes", "burst", "burst_rank", "largest", "reduced_bytes",
    "copied_bytes", "memory_bytes", "all_messages", "all_bytes",
)  # fmt: skip
_PLACE = {name: place for place, name in enumerate(COLUMNS)}
_IN_BYTES = np.array([name not in _COUNTS for name in COLUMNS])
_GREATEST = np.array([name in ("burst", "burst_rank", "largest") for name in COLUMNS])
_MOST_RANKS = 16384
# Ranks times rounds that are summed at once.
_AT_ONCE = 1 << 17


_tables = [COMMON]


def describe_also(table: Table) -> None:
    """Adds names that no catalogue has: those of recorded tables (``colltune_study.training``)."""
    _tables.append(table)
    _planner.cache_clear()


@lru_cache(maxsize=10_000)
def _planner(collective: str, algorithm: str) -> Planner | None:
    """The planner of a name; None where nobody described it."""
    return first_match(_tables, collective, algorithm)


def traffic_of(pairs: Sequence[tuple[Scenario, Choice]]) -> Floats:
    """(n, len(COLUMNS)): what each choice sends at its scenario, in their order.

    NaN for an algorithm that nobody described, or that cannot run there, and on more ranks than there is time to go
    through.
    """
    rows: dict[tuple[Planner | None, int, int, int, Parameters], int] = {}
    own = []
    for scenario, choice in pairs:
        find = _planner(scenario.collective, choice.algorithm)
        # Most schedules are the same for all sizes: those that are not say so by ``Planner.sized``.
        size = scenario.size_bytes if find is not None and find.sized else 0
        own.append(rows.setdefault((find, scenario.nodes, scenario.ppn, size, choice.parameters), len(rows)))
    sums = np.array([_sums(*key) for key in rows]).reshape(-1, len(COLUMNS))
    sizes = np.array([float(scenario.size_bytes) for scenario, _ in pairs])
    return np.asarray(sums[own] * np.where(_IN_BYTES, sizes[:, None], 1.0))


# By the planner, for several names may stand for one.
@lru_cache(maxsize=20_000)
def _sums(find: Planner | None, nodes: int, ppn: int, size_bytes: int, parameters: Parameters) -> tuple[float, ...]:
    plan = None
    if find is not None and nodes * ppn <= _MOST_RANKS:
        plan = find(ScheduleSetting(nodes, ppn, size_bytes, parameters))
    return (float("nan"),) * len(COLUMNS) if plan is None else _of_schedule(plan, nodes, ppn)


# Few: of one shape at several sizes. A schedule of many ranks is large.
@lru_cache(maxsize=16)
def _of_schedule(plan: Schedule, nodes: int, ppn: int) -> tuple[float, ...]:
    rounds = [step for step in plan.steps if isinstance(step, Round)]
    most = max(1, _AT_ONCE // (nodes * ppn))
    parts = [_of_rounds(rounds[at : at + most], nodes, ppn) for at in range(0, len(rounds), most)]
    parts += [_of_pairs(step, nodes, ppn) for step in plan.steps if isinstance(step, AllPairs)]
    parts.append(_rows(1, {"copied_bytes": plan.copied, "memory_bytes": plan.memory}))
    steps = np.concatenate(parts)
    return tuple(np.where(_GREATEST, steps.max(axis=0), steps.sum(axis=0)).tolist())


def _rows(count: int, columns: Mapping[str, Floats | float]) -> Floats:
    """(``count``, len(COLUMNS)): ``columns`` by name, and 0 for the others."""
    rows = np.zeros((count, len(COLUMNS)))
    for name, values in columns.items():
        rows[:, _PLACE[name]] = values
    return rows


def _of_rounds(steps: Sequence[Round], nodes: int, ppn: int) -> Floats:
    """A row for each of k rounds."""
    k, p = len(steps), nodes * ppn
    number = np.repeat(np.arange(k), [len(step.source) for step in steps])
    source, target, share = (
        np.concatenate([getattr(s, name) for s in steps]) for name in ("source", "target", "share")
    )
    pieces = np.concatenate([np.full(step.share.shape, step.pieces, float) for step in steps])
    times = np.array([step.times for step in steps])
    away = source // ppn != target // ppn
    crosses, net = away * pieces, away * share
    hops = np.abs(source // ppn - target // ppn)
    hops = np.minimum(hops, nodes - hops) / max(nodes / 2.0, 1.0)

    def greatest(weight: Floats, at: Ranks, count: int = p) -> Floats:
        """(k,): of the busiest of ``count`` ranks or nodes in each round."""
        return np.asarray(np.bincount(number * count + at, weight, k * count).reshape(k, count).max(axis=1))

    def busiest(weight: Floats, of: int = 1) -> Floats:
        """Of what ``of`` ranks in a row send or receive."""
        ends = (source, target) if of == 1 else (source // of, target // of)
        return np.maximum(*(greatest(weight, at, p // of) for at in ends))

    crossing = np.bincount(number, away, k) > 0
    received = greatest(share, target)
    rounds = times * [step.depth for step in steps]
    return _rows(
        k,
        {
            "network_rounds": rounds * crossing,
            "local_rounds": rounds * ~crossing,
            "rank_messages": times * busiest(pieces),
            "rank_network_messages": times * busiest(crosses),
            "rank_bytes": times * np.maximum(greatest(share, source), received),
            "rank_network_bytes": times * busiest(net),
            "node_messages": times * busiest(crosses, ppn),
            "node_bytes": times * busiest(net, ppn),
            "local_bytes": times * greatest(share - net, source // ppn, nodes),
            "far_bytes": times * greatest(net * hops, source),
            "burst": greatest(crosses, source // ppn, nodes),
            "burst_rank": greatest(pieces, source),
            "largest": (share / pieces).max(),
            "reduced_bytes": times * received * [step.reduces for step in steps],
            "all_messages": times * np.bincount(number, pieces, k),
            "all_bytes": times * np.bincount(number, share, k),
        },
    )


def _of_pairs(step: AllPairs, nodes: int, ppn: int) -> Floats:
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
    return _rows(
        1,
        {
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
        },
    )
