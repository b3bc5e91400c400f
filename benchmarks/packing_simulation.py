"""What a packing costs, on known durations instead of an MPI."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from colltune.schedule.contract import Packer, Placement, Task


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
