"""ACCLAiM's figure 11: what measuring on disjoint parts of a network at once saves."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import mean

from colltune.bench.replay import MeasuringCost
from colltune.core.errors import InputError
from colltune.core.space import Point
from colltune.core.topology import Top, Topology
from colltune.schedule.contract import Task
from colltune.schedule.filling import FillingPacker
from colltune.store.grid import Grid
from colltune_study.research.compare import Estimate, estimate
from colltune_study.research.figures import COLOURS, new_panels, save
from packing import GreedyBatchPacker, Packer, Timeline, simulate
from papers.study import Made, Study, text_of

_WINDOW = 64
_PACKERS: dict[str, Callable[[Topology], Packer]] = {"ACCLAiM's batches": GreedyBatchPacker, "ours": FillingPacker}


def acclaim_11(study: Study) -> Made:
    """Speed-up and parallelism of the packers on one, two and four groups, and with every node on its own."""
    grid = _table(study)
    hosts = max(scenario.nodes for scenario in grid.scenarios)
    topologies = {f"{groups} group{'s' if groups > 1 else ''}": groups for groups in (1, 2, 4) if groups <= hosts}
    topologies[f"{hosts} groups"] = hosts
    figure, panels = new_panels(2, width=4.6, height=3.2)
    rows = []
    for number, (packer, make) in enumerate(_PACKERS.items()):
        found = [_both(make, grid, hosts, groups, study.seeds) for groups in topologies.values()]
        for panel, which in zip(panels, range(2), strict=True):
            values = [pair[which] for pair in found]
            places = [place + 0.4 * number - 0.2 for place in range(len(values))]
            errors = [[v.median - v.low for v in values], [v.high - v.median for v in values]]
            heights = [value.median for value in values]
            panel.bar(places, heights, 0.38, color=COLOURS[number], label=packer, yerr=errors, capsize=2)
        rows += [[packer, topology, *map(text_of, pair)] for topology, pair in zip(topologies, found, strict=True)]
    for panel, label in zip(panels, ("speed-up", "measurements at once"), strict=True):
        panel.set_xticks(range(len(topologies)), list(topologies), fontsize=8)
        panel.set_ylabel(label)
        panel.axhline(1.0, color="grey", linewidth=1)
    panels[0].legend(fontsize=8, frameon=False)
    figure.suptitle(f"ACCLAiM 11: {grid.name} measured in parallel on {hosts} nodes", fontsize=10)
    save(figure, study.out / "acclaim_11.png")
    caption = (
        f"Every scenario of {grid.name} in random order, the packer sees {_WINDOW}; {study.seeds} orders, median"
        " and 95% interval (bootstrap). Scenarios on all nodes run alone, which bounds what can be saved."
    )
    columns = ["packer", "topology", "speed-up", "measurements at once"]
    return Made("acclaim_11", "ACCLAiM 11: parallel collection", caption, columns, rows, "acclaim_11.png")


def _table(study: Study) -> Grid:
    """The allgather (as in the paper, else any) with most shapes that need few of the nodes."""
    usable = [grid for grid in study.grids if len({scenario.nodes for scenario in grid.scenarios}) >= 4]
    usable = [grid for grid in usable if max(scenario.nodes for scenario in grid.scenarios) <= 512]
    if not usable:
        raise InputError("no table has four node counts of 512 or less", "Give a table with more node counts")
    return max(usable, key=lambda grid: (grid.collective == "allgather", len(grid.scenarios)))


def _both(
    make: Callable[[Topology], Packer], grid: Grid, hosts: int, groups: int, seeds: int
) -> tuple[Estimate, Estimate]:
    """Speed-up, and the mean number of measurements that run at once."""
    timelines = []
    for seed in range(seeds):
        tasks = random.Random(seed).sample(_tasks(grid), len(grid.scenarios))
        timelines.append(simulate(make(dragonfly(hosts, groups)), tasks, _WINDOW))
    return estimate([line.speedup for line in timelines]), estimate([at_once(line) for line in timelines])


def at_once(timeline: Timeline) -> float:
    """How many measurements run while one of them does, itself included, on average over the measurements."""
    middles = [(run.start_s + run.end_s) / 2.0 for run in timeline.runs]
    return mean(sum(run.start_s <= middle < run.end_s for run in timeline.runs) for middle in middles)


def _tasks(grid: Grid) -> list[Task]:
    cost, tasks = MeasuringCost(), []
    for scenario in grid.scenarios:
        choices = grid.space.choices(scenario)
        duration_s = sum(cost.on(grid, scenario, choice) for choice in choices)
        tasks.append(Task(Point(scenario, choices), duration_s))
    return tasks


def dragonfly(hosts: int, groups: int) -> Topology:
    names = [f"n{host:03}" for host in range(hosts)]
    return Topology.from_paths(names, [(f"g{host * groups // hosts}",) for host in range(hosts)], Top.CROSSBAR)
