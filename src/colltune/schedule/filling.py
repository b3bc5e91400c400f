"""Packing by expected durations: long points first, short ones in the gaps, without barriers between them.

It knows which nodes and layers are in use, and where the next measurement fits best.
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.topology import Top, Topology
from colltune.schedule.contract import Placement, Task, require_possible

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
        hosts: list[int] = []
        self._collect(int(np.where(enough, rank, _NEVER).argmin()), nodes, hosts)
        return tuple(sorted(hosts))

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

    def _collect(self, switch: int, nodes: int, hosts: list[int]) -> None:
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
            self._collect(part, taken, hosts)
            missing -= taken
        for host in self._hosts[switch]:
            if not missing:
                return
            if not self._busy[host]:
                hosts.append(host)
                missing -= 1


@dataclass(frozen=True, slots=True)
class _Running:
    nodes: tuple[int, ...]
    layers: frozenset[int]
    end_s: float


@dataclass(frozen=True, slots=True)
class _Reservation:
    """The nodes and the expected start of the first task that has to wait."""

    nodes: frozenset[int]
    layers: frozenset[int]
    start_s: float


class FillingPacker:
    """Starts a point as soon as there is room for it.

    The widest points come first, among equals the longest: what is left at the end is small and fills the gaps. The
    first point that finds no room gets the earliest place that will come free; others start before it only if they
    will be over by then, or run elsewhere. Without that a wide point would wait for as long as there are narrow
    ones. (Backfilling, as batch schedulers do it.) Running placements share no node and no layer of the network, and
    equal calls give equal answers. Expected durations may be wrong: they decide how well the time is used, never what
    is safe.

    Of parts of the job that serve equally well it takes the first ones; with a ``seed`` those that it draws, within
    what the topology allows.
    """

    def __init__(self, topology: Topology, seed: int | None = None) -> None:
        hosts = range(len(topology.hosts))
        self._order = list(hosts) if seed is None else random.Random(seed).sample(hosts, len(hosts))
        self._occupancy = Occupancy(topology if seed is None else topology.in_order(self._order))
        self.topology = topology
        self._running: dict[Placement, _Running] = {}

    def start(self, waiting: Sequence[Task], now_s: float) -> list[Placement]:
        """What starts at ``now_s`` of ``waiting`` (no task twice, most useful first); it runs until ``finish``.

        Raises ValueError for a task that needs more nodes than there are.
        """
        require_possible(waiting, self.topology)
        started: list[Placement] = []
        reservation: _Reservation | None = None
        too_many = len(self.topology.hosts) + 1  # the fewest nodes that were seen to find no room
        nodes: tuple[int, ...] | None = None  # room that was found and not taken
        for task in sorted(waiting, key=lambda task: (-task.nodes, -task.duration_s)):
            if task.nodes >= too_many:
                continue
            if nodes is None or len(nodes) != task.nodes:
                nodes = self._occupancy.find(task.nodes)
            if nodes is None:
                too_many = task.nodes
                if reservation is None:
                    reservation = self._reserve(task, now_s)
                continue
            if reservation is None or self._is_harmless(task, nodes, reservation, now_s):
                started.append(self._begin(task, nodes, now_s))
                nodes = None
        return started

    def finish(self, placement: Placement) -> None:
        """Gives the nodes and layers of ``placement`` back. Raises ValueError if it is not running."""
        if placement not in self._running:
            raise ValueError(f"{placement.task.point.scenario} is not running")
        running = self._running.pop(placement)
        self._occupancy.free(running.nodes, running.layers)

    def _begin(self, task: Task, nodes: tuple[int, ...], now_s: float) -> Placement:
        placement = Placement(task, tuple(sorted(self._order[node] for node in nodes)))
        self._running[placement] = _Running(nodes, self._occupancy.take(nodes), now_s + task.duration_s)
        return placement

    def _is_harmless(self, task: Task, nodes: tuple[int, ...], reservation: _Reservation, now_s: float) -> bool:
        if now_s + task.duration_s <= reservation.start_s:
            return True
        elsewhere = reservation.nodes.isdisjoint(nodes)
        return elsewhere and reservation.layers.isdisjoint(self._occupancy.topology.layers_used(nodes))

    def _reserve(self, task: Task, now_s: float) -> _Reservation | None:
        """Assumes that the running points end in the expected order, until there is room for ``task``."""
        ended: list[_Running] = []
        nodes, start_s = None, now_s
        for running in sorted(self._running.values(), key=lambda running: running.end_s):
            self._occupancy.free(running.nodes, running.layers)
            ended.append(running)
            if self._occupancy.has_room(task.nodes):
                nodes, start_s = self._occupancy.find(task.nodes), max(now_s, running.end_s)
                break
        for running in ended:
            self._occupancy.take(running.nodes)
        if nodes is None:
            return None
        return _Reservation(frozenset(nodes), self._occupancy.topology.layers_used(nodes), start_s)
