"""What a packer is given and gives: which measurements start now, and on which nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

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


def require_possible(waiting: Sequence[Task], topology: Topology) -> None:
    """Raises ValueError for a task that needs more nodes than the job has."""
    for task in waiting:
        if task.nodes > len(topology.hosts):
            raise ValueError(f"{task.nodes} nodes for {task.point.scenario}, and the job has {len(topology.hosts)}")
