"""How long tuning takes on a shape of job, and what a budget buys: computed from measured times.

A calibration is a launch and a few points of this job, or the journal of an earlier tuning. What it says of more nodes
and ranks is an extrapolation: calls by the model of ``colltune.search.extrapolate``, a launch by doublings of nodes.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from colltune.bench.backends import recall_backend
from colltune.bench.contract import Bench
from colltune.bench.parallel import lanes_of
from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.catalog import Catalogue
from colltune.catalog.read import check_collectives
from colltune.core.errors import InputError
from colltune.core.sample import PER_BLOCK, Sample, Scenario, Status, parse_collectives
from colltune.core.space import Point, message_sizes, shapes, tuned_sizes, weights_in_job
from colltune.core.topology import Topology
from colltune.core.units import format_count, format_duration, require_sizes
from colltune.measure.contract import Effort
from colltune.prove.audit.claims import most_claims
from colltune.prove.replay.conformance import rank_counts
from colltune.prove.replay.on_workbench import ReplaySlice, replay_slice
from colltune.prove.time_plan import TimePlan
from colltune.schedule.contract import Task
from colltune.schedule.filling import FillingPacker
from colltune.search.extrapolate import Extrapolation
from colltune.session.arguments import LARGEST_BYTES
from colltune.store.earlier import measurements
from colltune.store.tuning import load_tuning

# The budgets that are shown where none is asked for: 5, 10 and 30 minutes, 1, 2 and 6 hours.
BUDGETS_S = (300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0)
# Sizes in bytes at which a calibration measures, and how many choices of each scenario beside the default.
_SIZES = (8, 4096, 262144)
_CHOICES = 3
_EFFORT = Effort()
_MOST_AT_ONCE = 64  # more are not counted on: the first rank reads all requests and answers


@dataclass(frozen=True)
class LaunchCosts:
    """What a job of ``nodes`` x ``ppn`` ranks was measured to take, in seconds.

    ``launch_s``: one launch of the agent, its end included. ``other_s``: until the first launch. ``replay``: a part of
    the conformance check; None where ``other_s`` holds all of it, or nothing is replayed. ``files``: whether a library
    loads files, so that they are compared. ``samples``: the measurements. ``topology``: of this job, where its disjoint
    parts measure at once.
    """

    nodes: int
    ppn: int
    launch_s: float
    other_s: float
    replay: ReplaySlice | None
    files: bool
    samples: tuple[Sample, ...]
    topology: Topology | None = None

    def launch_on(self, nodes: int) -> float:
        """Expected seconds of a launch on ``nodes``: launchers start nodes along a tree, a level for each doubling."""
        return self.launch_s * (1.0 + math.log2(nodes)) / (1.0 + math.log2(self.nodes))

    def at_once(self, nodes: int) -> dict[int, int]:
        """On a job of ``nodes``, how many points measure at once, by the nodes of a point; 1 for those not in it.

        Its switches are taken to have as many nodes each as those of this job, and to meet in the same way.
        """
        if self.topology is None:
            return {}
        width = -(-len(self.topology.hosts) // len(set(self.topology.leaf)))
        hosts = [str(number) for number in range(nodes)]
        there = Topology.from_paths(hosts, ([str(number // width)] for number in range(nodes)), self.topology.top)
        places = {}
        for part in {part for part, _ in shapes(nodes, 2)}:
            point = Point(Scenario("bcast", part, 2, 1), ())
            tasks = [Task(point, 1.0) for _ in range(min(nodes // part, _MOST_AT_ONCE))]
            places[part] = len(FillingPacker(there).start(tasks, 0.0))
        return places

    @cached_property
    def calls(self) -> Extrapolation:
        """What measuring a choice takes. Raises InputError where other programs disturbed all that was measured."""
        if self.samples and all(sample.status is Status.DISTURBED for sample in self.samples):
            raise InputError(
                f"other programs disturbed all {len(self.samples)} measurements, so what measuring takes is not known",
                "Plan on idle processors, or give the measurements of a tuning by --from",
            )
        return Extrapolation.of(self.samples, _EFFORT)


@dataclass(frozen=True)
class Bought:
    """What ``budget_s`` buys. ``core_hours``: of all cores of the job, for the time that is really taken.

    ``measured``: the share of the grid that can be measured; ``called``: of what the job calls, by `weights_in_job`,
    that whose every choice can be, the most for its time first. ``regions``: of the decision table, those that can be
    proven at most.
    """

    budget_s: float
    total_s: float
    core_hours: float
    measured: float
    called: float
    regions: int


@dataclass(frozen=True)
class Costs:
    """The tuning of ``collectives`` on ``nodes`` x ``ppn`` ranks.

    ``shapes``, ``scenarios`` and ``pairs``: how many there are on the grid, pairs of a scenario and a choice.
    ``least_s``: the shortest tuning with a proof; ``grid_s``: measuring every pair once; ``whole_s``: the budget that
    has the time for that, and its share for the proof. ``remarks``: what was assumed, a sentence each.
    """

    collectives: tuple[str, ...]
    nodes: int
    ppn: int
    shapes: int
    scenarios: int
    pairs: int
    launch_s: float
    least_s: float
    grid_s: float
    whole_s: float
    bought: tuple[Bought, ...]
    remarks: tuple[str, ...]

    def core_hours(self, time_s: float) -> float:
        return time_s * self.nodes * self.ppn / 3600.0


def calibrate(bench: Bench, collectives: Sequence[str]) -> LaunchCosts:
    """Starts one launch of ``bench`` and measures a few points of ``collectives``. Raises LaunchError."""
    began_s = bench.now_s()
    slice_ = replay_slice(bench.library) if bench.library is not None else None
    other_s = bench.now_s() - began_s
    began_s = bench.now_s()
    source = bench.launch(seed=1)
    try:
        source.start()
        launch_s = bench.now_s() - began_s
        topology = bench.topology(None, lambda _text: None)
        lanes = lanes_of(bench, source, topology, collectives[0], lambda _text: None)
        points = _calibration_points(bench, collectives)
        samples = tuple(sample for _, answer in source.measure(points, _EFFORT) for sample in answer)
    finally:
        began_s = bench.now_s()
        source.close()
    launch_s += bench.now_s() - began_s
    known = None if lanes is None else topology
    return LaunchCosts(bench.nodes, bench.ppn, launch_s, other_s, slice_, bench.library is not None, samples, known)


def _calibration_points(bench: Bench, collectives: Sequence[str]) -> Iterator[Point]:
    """On two ranks and on all of them, within a node and across."""
    corners = {(1, 2), (1, bench.ppn), (2, 1), (bench.nodes, 1), (bench.nodes, bench.ppn)}
    fitting = sorted(s for s in corners if s[0] <= bench.nodes and s[1] <= bench.ppn and s[0] * s[1] > 1)
    for name in collectives:
        for nodes, ppn in fitting:
            for size in message_sizes(name, 1, 1) if name == "barrier" else _SIZES:
                choices = bench.legal(scenario := Scenario(name, nodes, ppn, size))
                yield Point(scenario, choices[: 1 + _CHOICES])


def calibration_of(directory: Path) -> LaunchCosts:
    """What an earlier tuning tells. Raises InputError where it measured nothing."""
    tuning = load_tuning(directory)
    share, budget, job = tuning.summary.share, tuning.summary.budget, tuning.summary.job
    samples = tuple(measurements(directory))
    if not samples or share.launches == 0 or budget is None or job is None:
        raise InputError(
            f"{directory} says nothing of the time that measuring takes", "Give a tuning by `colltune tune`"
        )
    launch_s = share.launch_s / share.launches
    files = bool(tuning.variables)
    bare = TimePlan(0.0, 0.0, 0.0, launch_s, 0.0, tuning.summary.gated, files)
    other_s = max(budget.fixed_cost_s - bare.fixed_cost_s, 0.0)
    return LaunchCosts(*job, launch_s, other_s, None, files, samples)


def costs_of(
    catalogue: Catalogue,
    calibration: LaunchCosts,
    collectives: Sequence[str],
    shape: tuple[int, int],
    *,
    thread_level: str = "single",
    smallest_bytes: int = 1,
    largest_bytes: int = LARGEST_BYTES,
    budgets_s: Sequence[float] = BUDGETS_S,
    launch_s: float | None = None,
    node_bytes: int | None = None,
) -> Costs:
    """What tuning ``collectives`` on ``shape`` (nodes, ranks per node) takes, and what each of ``budgets_s`` buys.

    ``launch_s``: a launch on that shape, where it is known. ``node_bytes``: the memory of a node; None is this node's.
    Raises InputError for what cannot be tuned.
    """
    nodes, ppn = shape
    names, _ = check_collectives(collectives or catalogue.entries, catalogue)
    whole = [
        Scenario(name, n, p, size)
        for name in names
        for n, p in shapes(nodes, ppn)
        for size in tuned_sizes(name, smallest_bytes, largest_bytes)
    ]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if node_bytes is None else node_bytes
    grid = [scenario for scenario in whole if _fits(scenario, memory)]
    known = calibration.calls
    places = calibration.at_once(nodes)
    each = [
        (known.expect_s(scenario) / places.get(scenario.nodes, 1), len(catalogue.legal(scenario, thread_level)))
        for scenario in grid
    ]
    grid_s, pairs = sum(cost_s * count for cost_s, count in each), sum(count for _, count in each)
    taken_s = calibration.launch_on(nodes) if launch_s is None else launch_s
    plan = _time_plan(calibration, shape, taken_s, len(names))
    weight = weights_in_job(nodes, ppn)
    calls = [(cost_s * count, weight(scenario)) for scenario, (cost_s, count) in zip(grid, each, strict=True)]
    calls.sort(key=lambda call: call[1] / max(call[0], 1e-9), reverse=True)
    comparison_s = 2.0 * sum(cost_s for cost_s, _ in each) / max(len(each), 1)
    return Costs(
        collectives=tuple(names),
        nodes=nodes,
        ppn=ppn,
        shapes=len(shapes(nodes, ppn)),
        scenarios=len(grid),
        pairs=pairs,
        launch_s=taken_s,
        least_s=plan.fixed_cost_s,
        grid_s=grid_s,
        whole_s=_budget_for_measuring(plan, grid_s),
        bought=tuple(_buy(replace(plan, budget_s=limit_s), calls, comparison_s, nodes * ppn) for limit_s in budgets_s),
        remarks=(*_remarks(calibration, shape, launch_s), *_left_out(len(whole) - len(grid), memory)),
    )


def _fits(scenario: Scenario, node_bytes: int) -> bool:
    """Whether the agent would measure it: the two buffers of each rank of a node, in a quarter of the node's memory."""
    ends = 2 if scenario.collective == "alltoall" else 1
    blocks = ends * scenario.ranks if scenario.collective in PER_BLOCK else 2
    return scenario.size_bytes * blocks * scenario.ppn <= node_bytes // 4


