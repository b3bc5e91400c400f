"""The greedy batches of the ACCLAiM paper (section VI.B), for comparison; and what a packing costs, by simulation."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from colltune.core.topology import Top, Topology
from colltune.schedule.contract import Placement, Task, require_possible


class Packer(Protocol):
    """Decides which tasks start now, and where.

    Laws (tested by tests/packer_laws.py): a task gets as many different nodes as it needs; running placements share no
    node and no layer of the network; with nothing running and something waiting, something starts; what starts is among
    what waits, each once; a task that needs more nodes than there are is a ValueError; equal calls give equal answers.
    """

    @property
    def topology(self) -> Topology: ...

    def start(self, waiting: Sequence[Task], now_s: float) -> list[Placement]: ...

    def finish(self, placement: Placement) -> None: ...


class GreedyBatchPacker:
    """Takes points in their order onto the next unused nodes, until one does not fit; then waits for all of them.

    The nodes of a lowest layer are used up by the first point that takes one of them. What it does not look at is
    time: a short point can take the place beside a long one, and the next long one then runs after it instead of
    beside it. So the topology with the most parallelism is not always the fastest (the paper's figure 11a).
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._running: list[Placement] = []

    @property
    def topology(self) -> Topology:
        return self._topology

    def start(self, waiting: Sequence[Task], now_s: float) -> list[Placement]:
        del now_s
        require_possible(waiting, self._topology)
        if self._running:
            return []
        unused = list(tree_order(self._topology))
        layers: set[int] = set()
        for task in waiting:
            nodes = unused[: task.nodes]
            needed = self._topology.layers_used(nodes)
            # Nodes can be left in two parts of one layer whose inside is used: that layer is not for a second point.
            if len(nodes) < task.nodes or needed & layers:
                break
            self._running.append(Placement(task, tuple(sorted(nodes))))
            layers |= needed
            touched = {self._topology.leaf[node] for node in nodes}
            unused = [node for node in unused[task.nodes :] if self._topology.leaf[node] not in touched]
            if self._topology.top is Top.ALONE:
                break
        return list(self._running)

    def finish(self, placement: Placement) -> None:
        self._running.remove(placement)


def tree_order(topology: Topology) -> tuple[int, ...]:
    """Positions of the hosts, neighbours in the tree side by side, else in the order of the job."""
    first = {switch: position for position, switch in reversed(list(enumerate(topology.leaf)))}
    for switch in range(len(topology.switches) - 1, 0, -1):
        parent = topology.switches[switch].parent
        first[parent] = min(first.get(parent, len(topology.hosts)), first.get(switch, len(topology.hosts)))
    keys = [tuple(first.get(switch, 0) for switch in reversed(path)) for path in topology.paths]
    return tuple(sorted(range(len(topology.hosts)), key=lambda host: (keys[topology.leaf[host]], host)))


@dataclass(frozen=True, slots=True)
class Run:
    """A placement and when it ran, in seconds from the start."""

    placement: Placement
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Timeline:
    """All that ran, in the order in which it started."""

    runs: tuple[Run, ...]

    @property
    def makespan_s(self) -> float:
        return max((run.end_s for run in self.runs), default=0.0)

    @property
    def serial_s(self) -> float:
        """The time of the same tasks one after another."""
        return sum(run.end_s - run.start_s for run in self.runs)

    @property
    def speedup(self) -> float:
        return self.serial_s / self.makespan_s if self.makespan_s else 1.0


def simulate(
    packer: Packer, tasks: Sequence[Task], window: int, actual_s: Callable[[Task], float] | None = None
) -> Timeline:
    """Runs ``tasks``, most useful first, of which the packer sees the first ``window`` that have not started.

    ``actual_s`` gives the true duration of a task; without it all durations are as expected.
    """
    waiting = list(tasks)
    runs: list[Run] = []
    running: list[tuple[float, int, Placement]] = []
    now_s = 0.0
    while waiting or running:
        started = packer.start(waiting[:window], now_s)
        begun = {id(placement.task) for placement in started}
        waiting = [task for task in waiting if id(task) not in begun] if begun else waiting
        for placement in started:
            end_s = now_s + (actual_s(placement.task) if actual_s else placement.task.duration_s)
            heapq.heappush(running, (end_s, len(runs), placement))
            runs.append(Run(placement, now_s, end_s))
        if not running:
            raise ValueError("the packer starts nothing, and nothing runs")
        now_s, _, done = heapq.heappop(running)
        packer.finish(done)
    return Timeline(tuple(runs))
