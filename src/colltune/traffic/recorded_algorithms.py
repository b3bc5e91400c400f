"""The algorithms of recorded tables, by the catalogue's descriptions where they are the same.

Names: PICO's (``_ompi``, ``_mpich`` for the library's own, ``_over`` for its own over point-to-point messages) and MPI
Advance's. What they send is known from the papers; no test compares it with a wire.
"""

import tomllib
from importlib import resources

import numpy as np

from colltune.traffic import exchanges as ex
from colltune.traffic import grouped, skewed, trees
from colltune.traffic.catalogued import COMMON, OF_LIBRARY, Table
from colltune.traffic.names import Planner, ScheduleSetting, first_match
from colltune.traffic.rounds import Schedule

_SEGMENT = 1 << 20
_GROUPED = r"(?P<kind>hierarchical|node_aware)_(?P<way>nonblocking|pairwise)"
_WAY = r"(?P<way>nonblocking|pairwise)"
_LEADERS = rf"(?P<kind>locality_aware|multileader_node_aware)_(?P<group>\d+)_procs_leader_alltoall_{_WAY}"


def _by_name(collective: str, name: str) -> Planner:
    library, _, own = name.rpartition(".")
    found = first_match((OF_LIBRARY.get(library, {}), COMMON), collective, own)
    if found is None:
        raise KeyError((collective, name))
    return found


def _grouped(s: ScheduleSetting, kind: str = "", way: str = "", group: str = "") -> Schedule | None:
    size = int(group) if group else s.number("procs_per_leader", s.ppn)
    if size < 1 or s.ppn % size:
        return None
    make = {
        "hierarchical": grouped.leaders_alltoall,
        "node_aware": grouped.node_aware_alltoall,
        "locality_aware": grouped.node_aware_alltoall,
        "multileader_node_aware": grouped.multileader_alltoall,
    }[kind]
    return make(s.nodes, s.ppn, size, at_once_=way == "nonblocking")


def _skewed_allgather(s: ScheduleSetting, way: str = "") -> Schedule:
    plan = skewed.allgather(s.ranks, 1.0)
    if "block_by_block" in way:
        return grouped.blockwise(plan, 1.0)
    if "2_blocks" in way:
        return _twice(plan)
    return _in_order(plan, way, s.ranks, 1.0)


def _skewed_scatter(s: ScheduleSetting, way: str = "") -> Schedule:
    plan = skewed.reduce_scatter(s.ranks, 1.0 / s.ranks)
    if "block_by_block" in way:
        return grouped.blockwise(plan, 1.0 / s.ranks)
    return _in_order(plan, way, s.ranks, 1.0 / s.ranks)


def _in_order(plan: Schedule, way: str, p: int, share: float) -> Schedule:
    if "permute" in way:
        return Schedule(plan.steps, plan.copied + p * share, p * share)
    return plan.then(skewed.sent_home(p, share)) if "send" in way else plan


def _twice(plan: Schedule) -> Schedule:
    """Every message in two parts, for blocks that are not next to each other."""
    return grouped.blockwise(plan, max(float(np.max(step.share)) for step in plan.steps) / 2)


def _skewed_allreduce(s: ScheduleSetting, way: str = "") -> Schedule:
    p = s.ranks
    first, second = skewed.reduce_scatter(p, 1.0 / p), skewed.allgather(p, 1.0 / p)
    if "block_by_block" in way:
        first, second = grouped.blockwise(first, 1.0 / p), grouped.blockwise(second, 1.0 / p)
    if "segment" in way:
        cut = trees.segments_of(s.size_bytes // 2, s.number("segment", _SEGMENT))
        first = skewed.in_segments(first, cut)
    return first.then(second)


def _segmented_ring(s: ScheduleSetting) -> Schedule:
    p = s.ranks
    cut = trees.segments_of(max(s.size_bytes // p, 1), s.number("segment", _SEGMENT))
    return ex.ring(p, 1.0 / p / cut, (p - 1) * cut, reduces=True).then(ex.ring(p, 1.0 / p, p - 1))


def _allgather_reduce(s: ScheduleSetting) -> Schedule:
    plan = ex.bruck_allgather(s.ranks, 2, 1.0)
    return Schedule(plan.steps, plan.copied + s.ranks, plan.memory)


_OWN: Table = {
    "allgather": (
        (r"bine_(?P<way>.*)", Planner(_skewed_allgather)),
        (r"sparbit.*", Planner(lambda s: skewed.sparbit(s.ranks, 1.0))),
    ),
    "allreduce": (
        (r"(?:bine|swing)_lat\w*", Planner(lambda s: skewed.whole(s.ranks))),
        (r"(?:bine|swing)_(?P<way>.*)", Planner(_skewed_allreduce, sized=True)),
        (r"ring_segmented_ompi", Planner(_segmented_ring, sized=True)),
        (r"allgather_reduce_ompi", Planner(_allgather_reduce)),
    ),
    "reduce_scatter": (
        (r"bine_(?P<way>.*)", Planner(_skewed_scatter)),
        (r"recursive_distance_doubling_\w+", Planner(lambda s: ex.butterfly(s.ranks, 1.0 / s.ranks, mirrored=True))),
    ),
    "alltoall": ((_LEADERS, Planner(_grouped)), (_GROUPED, Planner(_grouped))),
}
_NAMES = tomllib.loads(resources.files("colltune.traffic").joinpath("recorded_names.toml").read_text("utf-8"))
RECORDED: Table = {
    collective: (*_OWN.get(collective, ()), *((pattern, _by_name(collective, name)) for pattern, name in names.items()))
    for collective, names in _NAMES.items()
}
