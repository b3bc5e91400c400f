"""Every algorithm name that a leaf of MPICH's selection files may hold, and its preconditions.

The collectives that colltune tunes are in the catalogue. Here is the rest: the forms for intercommunicators, the
other nonblocking and the neighbourhood collectives, and the shared-memory algorithms of the posix file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from colltune.catalog import NO_DEVICE, Algorithm, Catalogue, CollectiveEntry, Need
from colltune.catalog import Kind as AlgorithmKind
from colltune.core.choice import Value
from colltune.emit.lint.operators import INTRA_ONLY


class FileKind(StrEnum):
    """GENERAL: algorithms of all collectives. CH4: compositions of the device. POSIX: shared-memory algorithms."""

    GENERAL = "general"
    CH4 = "ch4"
    POSIX = "posix"


@dataclass(frozen=True, slots=True)
class LeafName:
    """What is known of a name.

    ``needs``: words that ``Region.meets`` understands. ``parameters``: with the value to use where none is given; a
    file must give all. ``optional``: read, but not needed. ``unread``: a parameter that MPICH leaves unset whatever
    the file says. ``warning``: another reason against the name.
    """

    collective: str
    kind: FileKind
    needs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Value], ...] = ()
    optional: tuple[str, ...] = ()
    unread: str | None = None
    warning: str | None = None


# collective: forms, each with the first version that has it where that is not 4.0
_FORMS = """
allgather: inter_local_gather_remote_bcast
allgatherv: inter_remote_gather_local_bcast
allreduce: inter_reduce_exchange_bcast
alltoall: inter_pairwise_exchange
alltoallv: allcomm_nb inter_pairwise_exchange intra_pairwise_sendrecv_replace intra_scattered
alltoallw: allcomm_nb inter_pairwise_exchange intra_pairwise_sendrecv_replace intra_scattered
barrier: inter_bcast
bcast: inter_remote_send_local_bcast
exscan: allcomm_nb intra_recursive_doubling
gather: inter_linear inter_local_gather_remote_send
gatherv: allcomm_linear allcomm_nb
iallgather: inter_sched_local_gather_remote_bcast
iallgatherv: inter_sched_remote_gather_local_bcast intra_sched_brucks intra_sched_recursive_doubling
 intra_sched_ring intra_tsp_brucks intra_tsp_recexch_doubling intra_tsp_recexch_halving intra_tsp_ring
iallreduce: inter_sched_remote_reduce_local_bcast
ialltoall: inter_sched_pairwise_exchange
ialltoallv: inter_sched_pairwise_exchange intra_sched_blocked intra_sched_inplace intra_tsp_blocked
 intra_tsp_inplace intra_tsp_scattered
ialltoallw: inter_sched_pairwise_exchange intra_sched_blocked intra_sched_inplace intra_tsp_blocked intra_tsp_inplace
ibarrier: inter_sched_bcast intra_sched_recursive_doubling intra_tsp_k_dissem@4.1 intra_tsp_recexch
ibcast: inter_sched_flat
iexscan: intra_sched_recursive_doubling
igather: inter_sched_long inter_sched_short intra_sched_binomial intra_tsp_tree
igatherv: allcomm_sched_linear allcomm_tsp_linear
ineighbor_allgather: allcomm_sched_linear allcomm_tsp_linear
ineighbor_allgatherv: allcomm_sched_linear allcomm_tsp_linear
ineighbor_alltoall: allcomm_sched_linear allcomm_tsp_linear
ineighbor_alltoallv: allcomm_sched_linear allcomm_tsp_linear
ineighbor_alltoallw: allcomm_sched_linear allcomm_tsp_linear
ireduce: inter_sched_local_reduce_remote_send intra_sched_binomial intra_sched_reduce_scatter_gather
 intra_sched_smp intra_tsp_ring intra_tsp_tree
ireduce_scatter: inter_sched_remote_reduce_local_scatterv intra_sched_noncommutative intra_sched_pairwise
 intra_sched_recursive_doubling intra_sched_recursive_halving intra_tsp_recexch
ireduce_scatter_block: inter_sched_remote_reduce_local_scatterv intra_sched_noncommutative intra_sched_pairwise
 intra_sched_recursive_doubling intra_sched_recursive_halving intra_tsp_recexch
