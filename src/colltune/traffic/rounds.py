"""The messages of an algorithm, round by round, between numbered ranks.

Notations: p ranks; a ``share`` is the bytes of a message over ``Scenario.size_bytes``. In a round every rank starts all
its messages at once and waits for all of them, as in the LogP model (Culler et al., 1993). Rank 0 is the root.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ranks = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Round:
    """m messages: ``source``, ``target`` (m,), ``share`` (m,). The round is run ``times`` in a row.

    ``reduces``: what arrives is combined with what is there. ``depth``: the messages that follow each other in it.
    ``pieces`` (m,): into how many messages each of the m is cut, which go at once.
    """

    source: Ranks
    target: Ranks
    share: Floats
    times: float = 1.0
    reduces: bool = False
    depth: float = 1.0
    pieces: Floats | float = 1.0


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Each member of each of G groups of n sends a message to each other one, ``width`` at a time.

    ``members`` (G, n); ``share``: of every message. One round of it stands for p * (n - 1) messages, which would be too
    many to write down.
    """

    members: Ranks
    share: float
    width: int
    reduces: bool = False


@dataclass(frozen=True, eq=False)
class Schedule:
    """``copied``: what the busiest rank copies in its memory; ``memory``: what it needs beside the call's buffers.

    Both are shares.
    """

    steps: tuple[Round | AllPairs, ...]
    copied: float = 0.0
    memory: float = 0.0

    def then(self, other: "Schedule") -> "Schedule":
        return Schedule(self.steps + other.steps, self.copied + other.copied, max(self.memory, other.memory))


def round_of(
    source: Sequence[int] | Ranks,
    target: Sequence[int] | Ranks,
    share: float | Sequence[float] | Floats,
    times: float = 1.0,
    *,
    reduces: bool = False,
) -> Round:
    sources = np.asarray(source, dtype=np.intp)
    return Round(sources, np.asarray(target, dtype=np.intp), np.full(sources.shape, share, float), times, reduces)


def schedule(steps: Iterator[Round | AllPairs], copied: float = 0.0, memory: float = 0.0) -> Schedule:
    return Schedule(
        tuple(step for step in steps if isinstance(step, AllPairs) or (len(step.source) and step.times)), copied, memory
    )


def on_ranks(plan: Schedule, ranks: Ranks, scale: float = 1.0) -> Schedule:
    """The same among some ranks: member i of the plan is ``ranks[i]``; shares times ``scale``."""
    steps: list[Round | AllPairs] = []
    for step in plan.steps:
        if isinstance(step, AllPairs):
            steps.append(replace(step, members=ranks[step.members], share=step.share * scale))
        else:
            steps.append(replace(step, source=ranks[step.source], target=ranks[step.target], share=step.share * scale))
    return Schedule(tuple(steps), plan.copied * scale, plan.memory * scale)


def at_once(plans: Sequence[Schedule]) -> Schedule:
    """Plans of equal rounds that different ranks carry out beside each other."""
    steps: list[Round | AllPairs] = []
    for parts in zip(*(plan.steps for plan in plans), strict=True):
        first = parts[0]
        if isinstance(first, AllPairs):
            groups = [part.members for part in parts if isinstance(part, AllPairs)]
            steps.append(replace(first, members=np.concatenate(groups)))
        else:
            rounds = [part for part in parts if isinstance(part, Round)]
            source, target, share = (
                np.concatenate([getattr(part, name) for part in rounds]) for name in ("source", "target", "share")
            )
            steps.append(replace(first, source=source, target=target, share=share))
    return Schedule(tuple(steps), max(plan.copied for plan in plans), max(plan.memory for plan in plans))


def on_groups(plan: Schedule, p: int, size: int) -> Schedule:
    """``plan`` of ``size`` ranks, on every ``size`` ranks in a row."""
    return at_once([on_ranks(plan, np.arange(first, first + size)) for first in range(0, p, size)])
