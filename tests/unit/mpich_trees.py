"""Small built-in trees in MPICH's format, with each trait that the real ones have."""

from colltune.catalog import Catalogue, Kind, Need
from colltune.core.sample import COLLECTIVES, DEFAULT, NONBLOCKING, Choice
from colltune.emit.mpich.defaults import DefaultTrees
from colltune.emit.mpich.tree import Call, Leaf, Tree, decide


def algorithm(collective: str, name: str) -> Tree:
    return {f"algorithm=MPIR_{collective.capitalize()}_{name}": {}}


def composition(collective: str, letter: str) -> Tree:
    return {f"composition=MPIDI_{collective.capitalize()}_intra_composition_{letter}": {}}


def default_trees() -> DefaultTrees:
    general: Tree = {}
    for name in (*COLLECTIVES, *NONBLOCKING):
        form = "sched_" if name in NONBLOCKING else ""
        general[f"collective={name}"] = {
            "comm_type=intra": algorithm(name, f"intra_{form}first"),
            "comm_type=inter": algorithm(name, f"inter_{form}only"),
        }
    general["collective=ibcast"]["comm_type=intra"] = {
        "comm_hierarchy=parent": algorithm("ibcast", "intra_sched_smp"),
        "comm_hierarchy=any": {
            "comm_size<8": {"avg_msg_size=any": algorithm("ibcast", "intra_sched_binomial")},
            "comm_size=any": algorithm("ibcast", "intra_sched_many"),
        },
    }
    general["collective=ialltoall"]["comm_type=intra"] = {
        "is_sendbuf_inplace=yes": algorithm("ialltoall", "intra_sched_inplace"),
        "is_sendbuf_inplace=no": algorithm("ialltoall", "intra_sched_pairwise"),
    }
    general["collective=scan"] = algorithm("scan", "intra_recursive_doubling")
    few = algorithm("bcast", "intra_few")
    general["collective=bcast"]["comm_type=intra"] = {
        "comm_size<8": {
            "comm_hierarchy=parent": {"avg_msg_size<=0": algorithm("bcast", "intra_zero"), "avg_msg_size=any": few},
            "comm_hierarchy=any": few,
        },
        "comm_size=pow2": {"avg_msg_size<12288": few, "avg_msg_size=any": algorithm("bcast", "intra_many_pow2")},
        "comm_size=any": algorithm("bcast", "intra_many"),
    }
    general["collective=allreduce"]["comm_type=intra"] = {
        "avg_msg_size<=8": algorithm("allreduce", "intra_short"),
        "avg_msg_size=any": {
            "is_op_built_in=no": algorithm("allreduce", "intra_user"),
            "is_op_built_in=yes": {
                "count<pow2": algorithm("allreduce", "intra_few"),
                "count=any": algorithm("allreduce", "intra_long"),
            },
        },
    }
    general["collective=alltoall"]["comm_type=intra"] = {
        "is_sendbuf_inplace=yes": algorithm("alltoall", "intra_in_place"),
        "is_sendbuf_inplace=no": {
            "comm_size<8": algorithm("alltoall", "intra_few"),
            "comm_size=any": {
                "avg_msg_size<=256": algorithm("alltoall", "intra_brucks"),
                "avg_msg_size=any": algorithm("alltoall", "intra_pairwise"),
            },
        },
    }
    return DefaultTrees(general, _device(), _posix())


def _device() -> Tree:
    ch4: Tree = {f"collective={name}": {"comm_type=intra": composition(name, "alpha")} for name in COLLECTIVES}
    ch4["collective=bcast"]["comm_type=intra"] = {
        "comm_hierarchy=parent": {
            "comm_size<8": {"avg_msg_size=any": composition("bcast", "alpha")},
            "comm_size=any": composition("bcast", "gamma"),
        },
        "comm_hierarchy=any": composition("bcast", "gamma"),
    }
    ch4["collective=allreduce"]["comm_type=intra"] = {
        "comm_size=node_comm_size": composition("allreduce", "gamma"),
        "comm_size=any": {
            "comm_hierarchy=parent": {
                "is_commutative=yes": composition("allreduce", "alpha"),
                "is_commutative=no": composition("allreduce", "beta"),
            },
            "comm_hierarchy=any": composition("allreduce", "beta"),
        },
    }
    return ch4


def _posix() -> Tree:
    tree: Tree = {}
    for name in ("bcast", "barrier", "reduce"):
        release = {f"algorithm=MPIDI_POSIX_mpi_{name}_release_gather": {}}
        alone = {"is_commutative=yes": release} if name == "reduce" else release
        tree[f"collective={name}"] = {"comm_type=intra": {"is_multi_threaded=no": alone}}
    return tree


def meets(call: Call, need: Need) -> bool:
    return {
        Need.POWER_OF_TWO: call.ranks in {2**i for i in range(32)},
        Need.COMMUTATIVE: call.commutative,
        Need.BUILTIN_OP: call.builtin_op,
        Need.COUNT_GE_POF2: call.count >= 2 ** (len(f"{call.ranks:b}") - 1),
        Need.REGULAR_COUNTS: call.regular_counts,
        Need.NOT_IN_PLACE: not call.in_place,
        Need.IN_PLACE: call.in_place,
        Need.PARENT_COMM: call.hierarchy == "parent",
        Need.ONE_NODE: call.hierarchy == "parent" and call.nodes == 1,
    }[need]


def leaves_of(catalogue: Catalogue, choice: Choice, call: Call) -> tuple[Leaf | None, Leaf | None]:
    """What the general and the ch4 file around the small trees decide for ``call`` where it is to run ``choice``."""
    name, defaults = call.collective, default_trees()
    general, ch4 = (decide(tree, call, catalogue.release) for tree in (defaults.general, defaults.ch4))
    algorithm = None if choice == DEFAULT else catalogue.algorithm(name, choice)
    if algorithm is None or not all(meets(call, need) for need in algorithm.needs):
        return general, ch4
    if algorithm.kind is Kind.COMPOSITION:
        return general, Leaf(algorithm.selection_name)
    network_only = None if name in NONBLOCKING else Leaf(catalogue.collective(name).network_only.selection_name)
    return Leaf(algorithm.selection_name, catalogue.selection_parameters(name, choice)), network_only
