"""Collectives that colltune does not tune: whether the library itself lets its user choose an algorithm for them."""

from colltune.mpi.installation import Library

NONBLOCKING = (
    *("iallgather", "iallgatherv", "iallreduce", "ialltoall", "ialltoallv", "ialltoallw", "ibarrier", "ibcast"),
    *("iexscan", "igather", "igatherv", "ireduce", "ireduce_scatter", "ireduce_scatter_block", "iscan", "iscatter"),
    "iscatterv",
)
_OF_NEIGHBOURS = tuple(f"neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"))
NEIGHBOURHOOD = (*_OF_NEIGHBOURS, *(f"i{name}" for name in _OF_NEIGHBOURS))
# MPICH makes a persistent collective by the selection of its non-blocking form, when the request is made.
PERSISTENT = {
    Library.MPICH: "each takes the algorithm of its non-blocking form, by the file too, when MPI_..._init is called",
}


def algorithm_variable(library: Library, collective: str) -> tuple[str, str]:
    """The control variable that chooses an algorithm of ``collective`` where there is one, and its value for none."""
    if library is Library.OPENMPI:
        return f"coll_libnbc_{collective}_algorithm", "ignore"
    return f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM", "auto"
