"""The algorithms of recorded tables, by the catalogue's descriptions where they are the same.

Names: PICO's (``_ompi``, ``_mpich`` for the library's own, ``_over`` for its own over point-to-point messages) and MPI
Advance's. What they send is known from the papers; no test compares it with a wire.
"""

import tomllib
from functools import cache
from importlib import resources
from itertools import product

import numpy as np

from colltune.catalog import load
from colltune.core.sample import Choice, Scenario
from colltune.predict.cost import Kind, kind_of
from colltune.predict.model import LIKE
from colltune.traffic import exchanges as ex
from colltune.traffic import trees
from colltune.traffic.catalogued import COMMON, MPICH, Table
from colltune.traffic.names import Planner, ScheduleSetting, first_match
from colltune.traffic.rounds import Schedule
from colltune_study.simulated.simulated_catalogue import load_simulated
from colltune_study.training import recorded_exchanges as rex

_SEGMENT = 1 << 20
_GROUPED = r"(?P<kind>hierarchical|node_aware)_(?P<way>nonblocking|pairwise)"
_WAY = r"(?P<way>nonblocking|pairwise)"
_LEADERS = rf"(?P<kind>locality_aware|multileader_node_aware)_(?P<group>\d+)_procs_leader_alltoall_{_WAY}"


# What a name means in one library, where it is not what it means in most: no recorded table says its library.
OF_LIBRARY: dict[str, Table] = {
    "mpich": MPICH,
    "openmpi": {
        "allreduce": ((r"rabenseifner", Planner(lambda s: rex.rabenseifner_by_halves(s.ranks))),),
        "bcast": (
            (r"binomial", Planner(lambda s: trees.down(rex.doubling(s.ranks), 1))),
            (r"knomial", Planner(lambda s: _knomial(s, s.number("k", 4)))),
            (r"chain", Planner(lambda s: _chains(s, s.number("fanout", 4)))),
        ),
        "reduce": ((r"rabenseifner", Planner(lambda s: rex.rabenseifner_by_halves(s.ranks, to_root=True))),),
        "reduce_scatter_block": (
            (r"butterfly", Planner(lambda s: ex.butterfly(s.ranks, 1.0 / s.ranks, mirrored=False))),
        ),
    },
}


def _knomial(s: ScheduleSetting, radix: int) -> Schedule:
    return trees.down(trees.knomial(s.ranks, radix), max(radix - 1, 1))


def _chains(s: ScheduleSetting, fanout: int) -> Schedule:
    return trees.down(rex.chains(s.ranks, fanout), fanout)


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
        "hierarchical": rex.leaders_alltoall,
        "node_aware": rex.node_aware_alltoall,
        "locality_aware": rex.node_aware_alltoall,
        "multileader_node_aware": rex.multileader_alltoall,
    }[kind]
    return make(s.nodes, s.ppn, size, at_once_=way == "nonblocking")


def _skewed_allgather(s: ScheduleSetting, way: str = "") -> Schedule:
    plan = rex.allgather(s.ranks, 1.0)
    if "block_by_block" in way:
        return rex.blockwise(plan, 1.0)
    if "2_blocks" in way:
        return _twice(plan)
    return _in_order(plan, way, s.ranks, 1.0)


def _skewed_scatter(s: ScheduleSetting, way: str = "") -> Schedule:
    plan = rex.reduce_scatter(s.ranks, 1.0 / s.ranks)
    if "block_by_block" in way:
        return rex.blockwise(plan, 1.0 / s.ranks)
    return _in_order(plan, way, s.ranks, 1.0 / s.ranks)


def _in_order(plan: Schedule, way: str, p: int, share: float) -> Schedule:
    if "permute" in way:
        return Schedule(plan.steps, plan.copied + p * share, p * share)
    return plan.then(rex.sent_home(p, share)) if "send" in way else plan


def _twice(plan: Schedule) -> Schedule:
    """Every message in two parts, for blocks that are not next to each other."""
    return rex.blockwise(plan, max(float(np.max(step.share)) for step in plan.steps) / 2)


def _skewed_allreduce(s: ScheduleSetting, way: str = "") -> Schedule:
    p = s.ranks
    first, second = rex.reduce_scatter(p, 1.0 / p), rex.allgather(p, 1.0 / p)
    if "block_by_block" in way:
        first, second = rex.blockwise(first, 1.0 / p), rex.blockwise(second, 1.0 / p)
    if "segment" in way:
        cut = trees.segments_of(s.size_bytes // 2, s.number("segment", _SEGMENT))
        first = rex.in_segments(first, cut)
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
        (r"sparbit.*", Planner(lambda s: ex.sparbit(s.ranks, 1.0))),
    ),
    "allreduce": (
        (r"(?:bine|swing)_lat\w*", Planner(lambda s: rex.whole(s.ranks))),
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
_NAMES = tomllib.loads(resources.files("colltune_study.training").joinpath("recorded_names.toml").read_text("utf-8"))
RECORDED: Table = {
    collective: (*_OWN.get(collective, ()), *((pattern, _by_name(collective, name)) for pattern, name in names.items()))
    for collective, names in _NAMES.items()
}


def planner_of(collective: str, algorithm: str, library: str = "") -> Planner | None:
    """What a name stands for in ``library``, or in a recorded table; None where nobody described it."""
    return first_match((OF_LIBRARY.get(library, {}), COMMON, RECORDED), collective, algorithm)


def schedule_of(scenario: Scenario, choice: Choice, library: str = "") -> Schedule | None:
    """The rounds themselves."""
    find = planner_of(scenario.collective, choice.algorithm, library)
    return find(ScheduleSetting(scenario.nodes, scenario.ppn, scenario.size_bytes, choice.parameters)) if find else None


def catalogued(collective: str, choice: Choice) -> Choice:
    """A choice of a catalogue that sends what ``choice`` of a recorded table does; ``choice`` where there is none.

    The file of a model has these: colltune describes what its catalogues hold, and no name of a recorded table.
    """
    return _catalogued(collective).get(kind_of(collective, choice), choice)


@cache
def _catalogued(collective: str) -> dict[Kind, Choice]:
    names = (collective, *(name for name, like in LIKE.items() if like == collective))
    catalogues = (load("mpich", "5.0"), load("openmpi", "5.0"), load("intelmpi", "2021.17"), load_simulated())
    entries = [catalogue.entries[name] for catalogue in catalogues for name in names if name in catalogue.entries]
    kinds: dict[Kind, Choice] = {}
    for algorithm in (algorithm for entry in entries for algorithm in entry.algorithms):
        for values in product(*(parameter.values for parameter in algorithm.tuned)):
            named = zip((parameter.name for parameter in algorithm.tuned), values, strict=True)
            one = Choice(algorithm.key, tuple(sorted(named)))
            kinds.setdefault(kind_of(collective, one), one)
    return kinds
