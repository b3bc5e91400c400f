"""What became of a tuning: its rules measured again beside the default, in fresh launches, and judged."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import median

from colltune.bench.contract import Bench
from colltune.core.errors import InputError
from colltune.core.proven import Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status, grouped
from colltune.core.space import Point
from colltune.judge.promises import FEWEST_LAUNCHES, MOST_LAUNCHES, Holding, Promise, add_launch, verdicts
from colltune.judge.sentinels import Validity, spread
from colltune.measure.contract import Effort, Source
from colltune.store.earlier import measurements
from colltune.store.tuning import Tuning

# Rules of each collective that are looked at.
_MANY = 12
_EFFORT = Effort(relative_width=0.02, box_s=0.01, fewest=40, most=200)
# Of the time there is, what the first launches may measure for.
_MEASURING_SHARE = 0.3
# A point with longer calls than this would take all the time there is.
_LONGEST_SHARE = 0.05


@dataclass(frozen=True)
class TuningDrift:
    """What became of a tuning. ``rules``: those in force, judged. ``verdicts``: by collective.

    ``left_out``: rules whose calls take too long to be measured in the time there was.
    """

    rules: Sequence[Holding]
    verdicts: Mapping[str, Validity]
    launches: int
    left_out: int


def drift(bench: Bench, tuning: Tuning, directory: Path, budget_s: float, seed: int) -> TuningDrift:
    """Measures rules in force again beside the default, in up to 30 fresh launches, as long as any looks lost.

    Raises InputError where nothing of the tuning can be measured here.
    """
    deadline_s = bench.now_s() + budget_s
    if not (measured := measurements(directory)):
        raise InputError(f"{directory} holds no measurements", "Give a directory that `colltune tune` wrote")
    samples = _usable(measured, bench, budget_s)
    promises = _promises(tuning, samples, bench)
    kept, left_out = _affordable(promises, budget_s)
    if not samples:
        raise InputError(f"{directory} holds nothing that could be measured again here", "Tune anew")
    rules = [Holding(promise, (), len(kept), legal=promise.choice in bench.legal(promise.scenario)) for promise in kept]
    rules, launches = look_again(
        rules,
        {promise.scenario: bench.baseline(promise.scenario) for promise in kept},
        lambda launch: bench.launch(seed + launch),
        deadline_s,
        bench.now_s,
    )
    return TuningDrift(rules, verdicts(rules), launches, left_out)


def look_again(
    rules: Sequence[Holding],
    baselines: Mapping[Scenario, Choice],
    open_source: Callable[[int], Source],
    deadline_s: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Holding], int]:
    """``rules`` after as many launches as it takes to tell, and how many that were.

    ``baselines``: what each is compared with. ``open_source``: begins the launch of a number. ``deadline_s`` is that
    of ``clock``.
    """
    rules, launches, longest_s = list(rules), 0, 0.0
    while launches < MOST_LAUNCHES:
        points = [Point(p.scenario, (baselines[p.scenario], p.choice)) for p in (r.promise for r in rules if r.open)]
        began_s = clock()
        if not points or (launches and began_s + longest_s > deadline_s):
            break
        with closing(open_source(launches)) as source:
            in_time = takewhile(lambda _point: clock() < deadline_s, points)
            samples = [sample for _, some in source.measure(in_time, _EFFORT) for sample in some]
        launches += 1
        longest_s = max(longest_s, clock() - began_s)
        rules = add_launch(rules, [] if source.disturbed else samples, baselines)
    return rules, launches


def _usable(samples: Sequence[Sample], bench: Bench, budget_s: float) -> list[Sample]:
    """Those with a time, of shapes that this job can form and calls that are short enough."""
    return [
        sample
        for sample in samples
        if sample.status is Status.OK
        and _fits(sample.scenario, bench)
        and _EFFORT.expected_cost_s(sample.time_s) < _LONGEST_SHARE * budget_s
        and sample.choice in bench.legal(sample.scenario)
    ]


def _fits(scenario: Scenario, bench: Bench) -> bool:
    return scenario.nodes <= bench.nodes and scenario.ppn <= bench.ppn


def _promises(tuning: Tuning, samples: Sequence[Sample], bench: Bench) -> list[Promise]:
    """The rules in force at scenarios that were compared or measured, with the proof of each.

    Without those that make equal bits: these need not pay.
    """
    proofs = {decision.scenario: decision for decision in tuning.summary.having(Verdict.KEPT) if decision.has_evidence}
    compared = {decision.scenario for decision in tuning.summary.decisions if decision.ratios}
    by_default = grouped((sample for sample in samples if sample.choice == DEFAULT), lambda sample: sample.scenario)
    promises = []
    for scenario in sorted({*compared, *(sample.scenario for sample in samples)}):
        choice = RuleSet.decided(tuning.rule_sets, scenario)
        equal_bits = scenario.collective in tuning.summary.reproducible
        if equal_bits or not _fits(scenario, bench) or choice in (DEFAULT, bench.baseline(scenario)):
            continue
        proof, then_s = proofs.get(scenario), [sample.time_s for sample in by_default.get(scenario, ())]
        promises.append(Promise(scenario, choice, proof, median(then_s) if then_s else None))
    return promises


def _affordable(promises: Sequence[Promise], budget_s: float) -> tuple[list[Promise], int]:
    """At most 12 of each collective, and so many that all launches fit into the time. Also: how many had no room."""
    by_name = grouped(promises, lambda promise: promise.scenario.collective)
    chosen = [promise for mine in by_name.values() for promise in spread(mine, _MANY)]
    kept: list[Promise] = []
    spent_s = 0.0
    for promise in sorted(chosen, key=lambda promise: promise.default_s or 0.0):
        spent_s += 2.0 * _EFFORT.expected_cost_s(promise.default_s or 0.0)
        if not kept or spent_s * FEWEST_LAUNCHES < _MEASURING_SHARE * budget_s:
            kept.append(promise)
    return sorted(kept, key=lambda promise: promise.scenario), len(chosen) - len(kept)
