"""What a setting makes a rank do: messages, waits, and bytes moved; from these the models start.

Symbols: P ranks, of which ppn on a node; a step (x, z) of a radix-r Bruck goes to the rank at distance z r^x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from colltune.alltoallv.lookup_table import Setting, Shape

_SIZE_BYTES = 2  # what a forwarded block's size takes in a message


@dataclass(frozen=True, slots=True)
class Work:
    """Of one rank: ``messages`` and ``blocks`` sent, ``waits`` one after the other, bytes off its node or on."""

    messages: float
    waits: float
    blocks: float
    off_node_bytes: float
    node_bytes: float

    def as_row(self) -> tuple[float, ...]:
        return (self.messages, self.waits, self.blocks, self.off_node_bytes, self.node_bytes)


def work(shape: Shape, setting: Setting, mean_bytes: float) -> Work:
    """For blocks of ``mean_bytes`` between all ranks. Some tables hold algorithms that are gone: no cell chose them."""
    ranks = shape.ranks
    if setting.algorithm in ("parata", "bruck"):
        radix, batch = (2, 1) if setting.algorithm == "bruck" else (setting.radix, setting.batch)
        found = _bruck(ranks, shape.ppn, radix, batch, mean_bytes, 1)
        messages = found.messages * (2 if setting.algorithm == "bruck" else 1)
        return Work(messages, found.waits, found.blocks, found.off_node_bytes, found.node_bytes)
    if setting.algorithm.startswith("hieata"):
        return _hierarchical(shape, setting, mean_bytes)
    batch = {"library": 32, "pairwise": 1}.get(setting.algorithm, setting.batch) or ranks - 1
    off = (ranks - shape.ppn) * mean_bytes
    return Work(ranks - 1, -(-(ranks - 1) // batch), ranks - 1, off, (shape.ppn - 1) * mean_bytes)


def _steps(ranks: int, radix: int) -> Iterator[tuple[int, int, int]]:
    """Round's first distance, the step's distance, and its blocks."""
    distance = 1
    while distance < ranks:
        wider = distance * radix
        for digit in range(1, min(radix - 1, (ranks - 1) // distance) + 1):
            rest = min(max(ranks % wider - digit * distance, 0), distance)
            yield distance, digit * distance, ranks // wider * distance + rest
        distance = wider


def _bruck(ranks: int, ppn: int, radix: int, batch: int, mean_bytes: float, blocks_each: float) -> Work:
    """``blocks_each``: blocks in a parcel; ``ppn`` neighbours share a node."""
    messages, blocks, off, on = 0, 0.0, 0.0, 0.0
    of_round: dict[int, int] = {}
    for first, hop, count in _steps(ranks, radix):
        messages += 1
        blocks += count * blocks_each
        of_round[first] = of_round.get(first, 0) + 1
        leaves = min(1.0, min(hop, ranks - hop) / ppn) if ppn < ranks else 0.0
        moved = count * blocks_each * (mean_bytes + _SIZE_BYTES)
        off, on = off + leaves * moved, on + (1.0 - leaves) * moved
    waits = sum(-(-steps // (batch or steps)) for steps in of_round.values())
    return Work(messages, waits, blocks, off, on)


def _hierarchical(shape: Shape, setting: Setting, mean_bytes: float) -> Work:
    ranks, others = shape.ranks, shape.nodes - 1
    inside = _bruck(shape.ppn, shape.ppn, setting.radix, 0, mean_bytes, ranks / shape.ppn)
    each = shape.ppn if setting.algorithm == "hieata_staggered" else 1
    waits = inside.waits + -(-others // (setting.batch or others))
    between = others * shape.ppn
    return Work(
        inside.messages + others * each, waits, inside.blocks + between, between * mean_bytes, inside.node_bytes
    )
