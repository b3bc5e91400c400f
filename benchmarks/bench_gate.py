"""How often the no-regret gate is wrong: simulated times with heavy tails, drift and two modes between launches.

Writes bench/gate.json and prints it. Needs no MPI. ``false_rules_per_100``: of candidates that are truly as fast as
the default, those that were kept. ``kept_per_100``: of candidates that are truly 1.25 times as fast. The figures that
end in ``_bimodal`` are of a harder case: each algorithm, for itself, is 1.38 times as slow in half of the launches.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from colltune.core.choice import DEFAULT, Choice
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario
from colltune.measure.contract import Source
from colltune.measure.simulated import Noise, SimulatedSource
from colltune.prove.fresh_launches import Confirmation

ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "simulated", 1, 2, "single")
CANDIDATE = Choice("candidate")
DEFAULT_S = 2e-5
NOISE = Noise()
BIMODAL = Noise(own_mode=1.38)


def confirm(trials: int, speedup: float, noise: Noise, seed: int) -> list[ProvenDecision]:
    """What the gate says of ``trials`` candidates that are truly ``speedup`` times as fast as the default."""
    candidates = {Scenario("bcast", 1, 2, size): CANDIDATE for size in range(1, trials + 1)}

    def truth(_scenario: Scenario, choice: Choice) -> float:
        return DEFAULT_S if choice == DEFAULT else DEFAULT_S / speedup

    def launches() -> Iterator[Source]:
        for launch in count(1):
            yield SimulatedSource(ENVIRONMENT, truth, seed, launch, noise)

    following = launches()
    confirmation = Confirmation(lambda: next(following), lambda _samples: None, clock=lambda: 0.0)
    return confirmation.run(candidates, math.inf)


def kept_per_100(results: list[ProvenDecision]) -> float:
    return 100.0 * sum(result.verdict is Verdict.KEPT for result in results) / len(results)


def main(trials: int = 4000) -> None:
    # Many seeds, since the modes of whole launches are drawn once for each.
    parts = 20
    each = trials // parts

    def figure(speedup: float, noise: Noise) -> tuple[float, float]:
        results = [one for seed in range(parts) for one in confirm(each, speedup, noise, seed)]
        return round(kept_per_100(results), 2), round(sum(len(one.ratios) for one in results) / len(results), 1)

    false_rules, groups_equal = figure(1.0, NOISE)
    kept, groups_faster = figure(1.25, NOISE)
    figures = {
        "trials": each * parts,
        "false_rules_per_100": false_rules,
        "kept_per_100": kept,
        "false_rules_per_100_bimodal": figure(1.0, BIMODAL)[0],
        "kept_per_100_bimodal": figure(1.25, BIMODAL)[0],
        "groups_if_equal": groups_equal,
        "groups_if_faster": groups_faster,
    }
    target = Path("bench/gate.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
