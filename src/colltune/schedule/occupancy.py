"""Which nodes and layers are in use, and where the next measurement fits best."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colltune.core.topology import Top, Topology

_NEVER = np.iinfo(np.int64).max


class Occupancy:
    """The state of a topology while measurements run on it.

    ``find`` costs a few array operations over the switches, ``take`` and ``free`` a walk up the tree per node.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        count = len(topology.switches)
        self._parent = [switch.parent for switch in topology.switches]
        self._depth = np.array([len(path) for path in topology.paths])
        self._children: list[list[int]] = [[] for _ in range(count)]
        for index, parent in enumerate(self._parent):
            if parent >= 0:
                self._children[parent].append(index)
        self._hosts: list[list[int]] = [[] for _ in range(count)]
        for host, switch in enumerate(topology.leaf):
            self._hosts[switch].append(host)
        self._busy = [False] * len(topology.hosts)
        self._used: NDArray[np.bool_] = np.zeros(count, dtype=bool)
        # Free hosts that hang on a switch itself, and hosts that a measurement could have with it as its highest
        # switch: those below switches in use do not count.
        self._direct: NDArray[np.int64] = np.array([len(hosts) for hosts in self._hosts])
        self._available = self._direct.copy()
        for index in range(count - 1, 0, -1):
            self._available[self._parent[index]] += self._available[index]
        self._running = 0

    def find(self, nodes: int) -> tuple[int, ...] | None:
        """The nodes on which a measurement fits now and hinders others least; None if it does not fit.

        Several nodes go below the switch with the fewest free nodes that has enough; one node goes where several
        could not.
        """
        if not self.has_room(nodes):
            return None
        if nodes == 1:
            return self._find_one()
        enough = ~self._used & (self._available >= nodes)
        rank = self._available * (int(self._depth.max()) + 1) - self._depth
        found: list[int] = []
        self._collect(int(np.where(enough, rank, _NEVER).argmin()), nodes, found)
        return tuple(sorted(found))

    def has_room(self, nodes: int) -> bool:
        """Whether a measurement on ``nodes`` nodes fits now. If it does not, none on more nodes does."""
        if self._running and self.topology.top is Top.ALONE:
            return False
        if nodes == 1:
            return bool((self._direct > 0).any())
        return bool((~self._used & (self._available >= nodes)).any())

    def take(self, nodes: Sequence[int]) -> frozenset[int]:
        """Marks ``nodes`` and the layers between them; gives these. Raises ValueError where one is in use."""
        layers = self.topology.layers_used(nodes)
        if any(self._busy[node] for node in nodes) or any(self._used[layer] for layer in layers):
            raise ValueError("a node or a layer is in use already")
        self._mark(nodes, busy=True)
        for layer in layers:
            self._used[layer] = True
            self._add(self._parent[layer], -int(self._available[layer]))
        self._running += 1
        return layers

    def free(self, nodes: Sequence[int], layers: frozenset[int]) -> None:
        """Frees what ``take`` marked."""
        for layer in layers:
            self._used[layer] = False
            self._add(self._parent[layer], int(self._available[layer]))
        self._mark(nodes, busy=False)
        self._running -= 1

    def _mark(self, nodes: Sequence[int], *, busy: bool) -> None:
        for node in nodes:
            self._busy[node] = busy
        for leaf, count in Counter(self.topology.leaf[node] for node in nodes).items():
            change = -count if busy else count
            self._direct[leaf] += change
            self._add(leaf, change)

    def _add(self, switch: int, change: int) -> None:
        """Changes what is available at ``switch`` and above, up to a switch in use: it hides all that is below."""
        while switch >= 0:
            self._available[switch] += change
            if self._used[switch]:
                return
            switch = self._parent[switch]

    def _find_one(self) -> tuple[int, ...]:
        free = self._direct > 0
        # On a switch in use no other measurement can have more than one node.
        rank = self._direct + np.where(self._used, 0, len(self._busy) + 1)
        switch = int(np.where(free, rank, _NEVER).argmin())
        return (next(host for host in self._hosts[switch] if not self._busy[host]),)

    def _collect(self, switch: int, nodes: int, found: list[int]) -> None:
        """Appends ``nodes`` free hosts below ``switch``, from as few of its parts as will do."""
        parts = [child for child in self._children[switch] if not self._used[child] and self._available[child] > 0]
        room = {child: int(self._available[child]) for child in parts}
        parts.sort(key=lambda child: -room[child])
        missing = nodes
        for index, part in enumerate(parts):
            if not missing:
                return
            if room[part] >= missing:  # the last that will do is the smallest one
                part = parts[bisect_right(parts, -missing, lo=index, key=lambda child: -room[child]) - 1]
            taken = min(missing, room[part])
            self._collect(part, taken, found)
            missing -= taken
        for host in self._hosts[switch]:
            if not missing:
                return
            if not self._busy[host]:
                found.append(host)
                missing -= 1
