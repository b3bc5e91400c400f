"""What applications exchange in one call: matrices of bytes, as `colltune tune alltoallv --counts` takes them.

Symbols: P ranks; each matrix is (P, P), the bytes that each rank (row) sends to each (column).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORD_BYTES = 8

Counts = NDArray[np.int64]


def matrices(ranks: int, seed: int = 1) -> dict[str, Counts]:
    """By name: each kind with few and with many elements on a rank."""
    found = {}
    for each in (100, 2000):
        found[f"sparse matrix, {each} rows"] = sparse_product(ranks, each, seed)
        found[f"graph, {each} edges"] = graph_exchange(ranks, each, seed)
        found[f"keys, {each}"] = sorted_keys(ranks, each, seed)
    return found


def sparse_product(ranks: int, rows: int, seed: int) -> Counts:
    """The entries of a vector that the product with a sparse matrix needs from other ranks; ``rows`` on each.

    A row has eight entries, near its diagonal more often than far from it. Each needed entry is sent once.
    """
    random = np.random.default_rng([seed, 1])
    count = ranks * rows
    row = np.repeat(np.arange(count), 8)
    column = (row + np.rint(random.standard_cauchy(len(row)) * rows / 4).astype(np.int64)) % count
    needed = np.unique(np.stack([column, row // rows]), axis=1)
    return _sum(needed[0] // rows, needed[1], ranks)


def graph_exchange(ranks: int, edges: int, seed: int) -> Counts:
    """Each rank tells the owners of its edges' ends: as uneven as those of an R-MAT graph, and owners are hashed."""
    random = np.random.default_rng([seed, 2])
    end = np.zeros(ranks * edges, dtype=np.int64)
    for _ in range(14):  # 2^14 vertices
        end = 2 * end + (random.random(len(end)) < 0.24)
    owner = random.permutation(1 << 14)[end] % ranks
    return _sum(np.repeat(np.arange(ranks), edges), owner, ranks)


def sorted_keys(ranks: int, keys: int, seed: int) -> Counts:
    """A sample sort of keys of which half are in their place, give or take, and some values are frequent."""
    random = np.random.default_rng([seed, 3])
    rank = np.repeat(np.arange(ranks), keys)
    near = (rank + random.random(len(rank)) + random.normal(0.0, 0.5, len(rank))) / ranks
    key = np.where(random.random(len(rank)) < 0.5, near, np.round(random.random(len(rank)) ** 2, 2))
    splitters = np.quantile(random.choice(key, 16 * ranks), np.arange(1, ranks) / ranks)
    return _sum(rank, np.searchsorted(splitters, key), ranks)


def _sum(sender: NDArray[np.int64], receiver: NDArray[np.int64], ranks: int) -> Counts:
    found = np.zeros((ranks, ranks), dtype=np.int64)
    np.add.at(found, (sender, receiver), _WORD_BYTES)
    return found
