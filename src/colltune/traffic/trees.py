"""Trees: how the libraries and papers number them, and what goes down or up them.

A tree is the list of each rank's children in the order in which they are served.
"""

from math import ceil

import numpy as np

from colltune.traffic.rounds import Floats, Round, Schedule, round_of, schedule

Tree = list[list[int]]


def knomial(p: int, k: int = 2) -> Tree:
    """The k-nomial tree by digits of the rank, the child with the most below it first (k = 2: Thakur et al. 2005)."""
    children: Tree = [[] for _ in range(p)]
    for rank in range(p):
        reach = 1
        while reach < p and (rank // reach) % k == 0:
            reach *= k
        step = reach // k
        while step >= 1:
            children[rank] += [rank + digit * step for digit in range(1, k) if rank + digit * step < p]
            step //= k
    return children


def knomial_by_range(p: int, k: int = 2) -> Tree:
    """MPICH's knomial_1: the children of a rank share the ranks above it, the next one the most of them."""
    children: Tree = [[] for _ in range(p)]
    levels = 0
    while k**levels < p:
        levels += 1
    stack = [(0, 0)]
    while stack:
        rank, step = stack.pop()
        child = rank + 1
        for level in range(step, levels):
            for _ in range(k - 1):
                reach = k ** (levels - level - 1)
                if child < p:
                    children[rank].append(child)
                    stack.append((child, level + 1))
                child += reach
    return children


def kary(p: int, k: int) -> Tree:
    """Breadth first: the children of r are k r + 1 to k r + k; k = 1 is a chain."""
    return [[child for child in range(k * rank + 1, k * rank + k + 1) if child < p] for rank in range(p)]


def star(p: int, _k: int = 2) -> Tree:
    """All others are the root's children."""
    return kary(p, p)


def by_level(p: int, k: int) -> Tree:
    """Open MPI's k-ary tree: on a level of k^l ranks, the children of r are r + k^l to r + k^(l+1)."""
    children: Tree = []
    below = delta = 1
    for rank in range(p):
        if rank == below:
            delta *= k
            below += delta
        children.append([child for child in range(rank + delta, rank + (k + 1) * delta, delta) if child < p][:k])
    return children


def in_order(p: int) -> Tree:
    """Open MPI's in-order binary tree, whose root is the last rank: left and right parts are ranges of ranks."""
    children: Tree = [[] for _ in range(p)]
    stack = [(0, p)]
    while stack:
        first, size = stack.pop()
        right = size // 2
        parent = first + size - 1
        if size > 1:
            children[parent].append(parent - 1)
            stack.append((first + right, size - right - 1))
        if right > 0 and first + right - 1 != parent - 1:
            children[parent].append(first + right - 1)
            stack.append((first, right))
    return children


def _rounds(tree: Tree, width: int, root: int = 0) -> list[tuple[list[int], list[int]]]:
    """Parents and children by the round in which the child is served, ``width`` children of a parent at a time."""
    rounds: dict[int, tuple[list[int], list[int]]] = {}
    waiting = [(root, 0)]
    while waiting:
        parent, at = waiting.pop()
        for place, child in enumerate(tree[parent]):
            turn = at + place // width
            parents, children = rounds.setdefault(turn, ([], []))
            parents.append(parent)
            children.append(child)
            waiting.append((child, turn + 1))
    return [rounds[turn] for turn in sorted(rounds)]


def down(tree: Tree, width: int, segments: int = 1) -> Schedule:
    """A broadcast: everything to every rank, in ``segments`` parts that follow each other."""
    turns = _rounds(tree, width)
    filling = [round_of(parents, children, 1.0 / segments) for parents, children in turns]
    return schedule(iter([*filling, *_steady(turns, segments)]))


def up(tree: Tree, width: int, segments: int = 1, root: int = 0) -> Schedule:
    """A reduction: the same backwards."""
    turns = _rounds(tree, width, root)[::-1]
    filling = [round_of(children, parents, 1.0 / segments, reduces=True) for parents, children in turns]
    flowing = [Round(r.target, r.source, r.share, r.times, reduces=True) for r in _steady(turns, segments)]
    return schedule(iter([*filling, *flowing]), memory=1.0)


def _steady(turns: list[tuple[list[int], list[int]]], segments: int) -> list[Round]:
    """Once full, every edge carries a segment in every round."""
    if segments < 2:
        return []
    parents = [rank for some, _ in turns for rank in some]
    children = [rank for _, some in turns for rank in some]
    return [round_of(parents, children, 1.0 / segments, segments - 1)]


def segments_of(size_bytes: int, segment_bytes: int) -> int:
    return max(1, ceil(size_bytes / segment_bytes)) if segment_bytes > 0 else 1


def below(tree: Tree) -> Floats:
    """(p,): the ranks of each subtree."""
    count = np.ones(len(tree))
    order = [0]
    for rank in order:
        order += tree[rank]
    for rank in reversed(order):
        count[rank] += sum(count[child] for child in tree[rank])
    return count


def scattered(tree: Tree, share: float, width: int) -> Schedule:
    """Every rank gets its block of ``share``; who hands on blocks gets those too."""
    blocks = below(tree)
    turns = _rounds(tree, width)
    return schedule(round_of(parents, kids, share * blocks[kids]) for parents, kids in turns)


def gathered(tree: Tree, share: float, width: int) -> Schedule:
    blocks = below(tree)
    turns = _rounds(tree, width)[::-1]
    return schedule((round_of(kids, parents, share * blocks[kids]) for parents, kids in turns), memory=share)
