"""The greedy batches of the ACCLAiM paper (section VI.B), for comparison."""

from __future__ import annotations

from collections.abc import Sequence

from colltune.core.topology import Top, Topology
from colltune.schedule.contract import Placement, Task, require_possible


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
