"""A complete general file and a ch4 file with names that MPICH has, for any version."""

from functools import cache

from colltune.catalog import NO_DEVICE, Catalogue, load
from colltune.emit.lint.leaf import FileKind, leaf_names
from colltune.emit.lint.operators import COLLECTIVES, INTRA_ONLY
from colltune.emit.mpich.defaults import DefaultTrees
from colltune.emit.mpich.tree import Tree, format_tree


@cache
def complete_trees(catalogue: Catalogue) -> DefaultTrees:
    """For each collective algorithms that serve every call."""
    general: Tree = {f"collective={name}": _general(name, catalogue) for name in sorted(COLLECTIVES)}
    ch4: Tree = {
        f"collective={name}": {"comm_type=intra": {f"composition={entry.network_only.selection_name}": {}}}
        for name, entry in catalogue.entries.items()
        if entry.network_only is not NO_DEVICE
    }
    general["collective=allreduce"]["comm_type=intra"] = {
        "comm_size<8": leaf("MPIR_Allreduce_intra_recursive_doubling"),
        "avg_msg_size<=0": {
            "is_commutative=yes": leaf("MPIR_Allreduce_intra_smp"),
            "is_commutative=no": leaf("MPIR_Allreduce_intra_recursive_doubling"),
        },
        "avg_msg_size=any": {
            "is_op_built_in=no": leaf("MPIR_Allreduce_intra_recursive_doubling"),
            "is_op_built_in=yes": {
                "count<pow2": leaf("MPIR_Allreduce_intra_recursive_doubling"),
                "count=any": leaf("MPIR_Allreduce_intra_reduce_scatter_allgather"),
            },
        },
    }
    return DefaultTrees(general, ch4)


def complete_file(version: str = "5.0.2") -> bytes:
    """A general file in which lint finds nothing."""
    return format_tree(complete_trees(load("mpich", version)).general)


def leaf(name: str, **parameters: object) -> Tree:
    return {f"algorithm={name}": {f"{key}={value}": {} for key, value in parameters.items()}}


def _general(collective: str, catalogue: Catalogue) -> Tree:
    if "alltoall" in collective and "neighbor" not in collective:
        replace = "sched_inplace" if collective.startswith("i") else "pairwise_sendrecv_replace"
        plain = {"alltoall": "scattered", "ialltoall": "sched_permuted_sendrecv"}.get(collective)
        plain = plain or ("sched_blocked" if collective.startswith("i") else "scattered")
        plain_leaf = leaf(f"MPIR_{collective.capitalize()}_intra_{plain}")
        intra: Tree = {
            "is_sendbuf_inplace=yes": leaf(f"MPIR_{collective.capitalize()}_intra_{replace}"),
            "is_sendbuf_inplace=no": plain_leaf
            if collective.endswith(("v", "w"))
            else {"comm_size<8": plain_leaf, "comm_size=any": plain_leaf},
        }
        return {"comm_type=intra": intra, "comm_type=inter": _first(collective, "inter", catalogue)}
    if collective == "scan":
        return {
            "is_node_consecutive=yes": leaf("MPIR_Scan_intra_smp"),
            "is_node_consecutive=no": leaf("MPIR_Scan_intra_recursive_doubling"),
        }
    if collective in INTRA_ONLY:
        return _first(collective, "intra", catalogue) or _first(collective, "allcomm", catalogue)
    return {
        "comm_type=intra": _first(collective, "intra", catalogue) or _first(collective, "allcomm", catalogue),
        "comm_type=inter": _first(collective, "inter", catalogue) or _first(collective, "allcomm", catalogue),
    }


def _first(collective: str, form: str, catalogue: Catalogue) -> Tree:
    """A leaf of ``collective`` with no precondition but ``form``; empty where there is none."""
    for name, known in leaf_names(catalogue).items():
        of_form = name.startswith(f"MPIR_{collective.capitalize()}_{form}_")
        if of_form and known.kind is FileKind.GENERAL and set(known.needs) <= {form} and not known.unread:
            return leaf(name, **dict(known.parameters))
    return {}
