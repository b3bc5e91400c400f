"""The algorithms of the catalogues of MPICH, Open MPI and the simulated clusters.

Their messages are compared with what crosses the wire, at 2 to 16 ranks, in tests/mpi/test_traffic.py.
"""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from colltune.traffic import exchanges as ex
from colltune.traffic import trees
from colltune.traffic.names import Plan, Planner, ScheduleSetting, first_match
from colltune.traffic.rounds import Round, Schedule, on_groups, on_ranks, round_of, schedule

_LARGE_CHUNK = 1 << 62
# MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE
_RING_PIECE = 32768


def _is_power(p: int) -> bool:
    return p & (p - 1) == 0


def _along(
    way: Callable[..., Schedule],
    make: Callable[[int, int], trees.Tree],
    k: int = 2,
    width: int = 0,
    segment: str = "",
    unsaid: int = _LARGE_CHUNK,
) -> Planner:
    """Down or up a tree. ``segment``: the parameter with its segment size, which is ``unsaid`` without it."""

    def plan(s: ScheduleSetting) -> Schedule:
        radix = s.number("k", k)
        cut = trees.segments_of(s.size_bytes, s.number(segment, unsaid)) if segment else 1
        others = way is trees.up or make is trees.knomial  # one of the radix stays with the parent
        return way(make(s.ranks, radix), width or (max(radix - 1, 1) if others else radix), cut)

    return Planner(plan, sized=bool(segment))


_down, _up = partial(_along, trees.down), partial(_along, trees.up)


def _rooted(way: Callable[[trees.Tree, float, int], Schedule], star: str) -> tuple[tuple[str, Planner], ...]:
    return (
        (r"binomial|nb", Planner(lambda s: way(trees.knomial(s.ranks), 1.0, 1))),
        (r"knomial", Planner(lambda s: way(trees.knomial(s.ranks, s.number("k", 2)), 1.0, s.number("k", 2) - 1))),
        (star, Planner(lambda s: way(trees.star(s.ranks), 1.0, s.ranks))),
    )


def _scatter_then(s: ScheduleSetting, *, ring: bool) -> Schedule:
    p = s.ranks
    first = trees.scattered(trees.knomial(p), 1.0 / p, 1)
    if ring or not _is_power(p):
        return first.then(ex.ring(p, 1.0 / p, p - 1))
    return first.then(ex.doubling_allgather(p, 1.0 / p))


def _gather_bcast(s: ScheduleSetting, make: Callable[[int], trees.Tree] = trees.knomial, width: int = 1) -> Schedule:
    tree = make(s.ranks)
    return trees.gathered(tree, 1.0, width).then(on_ranks(trees.down(tree, width), np.arange(s.ranks), s.ranks))


def _up_down(up: Planner, down: Planner) -> Planner:
    def plan(s: ScheduleSetting) -> Schedule | None:
        first, second = up(s), down(s)
        return first.then(second) if first and second else None

    return Planner(plan, sized=up.sized or down.sized)


def _cut_ring(p: int, share: float, size_bytes: int) -> Schedule:
    """MPICH's allgatherv cuts the blocks that go around."""
    cut = trees.segments_of(round(size_bytes * share), _RING_PIECE)
    return ex.ring(p, share / cut, (p - 1) * cut)


def _ring_allreduce(s: ScheduleSetting, *, cut: bool = False) -> Schedule:
    p = s.ranks
    around = _cut_ring(p, 1.0 / p, s.size_bytes) if cut else ex.ring(p, 1.0 / p, p - 1)
    return ex.ring(p, 1.0 / p, p - 1, reduces=True).then(around)


def _range_tree(s: ScheduleSetting) -> Schedule:
    k = s.number("k", 2)
    tree = trees.knomial_by_range(s.ranks, k)
    return trees.up(tree, k).then(trees.down(tree, k))


def _bruck(s: ScheduleSetting) -> Schedule:
    return ex.bruck_allgather(s.ranks, s.number("k", 2), 1.0)


def _doubling(s: ScheduleSetting) -> Schedule:
    return ex.doubling_allgather(s.ranks, 1.0) if _is_power(s.ranks) else _bruck(s)


def _neighbor(s: ScheduleSetting) -> Schedule:
    return ex.neighbor_exchange(s.ranks, 1.0) if s.ranks % 2 == 0 else ex.ring(s.ranks, 1.0, s.ranks - 1)


