"""Algorithms that know nodes: leaders, groups of ranks within a node, and shared memory.

Sources: Kandalla et al. 2009 and Bienz, Gropp and Olson 2022 (multi-leader and node-aware all-to-alls); for the two
levels, MPICH's compositions.
"""

from dataclasses import replace

import numpy as np

from colltune.traffic.rounds import AllPairs, Round, Schedule, at_once, on_ranks, schedule
from colltune.traffic.trees import down, gathered, kary, knomial, scattered, up


def _on_groups(plan: Schedule, p: int, size: int) -> Schedule:
    """``plan`` of ``size`` ranks, on every ``size`` ranks in a row."""
    return at_once([on_ranks(plan, np.arange(first, first + size)) for first in range(0, p, size)])


def two_level(nodes: int, ppn: int, between: Schedule, *, reduce: bool, bcast: bool) -> Schedule:
    """A reduction up every node's tree, ``between`` the first ranks of all nodes, a broadcast down the trees."""
    p = nodes * ppn
    tree = knomial(ppn)
    plan = on_ranks(between, np.arange(0, p, ppn)) if nodes > 1 else Schedule(())
    if ppn < 2:
        return plan
    before = _on_groups(up(tree, 1), p, ppn) if reduce else Schedule(())
    return before.then(plan).then(_on_groups(down(tree, 1), p, ppn) if bcast else Schedule(()))


def leaders_alltoall(nodes: int, ppn: int, group: int, *, at_once_: bool) -> Schedule:
    """Hierarchical: groups gather at leaders, all leaders exchange, and scatter again."""
    p = nodes * ppn
    leaders = np.arange(0, p, group)
    before = _on_groups(gathered(kary(group, max(group - 1, 1)), float(p), group), p, group)
    width = len(leaders) if at_once_ else 1
    between = Schedule((AllPairs(leaders[None, :], float(group * group), width),)) if len(leaders) > 1 else Schedule(())
    after = _on_groups(scattered(kary(group, max(group - 1, 1)), float(p), group), p, group)
    plan = before.then(between).then(after)
    return Schedule(plan.steps, copied=4.0 * p * group, memory=2.0 * p * group)


def node_aware_alltoall(nodes: int, ppn: int, group: int, *, at_once_: bool) -> Schedule:
    """Locality aware: everybody sends to one rank of each group, and each group sorts the rest out inside."""
    p = nodes * ppn
    between = np.arange(p).reshape(-1, group).T
    inside = np.arange(p).reshape(-1, group)
    count = p // group
    steps = []
    if count > 1:
        steps.append(AllPairs(between, float(group), count if at_once_ else 1))
    if group > 1:
        steps.append(AllPairs(inside, float(count), group if at_once_ else 1))
    return Schedule(tuple(steps), copied=2.0 * p, memory=2.0 * p)


def multileader_alltoall(nodes: int, ppn: int, group: int, *, at_once_: bool) -> Schedule:
    """Multi-leader node aware: as the last, but among the leaders of groups, which gather and scatter."""
    p = nodes * ppn
    per_node = ppn // group
    before = _on_groups(gathered(kary(group, max(group - 1, 1)), float(p), group), p, group)
    leaders = np.arange(0, p, group).reshape(nodes, per_node)
    steps = []
    if nodes > 1:
        steps.append(AllPairs(leaders.T, float(group * ppn), nodes if at_once_ else 1))
    if per_node > 1:
        steps.append(AllPairs(leaders, float(group * group * nodes), per_node if at_once_ else 1))
    after = _on_groups(scattered(kary(group, max(group - 1, 1)), float(p), group), p, group)
    plan = before.then(Schedule(tuple(steps))).then(after)
    return Schedule(plan.steps, copied=6.0 * p * group, memory=2.0 * p * group)


def blockwise(plan: Schedule, share: float) -> Schedule:
    """The same messages block by block: one message of ``share`` each, all of a round at once."""
    steps = []
    for step in plan.steps:
        if not isinstance(step, Round):
            raise TypeError("only rounds can be cut into blocks")
        steps.append(replace(step, pieces=np.maximum(np.round(step.share / share), 1.0)))
    return schedule(iter(steps), plan.copied, plan.memory)
