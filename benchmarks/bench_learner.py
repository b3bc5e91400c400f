"""How long one step of the learner takes: fit, score every candidate and choose, on 1,311 scenarios x 12 algorithms.

Writes bench/learner.json and prints it. Wants a quiet machine; one thread is used.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from colltune.core.choice import Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.learn.decision import DecisionLearner

# 1,024 nodes x 32 ppn to 512 KiB and a few shapes more: the number of scenarios of the largest published campaign.
SHAPES = [(2**n, 2**p) for n in range(11) for p in range(6)]
SIZES = [2**power for power in range(20)]
CHOICES = tuple(Choice(f"algorithm_{number}") for number in range(12))
MEASURED = (20, 60, 120, 200)  # scenarios known at the step that is timed


def scenarios() -> tuple[Scenario, ...]:
    grid = [Scenario("allreduce", nodes, ppn, 4 * size) for nodes, ppn in SHAPES if nodes * ppn > 1 for size in SIZES]
    more = [Scenario("allreduce", 768, 32, 4 * size) for size in SIZES]
    return tuple((grid + more)[:1311])


def samples(point: Point, random: np.random.Generator, group: int) -> list[Sample]:
    """Latency and bandwidth terms that differ by algorithm, with 3% of noise."""
    found = []
    for number, choice in enumerate(point.choices):
        hops = np.log2(point.scenario.ranks) * (1 + number) if number % 2 else point.scenario.ranks ** (number / 12)
        time_s = 1e-6 * hops + point.scenario.size_bytes * (1e-9 + 3e-8 / (1 + number * number))
        found.append(Sample(point.scenario, choice, Status.OK, (time_s * random.lognormal(0, 0.03),), group=group))
    return found


def step_s(known: int, repetitions: int = 7) -> float:
    """Median seconds from telling one more point to knowing the next, with ``known`` scenarios told before."""
    random = np.random.default_rng(0)
    space = Space("allreduce", scenarios(), lambda _: CHOICES)
    order = random.permutation(len(space.scenarios))
    learner = DecisionLearner(space, seed=0)
    for group, number in enumerate(order[:known]):
        learner.tell(samples(Point(space.scenarios[number], CHOICES), random, group))
    taken = []
    for group, number in enumerate(order[known : known + repetitions]):
        told = samples(Point(space.scenarios[number], CHOICES), random, known + group)
        start = perf_counter()
        learner.tell(told)
        learner.should_stop()
        learner.ask(1)
        taken.append(perf_counter() - start)
    return median(taken)


def main() -> None:
    by_known = {known: step_s(known) for known in MEASURED}
    figures = {"step_s": round(max(by_known.values()), 4)}
    figures |= {f"step_s_{known}_scenarios_known": round(seconds, 4) for known, seconds in by_known.items()}
    target = Path("bench/learner.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
