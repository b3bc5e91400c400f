"""What is being tuned: a collective, called on some ranks with some bytes."""

from dataclasses import dataclass
from enum import StrEnum

REDUCTIONS = frozenset(
    {"allreduce", "exscan", "iallreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan"}
)
COLLECTIVES = (
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
)
# Non-blocking ones, whose time is what a computation beside them does not hide (docs/design/nonblocking.md).
NONBLOCKING = ("iallgather", "iallreduce", "ialltoall", "ibcast")
TUNABLE = (*COLLECTIVES, *NONBLOCKING)
# Collectives whose size is one block per peer; for the others it is the whole vector (OSU's convention).
PER_BLOCK = frozenset({"allgather", "allgatherv", "alltoall", "gather", "iallgather", "ialltoall", "scatter"})


def blocking_form(collective: str) -> str:
    """``"ibcast"`` -> ``"bcast"``; a blocking collective is its own."""
    return collective.removeprefix("i") if collective in NONBLOCKING else collective


class SizeBasis(StrEnum):
    """The quantity that a library compares with its rules' size bounds."""

    MESSAGE = "message"  # Scenario.size_bytes itself
    TOTAL = "total"  # one block times the number of ranks
    NONE = "none"  # the library cannot decide by size, or must not


@dataclass(frozen=True, slots=True, order=True)
class Scenario:
    """A collective call as an algorithm sees it.

    ``size_bytes`` follows OSU's convention: one block per peer for allgather(v), gather, scatter and
    alltoall; the whole vector for bcast and the reductions, reduce_scatter included; 0 for barrier.
    Reductions count in ``datatype`` elements, so their sizes are multiples of its 4 bytes.
    """

    collective: str
    nodes: int
    ppn: int
    size_bytes: int

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.ppn < 1 or self.size_bytes < 0:
            raise ValueError(f"not a scenario: {self!r}")

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    @property
    def datatype(self) -> str:
        return "float" if self.collective in REDUCTIONS else "byte"

    def basis_bytes(self, basis: SizeBasis) -> int:
        """The size of this call in the unit that ``basis`` names."""
        if basis is SizeBasis.NONE:
            return 0
        if basis is SizeBasis.TOTAL and self.collective in PER_BLOCK:
            return self.size_bytes * self.ranks
        return self.size_bytes
