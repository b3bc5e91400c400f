"""Which learner gives the better selection on a real MPI in the same short time: bcast and allreduce on one node.

    python benchmarks/bench_live_learners.py [--ranks 2] [--runs 5] [--largest 65536]

Whole grids are measured first, three times: their medians are taken as true. Then both learners get a fourth, an eighth
and a sixteenth of what the whole grid took, their own thinking included. Wants a quiet machine with an MPICH (beside
this Python, or the one of COLLTUNE_TEST_MPIEXEC). Writes bench/live_learners_N_ranks.json and prints it: mean time of
the selected over the best choice, pairs measured, and seconds spent thinking, medians over the runs; the slowdown of
always taking the default beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from colltune.campaign import WHOLE, Campaign, Outcome
from colltune.core.choice import DEFAULT, Choice
from colltune.core.model import Model
from colltune.core.sample import Sample
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.decide import medians_of
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.learn.forest import ForestLearner
from colltune.learn.measured import MeasuredModel
from colltune.measure.contract import Effort
from colltune.workbench import MachineOptions, Workbench, open_workbench

COLLECTIVES = ("bcast", "allreduce")
LEARNERS = {"forest": ForestLearner, "decision": DecisionLearner}
PARTS = (4, 8, 16)
_TRUTHS = 3
_ENOUGH_S = 300.0

Truth = Mapping[tuple[Scenario, Choice], float]


@dataclass
class Timed:
    """A learner, and the seconds that it thinks."""

    inner: Learner
    thought_s: float = 0.0

    def ask(self, count: int) -> list[Point]:
        since_s = time.perf_counter()
        points = self.inner.ask(count)
        self.thought_s += time.perf_counter() - since_s
        return points

    def tell(self, samples: Sequence[Sample]) -> None:
        since_s = time.perf_counter()
        self.inner.tell(samples)
        self.thought_s += time.perf_counter() - since_s

    def tell_pending(self, point: Point) -> None:
        self.inner.tell_pending(point)

    def should_stop(self) -> str | None:
        since_s = time.perf_counter()
        reason = self.inner.should_stop()
        self.thought_s += time.perf_counter() - since_s
        return reason

    def model(self) -> Model:
        return self.inner.model()


def campaign(
    bench: Workbench, spaces: Mapping[str, Space], learners: Mapping[str, Learner], seed: int, budget_s: float
) -> Outcome:
    source = bench.live_source(seed)
    source.start()
    try:
        return Campaign(
            source=source,
            spaces=spaces,
            learners=learners,
            record=lambda _: None,
            budget_s=budget_s,
            effort=Effort(),
        ).run()
    finally:
        source.close()


def slowdown(spaces: Mapping[str, Space], learners: Mapping[str, Learner], outcome: Outcome, truth: Truth) -> float:
    """Mean over the scenarios of the true time of what is selected over that of the best choice."""
    medians = medians_of(outcome.samples)
    found = []
    for name, space in spaces.items():
        known = any(scenario.collective == name for scenario, _ in medians)
        model = learners[name].model() if known else MeasuredModel(medians)
        for scenario in space.scenarios:
            choices = [choice for choice in space.choices(scenario) if (scenario, choice) in truth]
            log_time = model.predict([(scenario, choice) for choice in choices]).log_time if known else [0.0]
            selected = choices[int(min(range(len(log_time)), key=lambda place: log_time[place]))]
            found.append(truth[scenario, selected] / min(truth[scenario, choice] for choice in choices))
    return mean(found)


def by_default(spaces: Mapping[str, Space], truth: Truth) -> float:
    found = []
    for space in spaces.values():
        for scenario in space.scenarios:
            times = [truth[scenario, choice] for choice in space.choices(scenario) if (scenario, choice) in truth]
            found.append(truth[scenario, DEFAULT] / min(times))
    return mean(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--largest", type=int, default=1 << 16, help="bytes")
    options = parser.parse_args()
    mpiexec = os.environ.get("COLLTUNE_TEST_MPIEXEC") or str(Path(sys.executable).parent / "mpiexec")
    bench = open_workbench(MachineOptions(mpiexec=mpiexec, nodes=1, ppn=options.ranks), os.environ)
    spaces = {name: bench.space(name, 1, options.largest) for name in COLLECTIVES}
    samples: list[Sample] = []
    whole_s = []
    for seed in range(_TRUTHS):
        learners = {name: ForestLearner(space, seed) for name, space in spaces.items()}
        outcome = campaign(bench, spaces, learners, seed, _ENOUGH_S)
        if set(outcome.reasons.values()) != {WHOLE}:
            raise SystemExit(f"the grid was not measured whole: {dict(outcome.reasons)}")
        samples += outcome.samples
        whole_s.append(outcome.elapsed_s)
    truth = medians_of(samples)
    figures: dict[str, float | int] = {
        "ranks": options.ranks,
        "pairs": len(truth),
        "whole_s": round(median(whole_s), 3),
        "slowdown_of_the_default": round(by_default(spaces, truth), 4),
        "runs": options.runs,
    }
    for part in PARTS:
        for kind, make in LEARNERS.items():
            found = []
            for seed in range(options.runs):
                timed = {name: Timed(make(space, seed)) for name, space in spaces.items()}
                outcome = campaign(bench, spaces, timed, seed, median(whole_s) / part)
                thought_s = sum(one.thought_s for one in timed.values())
                found.append((slowdown(spaces, timed, outcome, truth), len(outcome.samples), thought_s))
            for name, values in zip(("slowdown", "pairs", "thinking_s"), zip(*found, strict=True), strict=True):
                figures[f"{kind}_{name}_at_1_{part}"] = round(median(values), 4)
    target = Path(f"bench/live_learners_{options.ranks}_ranks.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
