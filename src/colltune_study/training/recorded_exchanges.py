"""How algorithms of recorded tables send that no catalogue has, and what one library means by a name of several.

Exchanges over alternating distances: Swing (De Sensi et al. 2024) and Bine trees (De Sensi et al. 2025). Step s goes to
the rank at distance (1 - (-2)^(s+1)) / 3, forwards from even ranks and backwards from odd ones: about a third nearer
than recursive doubling, and without a fold for even numbers of ranks. All-to-alls by groups of ranks within a node:
Kandalla et al. 2009, and Bienz, Gropp and Olson 2022.
"""

from dataclasses import replace

import numpy as np

from colltune.traffic.exchanges import Fold, backwards, gather_back, halving
from colltune.traffic.rounds import AllPairs, Ranks, Round, Schedule, on_groups, round_of, schedule
from colltune.traffic.trees import Tree, gathered, kary, scattered


def _steps(p: int) -> int:
    return max((p - 1).bit_length(), 0)


def _partner(p: int, step: int) -> Ranks:
    ranks = np.arange(p)
    distance = (1 - (-2) ** (step + 1)) // 3
    return np.asarray(np.where(ranks % 2 == 0, ranks + distance, ranks - distance) % p, dtype=np.intp)


def _blocks(p: int) -> list[int]:
    """What each step of a halving sends, of p blocks: half of what is left."""
    left, found = p, []
    for _ in range(_steps(p)):
        found.append(left // 2)
        left -= left // 2
    return found


def whole(p: int) -> Schedule:
    """An allreduce of few bytes: everything in every step."""
    ranks = np.arange(p)
    steps = (round_of(ranks, _partner(p, step), 1.0, reduces=True) for step in range(_steps(p)))
    return schedule(steps, memory=1.0)


def reduce_scatter(p: int, share: float) -> Schedule:
    ranks = np.arange(p)
    steps = (round_of(ranks, _partner(p, step), share * blocks, reduces=True) for step, blocks in enumerate(_blocks(p)))
    return schedule(steps, memory=p * share)


def allgather(p: int, share: float) -> Schedule:
    ranks = np.arange(p)
    blocks = _blocks(p)
    return schedule(round_of(ranks, _partner(p, step), share * blocks[step]) for step in reversed(range(len(blocks))))


def sent_home(p: int, share: float) -> Schedule:
    """The last exchange, which puts blocks in order: one block to the rank that owns it."""
    ranks = np.arange(p)
    return schedule(iter([round_of(ranks, (ranks + p // 2) % p, share)]))


def in_segments(plan: Schedule, segments: int) -> Schedule:
    """Each message cut into pieces that follow each other."""
    steps = []
    for step in plan.steps:
        if isinstance(step, Round):
            steps.append(Round(step.source, step.target, step.share / segments, step.times * segments, step.reduces))
    return Schedule(tuple(steps), plan.copied, plan.memory)


def leaders_alltoall(nodes: int, ppn: int, group: int, *, at_once_: bool) -> Schedule:
    """Hierarchical: groups gather at leaders, all leaders exchange, and scatter again."""
    p = nodes * ppn
    leaders = np.arange(0, p, group)
    before = on_groups(gathered(kary(group, max(group - 1, 1)), float(p), group), p, group)
    width = len(leaders) if at_once_ else 1
    between = Schedule((AllPairs(leaders[None, :], float(group * group), width),)) if len(leaders) > 1 else Schedule(())
    after = on_groups(scattered(kary(group, max(group - 1, 1)), float(p), group), p, group)
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
    before = on_groups(gathered(kary(group, max(group - 1, 1)), float(p), group), p, group)
    leaders = np.arange(0, p, group).reshape(nodes, per_node)
    steps = []
    if nodes > 1:
        steps.append(AllPairs(leaders.T, float(group * ppn), nodes if at_once_ else 1))
    if per_node > 1:
        steps.append(AllPairs(leaders, float(group * group * nodes), per_node if at_once_ else 1))
    after = on_groups(scattered(kary(group, max(group - 1, 1)), float(p), group), p, group)
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


def rabenseifner_by_halves(p: int, *, to_root: bool = False) -> Schedule:
    """Open MPI's: the two of a pair each reduce a half before the even one goes on."""
    fold = Fold(p, evens=True)
    equal = np.ones(fold.power, dtype=np.intp)
    both = np.concatenate([fold.idle, fold.busy])
    swap = schedule(iter([round_of(both, np.concatenate([fold.busy, fold.idle]), 0.5, reduces=True)]))
    swap = swap.then(schedule(iter([round_of(fold.idle, fold.busy, 0.5)])))
    among, _ = halving(fold.members, 1.0 / fold.power, equal, far_first=False)
    if to_root:
        return swap.then(among).then(gather_back(among, fold.members))
    return swap.then(among).then(backwards(among)).then(fold.out(1.0))


def doubling(p: int) -> Tree:
    """Open MPI's binomial tree: r serves r + 2^i for all 2^i above r."""
    return [
        [rank + (1 << i) for i in range(p.bit_length()) if 1 << i > rank and rank + (1 << i) < p] for rank in range(p)
    ]


def chains(p: int, fanout: int) -> Tree:
    """Open MPI's chains: the root feeds ``fanout`` chains of nearly equal length."""
    children: Tree = [[] for _ in range(p)]
    count = min(fanout, p - 1)
    first = 1
    for place in range(count):
        length = (p - 1) // count + (place < (p - 1) % count)
        children[0].append(first)
        for rank in range(first, first + length - 1):
            children[rank].append(rank + 1)
        first += length
    return children
