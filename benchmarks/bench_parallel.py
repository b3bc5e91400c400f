"""What measuring side by side saves: 64 nodes as 1, 2, 4 and 64 groups of a dragonfly, as in ACCLAiM's figure 11.

Simulated on a synthetic table: four collectives with three textbook algorithms each, 1 to 64 nodes x 4 ranks, every
power of two up to the largest size; latencies and bandwidths of a 200 Gbit/s network (ALPHA_S, NODE_BYTES_PER_S).
What a point costs follows the agent: trial, warm-up, repetitions by Effort's rules with NEEDED for the interval, calls
back to back, a synchronisation before each. The points come in a random order, the packer sees the next 64.

The same points are measured in either way, so the samples, the models and the rules are equal. Durations as the OSU
benchmarks would need (1,000 repetitions up to 8 KiB, 100 above, and the warm-up) are the paper's convention. The
points on all nodes run alone, so ``bound`` is what no packer can exceed: the more of the time they take (large
messages, slow networks), the less there is to gain.

Writes bench/parallel.json and prints it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from math import ceil, log2
from pathlib import Path
from statistics import mean

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from colltune.core.space import Point, powers_of_two
from colltune.core.topology import Top, Topology
from colltune.measure.contract import Effort
from colltune.schedule.contract import Packer, Task
from colltune.schedule.filling import FillingPacker
from colltune.schedule.greedy import GreedyBatchPacker
from colltune.schedule.simulate import simulate

NODES, PPN, WINDOW, ORDERS = 64, 4, 64, 3
GROUPS = (1, 2, 4, 64)
ALPHA_S, NODE_BYTES_PER_S = 2e-6, 25e9
ALPHA_INSIDE_S, RANK_BYTES_PER_S = 5e-7, 10e9  # on one node, through shared memory
# Repetitions for a 5% interval of the median: the mean over public measurements of LUMI, Leonardo, MareNostrum 5 and
# Polaris lies between 40 and 90.
NEEDED = 60
POINT_S = 1e-3  # request, answer, and making the communicator
COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast")


def times_s(scenario: Scenario) -> dict[Choice, float]:
    """Seconds of each algorithm: latency and bandwidth terms; the ranks of a node share its network."""
    ranks, size, hops = scenario.ranks, scenario.size_bytes, ceil(log2(scenario.ranks))
    alone = scenario.nodes == 1
    alpha = ALPHA_INSIDE_S if alone else ALPHA_S
    beta = 1.0 / RANK_BYTES_PER_S if alone else PPN / NODE_BYTES_PER_S
    moved = size * beta
    twice = 2 * (ranks - 1) / ranks * moved
    table = {
        "bcast": {
            "binomial": hops * (alpha + moved),
            "scatter_recursive_doubling": 2 * hops * alpha + twice,
            "scatter_ring": (hops + ranks - 1) * alpha + twice,
        },
        "allreduce": {
            "recursive_doubling": hops * (alpha + moved),
            "reduce_scatter_allgather": 2 * hops * alpha + twice,
            "ring": 2 * (ranks - 1) * alpha + twice,
        },
        "allgather": {
            "recursive_doubling": hops * alpha + (ranks - 1) * moved,
            "brucks": hops * alpha + 1.2 * (ranks - 1) * moved,
            "ring": (ranks - 1) * (alpha + moved),
        },
        "alltoall": {
            "brucks": hops * (alpha + ranks / 2 * moved),
            "pairwise": (ranks - 1) * (alpha + moved),
            "scattered": (ranks - 1) * (alpha / 2 + moved),
        },
    }[scenario.collective]
    return {Choice(name): time_s for name, time_s in table.items()}


def agent_cost_s(time_s: float, scenario: Scenario, effort: Effort) -> float:
    """Seconds that the agent spends on a choice whose calls take ``time_s``."""
    fitting = 20 * effort.box_s / time_s
    fewest = effort.fewest if fitting >= effort.fewest else max(3, int(fitting))
    repetitions = max(fewest, min(effort.most, NEEDED, effort.box_s / time_s))
    warm_up = 1 if effort.warm_up * time_s > effort.box_s else effort.warm_up
    back_to_back = min(50.0, max(3.0, 0.1 * effort.box_s / time_s))
    synchronisations = (repetitions + warm_up + 2) * 2 * ALPHA_S * ceil(log2(scenario.ranks))
    return (1 + warm_up + repetitions + back_to_back) * time_s + synchronisations


def osu_cost_s(time_s: float, scenario: Scenario, effort: Effort) -> float:
    del effort
    return time_s * (1100 if scenario.size_bytes <= 8192 else 110)


def campaign(largest: int, cost_s: Callable[[float, Scenario, Effort], float]) -> list[Task]:
    """Every point of the four collectives, with what it takes."""
    tasks = []
    for collective in COLLECTIVES:
        for nodes in powers_of_two(NODES):
            for size in powers_of_two(largest, start=4):
                scenario = Scenario(collective, nodes, PPN, size)
                times = times_s(scenario)
                total_s = POINT_S + sum(cost_s(time_s, scenario, Effort()) for time_s in times.values())
                tasks.append(Task(Point(scenario, tuple(times)), total_s))
    return tasks


def dragonfly(groups: int) -> Topology:
    hosts = [f"n{host:02}" for host in range(NODES)]
    return Topology.from_paths(hosts, [(f"g{host * groups // NODES}",) for host in range(NODES)], Top.CROSSBAR)


def speedup(make: Callable[[Topology], Packer], tasks: list[Task], groups: int) -> float:
    """Mean over a few orders of the points."""
    found = []
    for seed in range(ORDERS):
        order = random.Random(seed).sample(tasks, len(tasks))
        found.append(simulate(make(dragonfly(groups)), order, WINDOW).speedup)
    return mean(found)


def bound(tasks: list[Task], groups: int) -> float:
    """What no packer exceeds: a point on several nodes has whole groups for itself, and no node does two things."""
    width = NODES // groups
    groups_s = sum(task.duration_s * ceil(task.nodes / width) / groups for task in tasks if task.nodes > 1)
    nodes_s = sum(task.duration_s * task.nodes / NODES for task in tasks)
    return sum(task.duration_s for task in tasks) / max(groups_s, nodes_s)


def main() -> None:
    figures: dict[str, float] = {}
    main_tasks = campaign(65536, agent_cost_s)
    for groups in GROUPS:
        name = f"{groups}_group{'s' if groups > 1 else ''}"
        figures[f"speedup_{name}"] = speedup(FillingPacker, main_tasks, groups)
        figures[f"bound_{name}"] = bound(main_tasks, groups)
        figures[f"greedy_{name}"] = speedup(GreedyBatchPacker, main_tasks, groups)
    for label, largest, cost_s in (("1mib", 1 << 20, agent_cost_s), ("osu_1mib", 1 << 20, osu_cost_s)):
        tasks = campaign(largest, cost_s)
        for groups in GROUPS[1:]:
            figures[f"{label}_speedup_{groups}_groups"] = speedup(FillingPacker, tasks, groups)
            figures[f"{label}_bound_{groups}_groups"] = bound(tasks, groups)
            figures[f"{label}_greedy_{groups}_groups"] = speedup(GreedyBatchPacker, tasks, groups)
    text = json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=2)
    Path("bench").mkdir(exist_ok=True)
    Path("bench/parallel.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
