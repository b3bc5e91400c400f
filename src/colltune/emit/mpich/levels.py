"""The levels of a tree of rules in MPICH's selection files: ranks per node, ranks, size."""

from collections.abc import Callable
from typing import NamedTuple

from colltune.core.decision_table import ByRanks
from colltune.core.sample import NONBLOCKING, Choice, blocking_form
from colltune.core.steps import Steps
from colltune.emit.mpich.tree import Tree, grouped

# The library reads numbers with atoi, so that a larger bound would overflow; it is cut to this one.
LARGEST_BOUND = 2**31 - 1

# What the size bound of a rule is compared with; for other collectives MPICH aborts, or ranks would disagree.
_SIZE = dict.fromkeys(("allreduce", "alltoall", "bcast", "reduce"), "avg_msg_size")
_SIZE |= dict.fromkeys(("allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block"), "total_msg_size")
_SIZE |= {name: _SIZE[blocking_form(name)] for name in NONBLOCKING}
# What their sizes are compared with has no meaning in a call in place.
BY_SEND_SIZE = frozenset({"alltoall", "ialltoall"})


class Level(NamedTuple):
    """One level of a rule tree: the operator that takes bounds, and the key for what lies beyond the last one."""

    operator: str
    rest: str


def levels_of(collective: str) -> tuple[Level, ...]:
    """From the outermost. comm_avg_ppn has no key for the rest that MPICH 4.0 and 4.1 would read."""
    found = [Level("comm_avg_ppn", "comm_size=any"), Level("comm_size", "comm_size=any")]
    if collective in _SIZE:
        found.append(Level(_SIZE[collective], f"{_SIZE[collective]}=any"))
    return tuple(found)


def ranks_tree(by_ranks: ByRanks, collective: str, leaf: Callable[[Choice], Tree]) -> Tree:
    """The tree over the ranks of inner communicators, and over sizes where there are any."""
    by_size = _SIZE.get(collective)

    def of_sizes(steps: Steps[Choice]) -> Tree:
        if by_size is None:
            return leaf(steps.last)
        sizes = {None if bound is None else min(bound, LARGEST_BOUND): leaf(choice) for bound, choice in steps.pairs}
        return grouped(by_size, f"{by_size}=any", list(sizes.items()), dict)

    ranks = [(bound, of_sizes(steps)) for bound, steps in by_ranks.pairs]
    return grouped("comm_size", "comm_size=any", ranks, dict)