@lru_cache(maxsize=16)
def _shared(make: Callable[..., Schedule], *arguments: float) -> Schedule:
    """One object for all sizes at which a schedule is the same: it is described once (``describe``)."""
    return make(*arguments)


def _unblocked_allgather(s: ScheduleSetting) -> Schedule:
    """What MPICH's non-blocking allgather(v) chooses for itself."""
    total = s.size_bytes * s.ranks
    if _is_power(s.ranks) and total <= 524288:
        return _shared(ex.doubling_allgather, s.ranks, 1.0)
    if total <= 81920:
        return _shared(ex.bruck_allgather, s.ranks, 2, 1.0)
    return _shared(ex.ring, s.ranks, 1.0, s.ranks - 1)


def _unblocked_allreduce(s: ScheduleSetting) -> Schedule:
    p = s.ranks
    few = s.size_bytes <= 2048 or s.size_bytes // 4 < ex.power_below(p)
    return _shared(ex.doubling_allreduce if few else ex.rabenseifner, p)


def _unblocked_alltoall(s: ScheduleSetting) -> Schedule:
    if s.size_bytes <= 2048 and s.ranks > 8:
        return _shared(ex.bruck_alltoall, s.ranks, 2, 1.0)
    return _shared(ex.all_pairs, s.ranks, 1.0, 32 if s.size_bytes <= 32768 else 1)


def _unblocked_bcast(s: ScheduleSetting) -> Schedule:
    if s.size_bytes < 12288 or s.ranks < 8:
        return trees.down(trees.knomial(s.ranks), 1)
    p = s.ranks
    tree = trees.knomial(p)
    first = trees.scattered(tree, 1.0 / p, 1)
    # All but the root send their first child all that lies behind it, whether it is the child's or not.
    steps = []
    for step in first.steps:
        assert isinstance(step, Round)
        is_first = np.array([at > 0 and tree[at][0] == to for at, to in zip(step.source, step.target, strict=True)])
        behind = np.where(is_first, (p - step.target) / p, step.share)
        steps.append(Round(step.source, step.target, behind))
    whole = _scatter_then(s, ring=s.size_bytes >= 524288)
    return Schedule((*steps, *whole.steps[len(first.steps) :]), whole.copied, whole.memory)


def _unblocked_reduce(s: ScheduleSetting) -> Schedule:
    few = s.size_bytes <= 2048 or s.size_bytes // 4 < ex.power_below(s.ranks)
    return trees.up(trees.knomial(s.ranks), 1) if few else ex.halving_gather(s.ranks)


def _unblocked_scatter(s: ScheduleSetting, total: int) -> Schedule:
    return _shared(ex.halving_scatter if total < 524288 else ex.pairwise_reduce, s.ranks, 1.0 / s.ranks)


def _reduce_and_scatter(s: ScheduleSetting) -> Schedule:
    """Open MPI's default reduce, here a binomial one, and a linear scatter."""
    p = s.ranks
    first = trees.up(trees.by_level(p, 2), 1)
    return first.then(trees.scattered(trees.star(p), 1.0 / p, p))


def _tree_and_scatter(s: ScheduleSetting) -> Schedule:
    tree = trees.knomial(s.ranks)
    return trees.up(tree, 1).then(trees.scattered(tree, 1.0 / s.ranks, 1))


def _in_order(s: ScheduleSetting) -> Schedule:
    p = s.ranks
    cut = trees.segments_of(s.size_bytes, s.number("segment_size", 0))
    plan = trees.up(trees.in_order(p), 2, cut, root=p - 1)
    return plan.then(schedule(iter([round_of([p - 1], [0], 1.0)]))) if p > 1 else plan


def _two_level(between: Plan, reduce: bool, bcast: bool) -> Planner:
    """A reduction up every node's tree, ``between`` the first ranks, a broadcast down every node's tree."""

    def plan(s: ScheduleSetting) -> Schedule | None:
        top, tree = between(ScheduleSetting(s.nodes, 1, s.size_bytes, s.parameters)), trees.knomial(s.ppn)
        if top is None:
            return None
        among = on_ranks(top, np.arange(0, s.ranks, s.ppn)) if s.nodes > 1 else Schedule(())
        if s.ppn < 2:
            return among
        before = on_groups(trees.up(tree, 1), s.ranks, s.ppn) if reduce else Schedule(())
        return before.then(among).then(on_groups(trees.down(tree, 1), s.ranks, s.ppn) if bcast else Schedule(()))

    return Planner(plan, sized=True)


