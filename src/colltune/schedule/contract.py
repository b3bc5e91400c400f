"""The contract of packers: which measurements start now, and on which nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from colltune.core.space import Point
from colltune.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Task:
    """A point that waits to be measured, and the expected time of its measurement in seconds."""

    point: Point
    duration_s: float

    @property
    def nodes(self) -> int:
        return self.point.scenario.nodes


@dataclass(frozen=True, slots=True)
class Placement:
    """A task and the nodes (positions in the job) that it occupies until it is finished."""

    task: Task
    nodes: tuple[int, ...]


class Packer(Protocol):
    """Decides which tasks start now, and where.

    Laws (tested on every implementation by tests/packer_laws.py): a task gets as many
    different nodes as it needs; running placements share no node and no layer of the network; with nothing running
    and something waiting, something starts; what starts is among what waits, each once; a task that needs more nodes
    than there are is a ValueError; equal calls give equal answers. Expected durations may be wrong: they decide how
    well the time is used, never what is safe.
    """

    @property
    def topology(self) -> Topology: ...

    def start(self, waiting: Sequence[Task], now_s: float) -> list[Placement]:
        """What starts at ``now_s`` of ``waiting`` (no task twice, most useful first); it runs until ``finish``."""
        ...

    def finish(self, placement: Placement) -> None:
        """Gives the nodes and layers of ``placement`` back. Raises ValueError if it is not running."""
        ...


def require_possible(waiting: Sequence[Task], topology: Topology) -> None:
    """Raises ValueError for a task that needs more nodes than the job has."""
    for task in waiting:
        if task.nodes > len(topology.hosts):
            raise ValueError(f"{task.nodes} nodes for {task.point.scenario}, and the job has {len(topology.hosts)}")