def _left_out(count: int, node_bytes: int) -> Iterator[str]:
    if count:
        yield (
            f"{format_count(count, 'scenario')} left to the default: their buffers do not fit into a quarter of a "
            f"node's memory, taken to be {node_bytes / 2**30:.0f} GiB"
        )


def _time_plan(calibration: LaunchCosts, shape: tuple[int, int], launch_s: float, ruled: int) -> TimePlan:
    replay_s = 0.0
    if calibration.replay is not None:
        replay = replace(calibration.replay, rank_counts=len(rank_counts(shape[0] * shape[1])))
        replay_s = replay.whole_s(launch_s, ruled)
    return TimePlan(0.0, 0.0, calibration.other_s, launch_s, replay_s, True, calibration.files)


def _measuring_s(plan: TimePlan) -> float:
    return plan.measured_by_s - plan.began_s - plan.set_up_s


def _budget_for_measuring(plan: TimePlan, measuring_s: float) -> float:
    """The budget whose first measuring lasts ``measuring_s``; a plan gives it a fixed share of what is free."""
    least, longer = replace(plan, budget_s=0.0), replace(plan, budget_s=plan.fixed_cost_s + 1.0)
    per_second = _measuring_s(longer) - _measuring_s(least)
    return plan.fixed_cost_s + max(measuring_s - _measuring_s(least), 0.0) / per_second


