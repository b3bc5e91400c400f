"""Collectives that colltune does not tune."""

NONBLOCKING = (
    *("iallgather", "iallgatherv", "iallreduce", "ialltoall", "ialltoallv", "ialltoallw", "ibarrier", "ibcast"),
    *("iexscan", "igather", "igatherv", "ireduce", "ireduce_scatter", "ireduce_scatter_block", "iscan", "iscatter"),
    "iscatterv",
)
_OF_NEIGHBOURS = tuple(f"neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"))
NEIGHBOURHOOD = (*_OF_NEIGHBOURS, *(f"i{name}" for name in _OF_NEIGHBOURS))
