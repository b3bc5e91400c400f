"""What measuring side by side saves: 64 nodes as 1, 2, 4 and 64 groups of a dragonfly, as in ACCLAiM's figure 11.

    python benchmarks/bench_parallel.py [--seeds 3] [--together 4]

Seven collectives, every algorithm, 2 to 64 nodes, 1 B to 1 MiB, times from a simulated dragonfly
(data/simulated_dragonfly_1024.parquet); the groups change what may run at once, not the times. A measurement costs
1 ms, its repetitions and its warm-up.

``speedup_G_groups``: a whole campaign to the stop of its own, one point after another (each learner asks for a point
once it knows all results), over the same campaign in parallel. There each learner asks for ``together`` points at once
and for more when it has their results, so that what is measured hangs on no placement; the packer sees what all seven
wait for, and knows durations only as ``Durations`` predicts them from what was measured. ``slowdown_serial`` and
``slowdown_parallel`` are what the two campaigns select, on average over the best: the result is equal if these are.

Writes bench/parallel.json and prints it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from statistics import mean

from colltune.core.sample import Sample, Status
from colltune.core.space import Point
from colltune.schedule.contract import Placement, Task
from colltune.schedule.durations import Durations, ScenarioRows
from colltune.schedule.filling import FillingPacker
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from harness import options_of, part_of, write_figures
from learned import TABLE, Learned, learn
from packing import Packer
from papers.parallel import dragonfly

NODES = 64
GROUPS = (1, 2, 4, 64)


def grids() -> list[Grid]:
    """The part of the table that 64 nodes can form."""
    found = load_grids([TABLE])
    return [part_of(grid, [row for row, s in enumerate(grid.scenarios) if s.nodes <= NODES]) for grid in found]


def makespan_s(packer: Packer, campaigns: Sequence[Learned]) -> float:
    """Seconds until all batches of all campaigns are measured; a batch waits for the one before it."""
    durations = Durations(0.0125)
    left = [list(campaign.batches) for campaign in campaigns]
    open_tasks: dict[int, int] = {}  # of the batch that each campaign is at
    took_s: dict[int, float] = {}  # by the identity of the task's point
    waiting: list[tuple[int, Point]] = []
    running: list[tuple[float, int, Placement, int]] = []
    now_s, number = 0.0, 0

    def release(campaign: int) -> None:
        if left[campaign]:
            batch = left[campaign].pop(0)
            open_tasks[campaign] = len(batch)
            for point, cost_s in batch:
                took_s[id(point)] = cost_s
                waiting.append((campaign, point))

    for campaign in range(len(campaigns)):
        release(campaign)
    while waiting or running:
        tasks = {
            id(point): Task(point, durations.expected_s(ScenarioRows.of([point.scenario]))[0]) for _, point in waiting
        }
        for placement in packer.start(list(tasks.values()), now_s):
            key = id(placement.task.point)
            campaign = next(owner for owner, point in waiting if id(point) == key)
            waiting = [(owner, point) for owner, point in waiting if id(point) != key]
            heapq.heappush(running, (now_s + took_s[key], number, placement, campaign))
            number += 1
        now_s, _, placement, campaign = heapq.heappop(running)
        packer.finish(placement)
        point = placement.task.point
        durations.tell([Sample(point.scenario, point.choices[0], Status.OK, (1.0,), cost_s=took_s[id(point)])])
        open_tasks[campaign] -= 1
        if not open_tasks[campaign]:
            release(campaign)
    return now_s


def learned_figures(seeds: int, together: int) -> dict[str, float]:
    serial = [[learn(grid, seed) for grid in grids()] for seed in range(seeds)]
    parallel = [[learn(grid, seed, together) for grid in grids()] for seed in range(seeds)]
    alone_s = [sum(campaign.machine_s for campaign in campaigns) for campaigns in serial]
    figures = {}
    for groups in GROUPS:
        took_s = [makespan_s(FillingPacker(dragonfly(NODES, groups)), campaigns) for campaigns in parallel]
        name = f"speedup_{groups}_group{'s' if groups > 1 else ''}"
        figures[name] = mean(before / after for before, after in zip(alone_s, took_s, strict=True))
    figures["serial_s"] = mean(alone_s)
    figures["parallel_points_s"] = mean(sum(one.machine_s for one in campaigns) for campaigns in parallel)
    figures["slowdown_serial"] = mean(one.mean for campaigns in serial for one in campaigns)
    figures["slowdown_parallel"] = mean(one.mean for campaigns in parallel for one in campaigns)
    return figures


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--together", type=int, default=4)
    options = parser.parse_args()
    figures = learned_figures(options.seeds, options.together)
    write_figures("parallel", {name: round(value, 4) for name, value in figures.items()})


if __name__ == "__main__":
    main()
