"""Collectives that colltune does not tune: whether the library itself lets its user choose an algorithm for them."""

from __future__ import annotations

from colltune.mpi.installation import Library

NONBLOCKING = (
    *("iallgather", "iallgatherv", "iallreduce", "ialltoall", "ialltoallv", "ialltoallw", "ibcast", "igather"),
    *("ireduce", "ireduce_scatter", "iscatter"),
)


def algorithm_variable(library: Library, collective: str) -> tuple[str, str]:
    """The control variable that chooses an algorithm of ``collective`` where there is one, and its value for none."""
    if library is Library.OPENMPI:
        return f"coll_libnbc_{collective}_algorithm", "ignore"
    return f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM", "auto"
