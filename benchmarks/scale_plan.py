"""What a job of many nodes buys with its time, by simulation: `colltune plan`, thinking, and the check of results.

``plan_NODES_MINUTES``: on so many nodes x 12, the share of what a job calls (seven collectives) whose every choice
is measured within a budget of so many minutes; ``regions_NODES_MINUTES``: the regions that are proven at most.
Calibrated by the simulated dragonfly of learned.py on 2 to 64 of its nodes, and a launch that takes 25 s on 2,048
nodes and a level of the tree less on half of them; 16 nodes are on a switch, and all switches are connected with each
other. ``serial_...``: the same where the network is not known. ``thinking_share_2048``: the processor's time of the
learner over the machine's, in the first 60 s of measuring broadcasts on 2,048 x 12 at the invented times of
scale_decide.py. ``check_needs_s``: the check of results there, where a case takes 10 ms; ``check_limit_s``: when it is
given up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from time import process_time

from threadpoolctl import threadpool_limits

from colltune.bench.replay import MeasuringCost
from colltune.catalog import load
from colltune.core.sample import Sample, Status
from colltune.core.topology import Top, Topology
from colltune.learn.decision import DecisionLearner
from colltune.prove.replay.conformance import rank_counts
from colltune.prove.replay.on_workbench import ReplaySlice, short_limit_s
from colltune.session.plan import LaunchCosts, costs_of
from colltune_study.recorded.dataset import load_grids
from learned import TABLE
from scale_decide import Invented, broadcasts

NODES, PPN, MINUTES = (128, 512, 2048), 12, (5, 10, 20)
LAUNCH_S, CASE_S, THINKING_S = 25.0, 0.01, 60.0
COST = MeasuringCost(set_up_s=0.05)  # of a pair, as on eight nodes


def scale_plan() -> dict[str, float]:
    ranks = rank_counts(NODES[-1] * PPN)
    check = ReplaySlice(0.0, CASE_S, 1, len(ranks))
    needs_s = check.whole_s(LAUNCH_S, ruled=4)
    figures = {"check_needs_s": round(needs_s, 1), "check_limit_s": round(short_limit_s(needs_s), 1)}
    return {**figures, **planned(check), "thinking_share_2048": round(thinking_share(), 4)}


def planned(check: ReplaySlice) -> dict[str, float]:
    grids = load_grids([TABLE])
    samples = tuple(
        Sample(scenario, choice, Status.OK, (grid.time(scenario, choice),), cost_s=COST.on(grid, scenario, choice))
        for grid in grids
        for scenario, choice in grid.recorded
        if scenario.nodes <= 64 and math.isfinite(grid.time(scenario, choice))
    )
    topology = Topology.from_paths([str(n) for n in range(64)], ([str(n // 16)] for n in range(64)), Top.CROSSBAR)
    calibration = LaunchCosts(64, 1, LAUNCH_S, LAUNCH_S, check, True, samples, topology)
    figures = {}
    for nodes, known in product(NODES, (True, False)):
        costs = costs_of(
            load("mpich", "5.0.2"),
            calibration if known else replace(calibration, topology=None),
            [grid.scenarios[0].collective for grid in grids],
            (nodes, PPN),
            budgets_s=[60.0 * minutes for minutes in MINUTES],
            launch_s=LAUNCH_S * (1 + math.log2(nodes)) / (1 + math.log2(NODES[-1])),
            node_bytes=512 << 30,
        )
        way = "" if known else "serial_"
        figures[f"plan_{nodes}_least_s"] = round(costs.least_s)
        for minutes, bought in zip(MINUTES, costs.bought, strict=True):
            figures[f"{way}plan_{nodes}_{minutes}m"] = round(bought.called, 3)
            figures[f"{way}regions_{nodes}_{minutes}m"] = bought.regions
    return figures


@threadpool_limits.wrap(limits=1)  # as `tune` runs
def thinking_share() -> float:
    """Of a learner that asks for one scenario after another, each with all of its choices."""
    space = broadcasts(load("mpich", "5.0.2"), NODES[-1], PPN)
    truth, learner = Invented(list(space.pairs())), DecisionLearner(space, 0)
    machine_s = thinking_s = 0.0
    while machine_s < THINKING_S:
        began_s = process_time()
        points = learner.ask(1)
        thinking_s += process_time() - began_s
        for point in points:
            pairs = [(point.scenario, choice) for choice in point.choices]
            times = [math.exp(log_time) for log_time in truth.predict(pairs).log_time]
            samples = [
                Sample(*pair, Status.OK, (t,) * 5, cost_s=COST.of(t)) for pair, t in zip(pairs, times, strict=True)
            ]
            machine_s += sum(sample.cost_s for sample in samples)
            began_s = process_time()
            learner.tell(samples)
            learner.should_stop()
            thinking_s += process_time() - began_s
        if not points:
            break
    return thinking_s / machine_s