def _buy(plan: TimePlan, calls: Sequence[tuple[float, float]], comparison_s: float, cores: int) -> Bought:
    """``calls``: what measuring each takes, in seconds, and what it counts, in the order of measuring."""
    measuring_s, grid_s = _measuring_s(plan), sum(cost_s for cost_s, _ in calls)
    until_s = accumulate(cost_s for cost_s, _ in calls)
    called = sum(weight for taken_s, (_, weight) in zip(until_s, calls, strict=True) if taken_s <= measuring_s)
    # The audit has what the plan would add for one more second of comparisons, in reverse.
    share = 1.0 / (plan.budget_for(1.0) - plan.total_s)
    audit_s = share * (plan.total_s - plan.fixed_cost_s)
    return Bought(
        plan.budget_s,
        plan.total_s,
        plan.total_s * cores / 3600.0,
        min(measuring_s / grid_s, 1.0) if grid_s > 0.0 else 1.0,
        called / sum(weight for _, weight in calls) if calls else 1.0,
        most_claims(comparison_s, audit_s, plan.launch_s),
    )


def _remarks(calibration: LaunchCosts, shape: tuple[int, int], launch_s: float | None) -> Iterator[str]:
    here = f"{calibration.nodes} x {calibration.ppn}"
    if calibration.nodes == 1 and shape[0] > 1:
        yield (
            f"measured on one node ({here}), so the network is not in it, and calls across nodes take longer than this:"
            " run it in a job of a few nodes"
        )
    elif shape[0] * shape[1] > 4 * calibration.nodes * calibration.ppn:
        yield f"extrapolated from {here}: calls by rounds and bytes"
    if calibration.topology is not None:
        yield "points on disjoint parts of the job are measured, and compared for the proof, at once"
    if launch_s is None and shape[0] != calibration.nodes:
        took = format_duration(calibration.launch_s)
        yield f"a launch took {took} on {here}, and is taken to grow with the doublings of the nodes"