# What is not as in COMMON.
MPICH: "Table" = {
    "allgatherv": ((r"ring", Planner(lambda s: _cut_ring(s.ranks, 1.0, s.size_bytes), sized=True)),),
    "allreduce": ((r"ring", Planner(lambda s: _ring_allreduce(s, cut=True), sized=True)),),
}


def _composed(collective: str, reduce: bool, bcast: bool) -> Planner:
    """MPICH's compositions with an algorithm between the nodes; inside a node, shared memory or a tree."""

    def plan(s: ScheduleSetting, below: str = "") -> Schedule | None:
        find = first_match((MPICH, COMMON), collective, below)
        return _two_level(find, reduce, bcast)(s) if find is not None else None

    return Planner(plan, sized=True)


_COMPOSED = r"(?:alpha|beta|delta)(?:\.mpir)?\+(?P<below>.+)"
_SIMULATED_SHARE = 65536


def _top_bcast(s: ScheduleSetting) -> Schedule:
    return trees.down(trees.knomial(s.ranks), 1) if s.size_bytes < _SIMULATED_SHARE else _scatter_then(s, ring=False)


def _top_reduce(s: ScheduleSetting) -> Schedule:
    return trees.up(trees.knomial(s.ranks), 1) if s.size_bytes < 16384 else ex.halving_gather(s.ranks)


Table = dict[str, tuple[tuple[str, Planner], ...]]

_ALLGATHER = (
    (r"(?:k_)?brucks?", Planner(_bruck)),
    (r"(?:recursive_)?doubling", Planner(_doubling)),
    (r"ring", Planner(lambda s: ex.ring(s.ranks, 1.0, s.ranks - 1))),
    (r"nb", Planner(_unblocked_allgather, sized=True)),
    (r"neighbor(?:_exchange)?", Planner(_neighbor)),
    (r"sparbit", Planner(lambda s: ex.sparbit(s.ranks, 1.0))),
    (r"(?:basic_)?linear", Planner(lambda s: _gather_bcast(s, trees.star, s.ranks))),
    (r"gather_bcast", Planner(_gather_bcast)),
    (r"two_proc", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, 1))),
)

