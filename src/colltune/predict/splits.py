"""The three ways of PML-MPI (section V.D) to hold data back, and the one that matters to a new machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from colltune.predict.table import Label

Rows = NDArray[np.intp]
_TRAINED_SHARE = 0.7


class Split(StrEnum):
    RANDOM = "random"  # 70% of the rows against the rest
    CLUSTER = "cluster"  # each cluster in turn against all others
    NODES = "nodes"  # the smaller node counts against the greater


@dataclass(frozen=True, slots=True)
class Part:
    """Row numbers to train on, and to test with."""

    train: Rows
    test: Rows


def parts(labels: Sequence[Label], split: Split, seed: int) -> Iterator[Part]:
    """One part, or one for each cluster. Raises ValueError where nothing would be left on one side."""
    if split is Split.RANDOM:
        order = np.random.default_rng(seed).permutation(len(labels))
        cut = round(_TRAINED_SHARE * len(labels))
        yield _part(order[:cut], order[cut:])
    elif split is Split.CLUSTER:
        cluster = np.array([label.cluster for label in labels])
        for name in np.unique(cluster):
            yield _part(np.flatnonzero(cluster != name), np.flatnonzero(cluster == name))
    else:
        nodes = np.array([label.scenario.nodes for label in labels])
        most = _greatest_trained(nodes)
        yield _part(np.flatnonzero(nodes <= most), np.flatnonzero(nodes > most))


def _greatest_trained(nodes: NDArray[np.int_]) -> int:
    """The node count up to which the share of the rows is nearest to the share to train on."""
    counts = np.unique(nodes)[:-1]
    if not len(counts):
        raise ValueError("all labels are of one node count")
    shares = np.array([(nodes <= count).mean() for count in counts])
    return int(counts[np.argmin(np.abs(shares - _TRAINED_SHARE))])


def _part(train: Rows, test: Rows) -> Part:
    if not len(train) or not len(test):
        raise ValueError("too few labels or clusters to hold any back")
    return Part(np.sort(train), np.sort(test))


def ceiling(labels: Sequence[Label]) -> float:
    """How often two tables of one cluster, for different channels, agree where both have a row; NaN without such pairs.

    Nobody can be expected to predict one of them better than the other does.
    """
    tables: dict[tuple[str, str], dict[object, str]] = {}
    for label in labels:
        tables.setdefault((label.cluster, label.channel), {})[label.scenario] = label.algorithm
    agreed = total = 0
    for (cluster, channel), table in tables.items():
        for (other_cluster, other_channel), other in tables.items():
            if cluster == other_cluster and channel < other_channel:
                both = table.keys() & other.keys()
                total += len(both)
                agreed += sum(1 for scenario in both if table[scenario] == other[scenario])
    return agreed / total if total else float("nan")


def without_copies(labels: Sequence[Label], same: float = 0.98, fewest: int = 40) -> list[Label]:
    """Leaves out clusters whose table is that of another cluster: makers of tables copy them, and so does a forest.

    A table is a copy where, of at least ``fewest`` rows that both have, the share ``same`` agrees.
    """
    tables: dict[str, dict[tuple[str, object], str]] = {}
    for label in labels:
        tables.setdefault(label.cluster, {})[label.channel, label.scenario] = label.algorithm
    kept: list[str] = []
    for cluster in sorted(tables, key=lambda name: -len(tables[name])):
        mine = tables[cluster]
        if not any(_same(mine, tables[other], same, fewest) for other in kept):
            kept.append(cluster)
    return [label for label in labels if label.cluster in set(kept)]


def _same(one: dict[tuple[str, object], str], other: dict[tuple[str, object], str], same: float, fewest: int) -> bool:
    both = one.keys() & other.keys()
    return len(both) >= fewest and sum(one[key] == other[key] for key in both) >= same * len(both)
