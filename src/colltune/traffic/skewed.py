"""Exchanges over alternating distances: Swing (De Sensi et al. 2024), Bine trees (De Sensi et al. 2025), and Sparbit.

Step s goes to the rank at distance (1 - (-2)^(s+1)) / 3, forwards from even ranks and backwards from odd ones: about a
third nearer than recursive doubling, and without a fold for even numbers of ranks.
"""

from collections.abc import Iterator

import numpy as np

from colltune.traffic.rounds import Ranks, Round, Schedule, round_of, schedule


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


def sparbit(p: int, share: float) -> Schedule:
    """The data of Bruck's allgather over halving distances, block by block."""
    ranks = np.arange(p)

    def steps() -> Iterator[Round]:
        have, reach = 1, 1 << max(_steps(p) - 1, 0)
        while reach >= 1 and have < p:
            blocks = min(have, p - have)
            yield Round(ranks, (ranks + reach) % p, np.full(p, share * blocks), pieces=float(blocks))
            have += blocks
            reach //= 2

    return schedule(steps())


def in_segments(plan: Schedule, segments: int) -> Schedule:
    """Each message cut into pieces that follow each other."""
    steps = []
    for step in plan.steps:
        if isinstance(step, Round):
            steps.append(Round(step.source, step.target, step.share / segments, step.times * segments, step.reduces))
    return Schedule(tuple(steps), plan.copied, plan.memory)