iscan: intra_sched_recursive_doubling intra_sched_smp intra_tsp_recursive_doubling
iscatter: inter_sched_linear inter_sched_remote_send_local_scatter intra_sched_binomial intra_tsp_tree
iscatterv: allcomm_sched_linear allcomm_tsp_linear
neighbor_allgather: allcomm_nb
neighbor_allgatherv: allcomm_nb
neighbor_alltoall: allcomm_nb
neighbor_alltoallv: allcomm_nb
neighbor_alltoallw: allcomm_nb
reduce: inter_local_reduce_remote_send
reduce_scatter: inter_remote_reduce_local_scatter
reduce_scatter_block: inter_remote_reduce_local_scatter
scan: allcomm_nb intra_recursive_doubling intra_smp
scatter: inter_linear inter_remote_send_local_scatter
scatterv: allcomm_linear allcomm_nb
"""
# What the forms above need. scan and iscan have no operator for a commuting operation, nor do these ask for one.
_NEEDS: dict[str, dict[str, tuple[str, ...]]] = {
    "alltoallv": {"pairwise_sendrecv_replace": (Need.IN_PLACE,), "intra_scattered": (Need.NOT_IN_PLACE,)},
    "alltoallw": {"pairwise_sendrecv_replace": (Need.IN_PLACE,), "intra_scattered": (Need.NOT_IN_PLACE,)},
    "iallgatherv": {"sched_recursive_doubling": (Need.POWER_OF_TWO,), "tsp_recexch": ("displacements-in-order",)},
    "ialltoallv": {"inplace": (Need.IN_PLACE,), "blocked": (Need.NOT_IN_PLACE,), "scattered": (Need.NOT_IN_PLACE,)},
    "ialltoallw": {"inplace": (Need.IN_PLACE,), "blocked": (Need.NOT_IN_PLACE,)},
    "ireduce": {
        "sched_smp": (Need.COMMUTATIVE, Need.PARENT_COMM),
        "sched_reduce_scatter_gather": (Need.COUNT_GE_POF2, Need.BUILTIN_OP),
        "tsp_": (Need.COMMUTATIVE,),
    },
    "ireduce_scatter": {
        "noncommutative": (Need.POWER_OF_TWO, Need.REGULAR_COUNTS),
        "pairwise": (Need.COMMUTATIVE,),
        "recursive_halving": (Need.COMMUTATIVE,),
        "tsp_recexch": (Need.COMMUTATIVE,),
    },
    "ireduce_scatter_block": {
        "noncommutative": (Need.POWER_OF_TWO,),
        "pairwise": (Need.COMMUTATIVE,),
        "recursive_halving": (Need.COMMUTATIVE,),
        "tsp_recexch": (Need.COMMUTATIVE,),
    },
    "scan": {"smp": ("node-consecutive",)},
    "iscan": {"smp": (Need.PARENT_COMM,)},
}
_PARAMETERS: dict[str, tuple[tuple[str, Value], ...]] = {
    "MPIR_Ireduce_intra_tsp_tree": (
        *(("tree_type", "kary"), ("k", 2), ("chunk_size", 0)),
        ("buffer_per_child", 0),
    ),
    "MPIR_Ireduce_intra_tsp_ring": (("chunk_size", 0), ("buffer_per_child", 0)),
    "MPIR_Allreduce_intra_ccl": (("ccl", "auto"),),
}
_TOPO = ("topo_overhead", "topo_diff_groups", "topo_diff_switches", "topo_same_switches")
_UNREAD = {
    "MPIR_Barrier_intra_recexch": "single_phase_recv",
    "MPIR_Iallgather_intra_tsp_brucks": "k",
    "MPIR_Iallgather_intra_tsp_recexch_doubling": "k",
    "MPIR_Iallgather_intra_tsp_recexch_halving": "k",
    "MPIR_Iallgatherv_intra_tsp_brucks": "k",
    "MPIR_Iallgatherv_intra_tsp_recexch_doubling": "k",
    "MPIR_Iallgatherv_intra_tsp_recexch_halving": "k",
    "MPIR_Ialltoall_intra_tsp_brucks": "k",
    "MPIR_Ialltoall_intra_tsp_scattered": "batch_size",
    "MPIR_Ialltoallv_intra_tsp_scattered": "batch_size",
    "MPIR_Ialltoallv_intra_tsp_blocked": "bblock",
    "MPIR_Ialltoallw_intra_tsp_blocked": "bblock",
    "MPIR_Ibarrier_intra_tsp_k_dissem": "k",
    "MPIR_Ibarrier_intra_tsp_recexch": "k",
    "MPIR_Igather_intra_tsp_tree": "k",
    "MPIR_Iscatter_intra_tsp_tree": "k",
    "MPIR_Ireduce_scatter_intra_tsp_recexch": "k",
    "MPIR_Ireduce_scatter_block_intra_tsp_recexch": "k",
}
_COMPOSED = ("alltoallv", "alltoallw", "exscan", "gatherv", "scan", "scatterv")
_POSIX: dict[str, tuple[str, ...]] = {
    "barrier_release_gather": ("one-thread",),
    "bcast_release_gather": ("one-thread",),
    "allreduce_release_gather": ("one-thread", Need.COMMUTATIVE),
    "reduce_release_gather": ("one-thread", Need.COMMUTATIVE),
}


@cache
def leaf_names(catalogue: Catalogue) -> dict[str, LeafName]:
    """By the name in the file. Catalogues are equal only to themselves, and there are few of them."""
    names: dict[str, LeafName] = {}
    for entry in catalogue.entries.values():
        names.update(_of_catalogue(entry))
    for collective, form in _forms(catalogue.version):
        name = f"MPIR_{collective.capitalize()}_{form}"
        names[name] = _other(name, collective, form, catalogue.version)
    for collective in _COMPOSED:
        name = f"MPIDI_{collective.capitalize()}_intra_composition_alpha"
        names[name] = LeafName(collective, FileKind.CH4, ("node-consecutive",) if collective == "scan" else ())
    names["MPIDI_Scan_intra_composition_beta"] = LeafName("scan", FileKind.CH4)
    for form, needs in _POSIX.items():
        names[f"MPIDI_POSIX_mpi_{form}"] = LeafName(form.partition("_")[0], FileKind.POSIX, needs)
    if _number(catalogue.version) >= (4, 3):
        names["MPIDI_POSIX_mpi_bcast_ipc_read"] = LeafName("bcast", FileKind.POSIX)
    return names


def _of_catalogue(entry: CollectiveEntry) -> Iterator[tuple[str, LeafName]]:
    handing_on = () if entry.network_only is NO_DEVICE else (entry.network_only,)
    for algorithm in (*(one for one in entry.algorithms if not one.composed), *handing_on):
        name = algorithm.selection_name
        needs: tuple[str, ...] = tuple(sorted(algorithm.needs))
        composed = algorithm.kind is AlgorithmKind.COMPOSITION
        flat_intra = not composed and "_intra_" in name
        # A composition for the network alone hands every call on, from an intercommunicator too.
        if flat_intra or (composed and algorithm is not entry.network_only):
            needs = ("intra", *needs)
        parameters = tuple((one.name, one.default) for one in algorithm.parameters if one.in_file)
        yield (
            name,
            LeafName(
                entry.name,
                FileKind.CH4 if composed else FileKind.GENERAL,
                needs,
                parameters or _PARAMETERS.get(name, ()),
                unread=_UNREAD.get(name),
                warning=_doubt(algorithm, entry),
            ),
        )


def _doubt(algorithm: Algorithm, entry: CollectiveEntry) -> str | None:
    """Why the catalogue advises against choosing ``algorithm`` by a file, beyond its preconditions."""
    own_choice = entry.nothing_to_tune is not None
    if algorithm.candidate or algorithm.needs or own_choice or algorithm is entry.network_only:
        return None
    if algorithm.selection_name in _UNREAD or (algorithm.kind is AlgorithmKind.COMPOSITION and not algorithm.number):
        return None
    return algorithm.why_not


def _other(name: str, collective: str, form: str, version: str) -> LeafName:
    needs: tuple[str, ...] = ()
    for part, wanted in _NEEDS.get(collective, {}).items():
        if part in form and not form.startswith("inter"):
            needs = wanted
            break
    if collective not in INTRA_ONLY and not form.startswith("allcomm"):
        needs = (form.partition("_")[0], *needs)
    parameters = _PARAMETERS.get(name, ())
    optional = _TOPO if name == "MPIR_Ireduce_intra_tsp_tree" and _number(version) >= (4, 3) else ()
    return LeafName(collective, FileKind.GENERAL, needs, parameters, optional, _UNREAD.get(name))


def _forms(version: str) -> Iterator[tuple[str, str]]:
    collective = ""
    for word in _FORMS.split():
        if word.endswith(":"):
            collective = word[:-1]
            continue
        form, _, since = word.partition("@")
        if not since or _number(since) <= _number(version):
            yield collective, form


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