def plan_here(
    collectives: Sequence[str],
    machine: MachineOptions,
    *,
    tuned: Path | None = None,
    smallest_bytes: int = 1,
    largest_bytes: int = LARGEST_BYTES,
    budgets_s: Sequence[float] = BUDGETS_S,
    launch_s: float | None = None,
) -> Costs:
    """What a tuning takes on the nodes and ranks per node of ``machine``, which may be more than this job has.

    Calibrated by the measurements of the tuning in ``tuned``, else by one launch on the nodes of this job. No name is
    all collectives. Raises ColltuneError.
    """
    if collectives:
        parse_collectives(collectives)
    require_sizes(smallest_bytes, largest_bytes)
    if any(budget_s <= 0.0 for budget_s in budgets_s):
        raise InputError("the budget must not be empty", "Give for example --budget 5m")
    if tuned is not None:
        calibration, environment = calibration_of(tuned), load_tuning(tuned).environment
        catalogue, thread_level = recall_backend(environment).catalogue, environment.thread_level
    else:
        bench = open_workbench(replace(machine, nodes=None, ppn=None), os.environ)
        names, _ = check_collectives(collectives or bench.catalogue.entries, bench.catalogue)
        calibration = calibrate(bench, names)
        catalogue, thread_level = bench.catalogue, bench.thread_level
    shape = (machine.nodes or calibration.nodes, machine.ppn or calibration.ppn)
    if shape[0] * shape[1] < 2:
        raise InputError("a job of one rank has nothing to tune", "Give --ppn 2 or more")
    return costs_of(
        catalogue,
        calibration,
        collectives,
        shape,
        thread_level=thread_level,
        smallest_bytes=smallest_bytes,
        largest_bytes=largest_bytes,
        budgets_s=budgets_s,
        launch_s=launch_s,
    )