COMMON: Table = {
    "allgather": _ALLGATHER,
    "allgatherv": _ALLGATHER,
    "allreduce": (
        (r"(?:recursive_)?doubling", Planner(lambda s: ex.doubling_allreduce(s.ranks))),
        (r"rabenseifner|reduce_scatter_allgather", Planner(lambda s: ex.rabenseifner(s.ranks))),
        (r"ring", Planner(_ring_allreduce)),
        (r"nb", Planner(_unblocked_allreduce, sized=True)),
        (r"tree", Planner(_range_tree)),
        (r"recexch", Planner(lambda s: ex.exchange_allreduce(s.ranks, s.number("k", 2)))),
        (r"k_reduce_scatter_allgather", Planner(lambda s: ex.exchange_scatter_gather(s.ranks, s.number("k", 2)))),
        (r"recursive_multiplying", Planner(lambda s: ex.recursive_multiplying(s.ranks, s.number("k", 2)))),
        (r"(?:basic_)?linear", _up_down(_up(trees.star, width=1 << 30), _down(trees.star, width=1 << 30))),
        (r"reduce_bcast", _up_down(_up(trees.knomial), _down(trees.knomial))),
        (r"nonoverlapping|non_overlapping", _up_down(_up(trees.by_level), _down(trees.by_level))),
        (r"two_level_doubling", _two_level(lambda s: ex.doubling_allreduce(s.ranks), reduce=True, bcast=True)),
        (r"two_level_rabenseifner", _two_level(lambda s: ex.rabenseifner(s.ranks), reduce=True, bcast=True)),
        (_COMPOSED, _composed("allreduce", reduce=True, bcast=True)),
    ),
    "alltoall": (
        (r"(?:k_|modified_)?brucks?", Planner(lambda s: ex.bruck_alltoall(s.ranks, s.number("k", 2), 1.0))),
        (r"pairwise(?:_\w+)?|two_proc", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, 1))),
        (r"scattered", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, 32))),
        (r"nb", Planner(_unblocked_alltoall, sized=True)),
        (r"(?:basic_)?linear", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, s.ranks))),
        (r"linear_sync", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, s.number("max_requests", 0) or s.ranks))),
        (r"batched", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, s.number("k", 4)))),
    ),
    "barrier": (
        (r"k_dissemination|dissemination|bruck|nb", Planner(lambda s: ex.dissemination(s.ranks, s.number("k", 2)))),
        (r"recursive_doubling|doubling", Planner(lambda s: ex.tree_of_doubling(s.ranks))),
        (r"linear", _up_down(_up(trees.star, width=1 << 30), _down(trees.star, width=1 << 30))),
        (r"double_ring", Planner(lambda s: ex.double_ring(s.ranks))),
        (r"tree", _up_down(_up(trees.knomial), _down(trees.knomial))),
        (r"two_proc", Planner(lambda s: ex.all_pairs(s.ranks, 1.0, 1))),
        (_COMPOSED, _composed("barrier", reduce=True, bcast=True)),
    ),
    "bcast": (
        (r"binomial|knomial", _down(trees.knomial)),
        (r"scatter_recursive_doubling_allgather|scatter_doubling", Planner(lambda s: _scatter_then(s, ring=False))),
        (r"scatter_ring_allgather|scatter_ring", Planner(lambda s: _scatter_then(s, ring=True))),
        (r"nb", Planner(_unblocked_bcast, sized=True)),
        (r"tree", _down(trees.kary)),
        (r"pipelined_tree", _down(trees.kary, segment="chunk_size", unsaid=8192)),
        (r"(?:basic_)?linear", _down(trees.star, width=1 << 30)),
        (r"binary", _down(trees.kary, 2, segment="segment")),
        (r"chain", _down(trees.kary, 1, 1, segment="segment")),
        (r"binary_tree", _down(trees.by_level, 2)),
        (r"pipeline", _down(trees.kary, 1, 1)),
        (r"two_level", _two_level(_top_bcast, reduce=False, bcast=True)),
        (_COMPOSED, _composed("bcast", reduce=False, bcast=True)),
    ),
    "gather": _rooted(trees.gathered, r"(?:basic_)?linear|gatherv"),
    "reduce": (
        (r"binomial|knomial", _up(trees.knomial)),
        (r"reduce_scatter_gather|halving_gather", Planner(lambda s: ex.halving_gather(s.ranks))),
        (r"nb", Planner(_unblocked_reduce, sized=True)),
        (r"linear", _up(trees.star, width=1 << 30)),
        (r"in_order_binary", Planner(_in_order, sized=True)),
        (r"binary", _up(trees.kary, 2, segment="segment")),
        (r"chain", _up(trees.kary, 1, 1, segment="segment")),
        (r"two_level", _two_level(_top_reduce, reduce=True, bcast=False)),
        (_COMPOSED, _composed("reduce", reduce=True, bcast=False)),
    ),
    "reduce_scatter": (
        (r"pairwise", Planner(lambda s: ex.pairwise_reduce(s.ranks, 1.0 / s.ranks))),
        (r"recursive_doubling", Planner(lambda s: ex.doubling_scatter(s.ranks, 1.0 / s.ranks))),
        (r"(?:recursive_)?halving", Planner(lambda s: ex.halving_scatter(s.ranks, 1.0 / s.ranks))),
        (r"nb", Planner(lambda s: _unblocked_scatter(s, s.size_bytes), sized=True)),
        (r"non_?overlapping", Planner(_reduce_and_scatter)),
        (r"basic_linear|reduce_scatter_tree", Planner(_tree_and_scatter)),
        (r"butterfly", Planner(lambda s: ex.butterfly(s.ranks, 1.0 / s.ranks, mirrored=True))),
        (r"ring", Planner(lambda s: ex.ring(s.ranks, 1.0 / s.ranks, s.ranks - 1, reduces=True))),
    ),
    "scatter": _rooted(trees.scattered, r"(?:basic_)?linear|linear_nb|scatterv"),
}
COMMON["scan"] = COMMON["exscan"] = (
    (r"recursive_doubling|nb", Planner(lambda s: ex.doubling_scan(s.ranks))),
    (r"linear", _down(trees.kary, 1, 1)),
)
COMMON["reduce_scatter_block"] = (
    (r"nb", Planner(lambda s: _unblocked_scatter(s, s.size_bytes // 4), sized=True)),
    *COMMON["reduce_scatter"],
)
