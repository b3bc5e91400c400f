"""Packing by expected durations: long points first, short ones in the gaps, without barriers between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from colltune.core.topology import Topology
from colltune.schedule.contract import Placement, Task, require_possible
from colltune.schedule.occupancy import Occupancy


@dataclass(frozen=True, slots=True)
class _Running:
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
    ones. (Backfilling, as batch schedulers do it.)
    """

    def __init__(self, topology: Topology) -> None:
        self._occupancy = Occupancy(topology)
        self._running: dict[Placement, _Running] = {}

    @property
    def topology(self) -> Topology:
        return self._occupancy.topology

    def start(self, waiting: Sequence[Task], now_s: float) -> list[Placement]:
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
        if placement not in self._running:
            raise ValueError(f"{placement.task.point.scenario} is not running")
        self._occupancy.free(placement.nodes, self._running.pop(placement).layers)

    def _begin(self, task: Task, nodes: tuple[int, ...], now_s: float) -> Placement:
        placement = Placement(task, nodes)
        self._running[placement] = _Running(self._occupancy.take(nodes), now_s + task.duration_s)
        return placement

    def _is_harmless(self, task: Task, nodes: tuple[int, ...], reservation: _Reservation, now_s: float) -> bool:
        if now_s + task.duration_s <= reservation.start_s:
            return True
        elsewhere = reservation.nodes.isdisjoint(nodes)
        return elsewhere and reservation.layers.isdisjoint(self.topology.layers_used(nodes))

    def _reserve(self, task: Task, now_s: float) -> _Reservation | None:
        """Assumes that the running points end in the expected order, until there is room for ``task``."""
        ended: list[tuple[Placement, _Running]] = []
        nodes, start_s = None, now_s
        for placement, running in sorted(self._running.items(), key=lambda item: item[1].end_s):
            self._occupancy.free(placement.nodes, running.layers)
            ended.append((placement, running))
            if self._occupancy.has_room(task.nodes):
                nodes, start_s = self._occupancy.find(task.nodes), max(now_s, running.end_s)
                break
        for placement, _ in ended:
            self._occupancy.take(placement.nodes)
        if nodes is None:
            return None
        return _Reservation(frozenset(nodes), self.topology.layers_used(nodes), start_s)
