"""How long the choices of a job of many nodes take, and how many rules say them: for MPICH's broadcasts.

With what these rules add to the start of a program (scale_start.py).

``decide_s_JOB``: `colltune.distill.decide` alone. ``rules_worst``: the most rules of such a job, were all proven;
``rules_gain``: the least part of the expected gain that these keep, of what any number of rules would. ``peak_mb``: the
most memory that this took, with the times that are invented.

The times are invented: what the bytes and the ranks cost, a part of each choice by itself that differs from one octave
of nodes or sizes to the next, and noise. So most choices are the fastest somewhere, which is the worst case.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from functools import partial
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import process_time

import numpy as np

from colltune.catalog import Catalogue, load
from colltune.cli import OBJECTS_TO_COLLECT
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.space import Prediction, Space, shapes, tuned_sizes, weights_in_job
from colltune.distill.decide import decide
from colltune.distill.few_rules import with_few_rules
from colltune.distill.minimal_rules import distill_proven
from colltune.emit.mpich.below import agreeing, inner_calls
from scale_start import RULES, scale_start

NAME, JOBS = "bcast", {"2048x12": (2048, 12), "512x64": (512, 64)}


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


def broadcasts(catalogue: Catalogue, nodes: int, ppn: int) -> Space:
    grid = [Scenario(NAME, n, p, size) for n, p in shapes(nodes, ppn) for size in tuned_sizes(NAME, 1, 1 << 20)]
    return Space(NAME, tuple(grid), catalogue.legal, weights_in_job(nodes, ppn))


def scale_decide() -> dict[str, float]:
    """Seconds of the processor by job, without the model's; rules and what they gain."""
    gc.set_threshold(OBJECTS_TO_COLLECT)  # as the command runs
    catalogue, name, figures = load("mpich", "5.0.2"), NAME, {"rules_worst": 0.0, "rules_gain": 1.0}
    for job, (nodes, ppn) in JOBS.items():
        space = broadcasts(catalogue, nodes, ppn)
        pairs = list(space.pairs())
        model = Invented(pairs)
        began_s = process_time()
        model.predict(pairs)
        asked_s = process_time()
        inner = partial(inner_calls, catalogue)
        decided = decide({name: model}, {name: space}, [], lambda _s: DEFAULT, 1.02, inner)[name]
        figures[f"decide_s_{job}"] = round(process_time() - asked_s - (asked_s - began_s), 2)
        basis = catalogue.collective(name).basis
        fewer = with_few_rules(decided, space, basis)
        whole, kept = (sum(space.weight(s) * one.gains[s] for s in space.scenarios) for one in (decided, fewer))
        figures["rules_gain"] = round(min(figures["rules_gain"], kept / whole), 3)
        rules = len(distill_proven(fewer.choices, space, basis).rules)
        figures["rules_worst"] = max(figures["rules_worst"], float(rules))
        if job == "2048x12":
            few = distill_proven(with_few_rules(decided, space, basis, RULES).choices, space, basis)
            figures |= scale_start(agreeing(catalogue, few))
    figures["peak_mb"] = round(getrusage(RUSAGE_SELF).ru_maxrss / 1024)
    return figures
