"""How long the choices of a job of many nodes take: `colltune.distill.decide` alone, for MPICH's broadcasts.

The times are invented: what the bytes and the ranks cost, a part of each choice by itself that differs from one octave
of nodes or sizes to the next, and noise. So most choices are the fastest somewhere, which is the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from time import process_time

import numpy as np

from colltune.catalog import load
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.space import Prediction, Space, shapes, tuned_sizes
from colltune.distill.decide import decide
from colltune.emit.mpich.below import shared_by

JOBS = {"2048x12": (2048, 12), "512x64": (512, 64)}


class Invented:
    """Keeps what it invented, so that asking again takes next to nothing."""

    def __init__(self, pairs: Sequence[tuple[Scenario, Choice]]) -> None:
        self._log_times = {pair: self._log_time(*pair) for pair in pairs}

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        return Prediction(np.array([self._log_times[pair] for pair in pairs]), np.full(len(pairs), 0.1))

    @staticmethod
    def _log_time(scenario: Scenario, choice: Choice) -> float:
        octaves = int(math.log2(scenario.nodes)) // 3, scenario.ppn > 4, int(math.log2(scenario.size_bytes)) // 4
        own, noise = Random(f"{choice}{octaves}").gauss(0.0, 0.25), Random(f"{choice}{scenario}").gauss(0.0, 0.05)
        plain = math.log(1e-5 * (1.0 + math.log2(scenario.ranks)) + 1e-9 * scenario.size_bytes)
        return plain + own + noise + (0.1 if choice == DEFAULT else 0.0)


def scale_decide() -> dict[str, float]:
    """Seconds of the processor by job, without the model's."""
    catalogue, name, figures = load("mpich", "5.0.2"), "bcast", {}
    for job, (nodes, ppn) in JOBS.items():
        grid = [Scenario(name, n, p, size) for n, p in shapes(nodes, ppn) for size in tuned_sizes(name, 1, 1 << 20)]
        space = Space(name, tuple(grid), catalogue.legal)
        pairs = list(space.pairs())
        model = Invented(pairs)
        began_s = process_time()
        model.predict(pairs)
        asked_s = process_time()
        decide({name: model}, {name: space}, [], lambda _s: DEFAULT, 1.02, lambda s, c: shared_by(catalogue, s, c))
        figures[f"decide_s_{job}"] = round(process_time() - asked_s - (asked_s - began_s), 2)
    return figures
