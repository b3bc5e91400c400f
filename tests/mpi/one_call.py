"""What one call of a collective sends, or which algorithms of Open MPI it runs: by tests/native/one_call.c."""

from collections.abc import Sequence
from pathlib import Path

from colltune.machine.compile import COMMON, source_directory
from compiled import program, shared

# Of a collective, and a size in bytes as colltune names it.
OneCall = tuple[str, int]
# All whose algorithms of Open MPI have names.
NAMED = (
    *("allgather", "allgatherv", "allreduce", "alltoall", "barrier", "bcast", "exscan", "gather", "reduce"),
    *("reduce_scatter", "reduce_scatter_block", "scan", "scatter"),
)


def compiled_for(mpicc: str | Path) -> str:
    common = source_directory(COMMON)
    return program(mpicc, "one_call.c", common / "variables.c", common / "mock_ups.c")


def making(mpicc: str | Path, calls: Sequence[OneCall], ranks: int) -> list[str]:
    """The program that makes ``calls`` on so many ranks; a reduce_scatter_block takes what is a whole block or more."""
    blocks = [(name, -(-size // ranks) if name == "reduce_scatter_block" else size) for name, size in calls]
    return [compiled_for(mpicc), *(word for name, size in blocks for word in (name, str(size), "-"))]


def ucx_counter() -> str:
    """What to preload beside MPICH with its messages through UCX."""
    return str(shared("traffic_count.c"))


def namer() -> str:
    """What to preload beside Open MPI, of which it names the algorithms."""
    return str(shared("algorithm_names.c"))


def messages(printed: str, calls: Sequence[OneCall]) -> dict[OneCall, int]:
    """Of all ranks together in each call."""
    found = dict.fromkeys(calls, 0)
    for number, _, _, count, *_ in map(str.split, printed.splitlines()):
        found[calls[int(number)]] += int(count)
    return found


def algorithms(printed: str, calls: Sequence[OneCall]) -> dict[OneCall, str]:
    """The functions that rank 0 was in, with blanks between."""
    return {calls[int(number)]: names for number, _, names in (line.partition(" ") for line in printed.splitlines())}
