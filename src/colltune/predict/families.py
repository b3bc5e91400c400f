"""One name for what each MPI, and each paper, calls differently.

A family is an algorithm as textbooks describe it (Thakur, Rabenseifner and Gropp 2005): the same messages between the
same ranks. What fits none keeps a name of its own, and a model trained on others then says nothing about it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from colltune.core.choice import Choice

# Per collective, the first pattern that is found in the name, in lower case, decides; None: no family.
_PATTERNS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "allgather": (
        (r"bine|swing|sparbit|recexch|k_bruck|two_?proc|2procs|gather_?bcast|direct", None),
        (r"bruck", "bruck"),
        (r"recursive_doubling|rd_allgather_comm|(?:^|_)rd(?:b|$)", "recursive_doubling"),
        (r"neighbor", "neighbor_exchange"),
        (r"ring", "ring"),
        (r"(?:^|_)linear", "linear"),
    ),
    "allreduce": (
        (r"bine|swing|segment|recexch|multiplying|smp|tree|k_reduce|allgather_reduce|nccl", None),
        (r"rabenseifner|reduce_scatter_allgather|rab_rdb", "rabenseifner"),
        (r"recursive_doubling|(?:^|_)rdb?$", "recursive_doubling"),
        (r"ring|(?:^|_)lr$", "ring"),
        (r"non_?overlapping|basic_linear|(?:^|_)linear", "linear"),
    ),
    "alltoall": (
        (r"bine|hierarchical|locality|node-aware|leader|(?:^|_)inplace|replace|two_?proc|k_brucks", None),
        (r"bruck", "bruck"),
        (r"pair", "pairwise"),
        (r"scatter_?dest|scattered|linear_sync", "scattered"),
        (r"(?:^|_)linear|basic_linear", "linear"),
        (r"recursive_doubling|(?:^|_)rd$", "recursive_doubling"),
    ),
    "bcast": (
        (r"bine|smp|pipeline|chain", None),
        (r"scatter_(?:ring|lr)_allgather|scatter_allgather_ring", "scatter_ring"),
        (r"scatter_recursive_doubling|scatter_rdb|scatter_allgather", "scatter_recursive_doubling"),
        (r"binomial", "binomial"),
        (r"split_binary", "split_binary"),
        (r"binary", "binary"),
        (r"linear", "linear"),
    ),
    "reduce": (
        (r"bine|smp|pipeline|chain|in_order|binary", None),
        (r"rabenseifner|reduce_scatter_gather|scatter_gather", "rabenseifner"),
        (r"binomial", "binomial"),
        (r"linear", "linear"),
    ),
    "reduce_scatter": (
        (r"bine|radix|noncomm|distance", None),
        (r"recursive_halving|rec_halving", "recursive_halving"),
        (r"recursive_doubling|rec_doubling|rdb", "recursive_doubling"),
        (r"ring", "ring"),
        (r"pair", "pairwise"),
    ),
    "gather": ((r"bine", None), (r"binomial", "binomial"), (r"linear", "linear")),
    "scatter": ((r"bine", None), (r"binomial", "binomial"), (r"linear", "linear")),
}
# A collective without tables uses those of the one that moves the same data in the same way.
LIKE = {"reduce_scatter_block": "reduce_scatter"}
_PATTERNS["reduce_scatter_block"] = _PATTERNS["reduce_scatter"]
_PATTERNS["allgatherv"] = _PATTERNS["allgather"]


@lru_cache(maxsize=10_000)
def family(collective: str, algorithm: str) -> str | None:
    """``("allgather", "ring_ompi")`` -> ``"ring"``; None for an algorithm that no family holds."""
    name = algorithm.lower()
    for pattern, found in _PATTERNS.get(collective, ()):
        if re.search(pattern, name):
            return found
    return None


def family_of_choice(collective: str, choice: Choice) -> str | None:
    """As ``family``; a radix other than 2 makes another algorithm of it, which is of no family."""
    if any(name == "k" and value != 2 for name, value in choice.parameters):
        return None
    return family(collective, choice.algorithm)
