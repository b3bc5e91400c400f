"""The audit: claims are compared with the default in fresh launches until each is proven, refused or out of time.

Every launch compares each open claim at one or more scenarios of its region, side by side with the default; the mean
of a launch is one piece of evidence (``colltune.prove.evidence``). Time goes first to the claims with the greatest gain
for it. What all comparisons say of the scenarios that nobody looked at (``colltune.prove.effects``) decides where to
look next, cuts a region that is faster in one part only, and leaves to the default what may be slower
(``colltune.prove.harm``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from colltune.core.choice import Choice
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source
from colltune.prove.case import Case
from colltune.prove.claims import Claim
from colltune.prove.effects import Deviations, Effect, Group, Seen, deviations_of
from colltune.prove.evidence import FEWEST_LAUNCHES, pooled_scale
from colltune.prove.harm import spared

EFFORT = Effort(relative_width=0.04, box_s=0.004, fewest=8, most=100)
# Statuses that say something of one scenario, and nothing of the choice elsewhere.
_HERE_ALONE = frozenset({Status.INAPPLICABLE, Status.UNMEASURED})
# Launches that are planned with at first, and the most there are; of the time, what they may take by themselves.
_FIRST_LAUNCHES, MOST_LAUNCHES, _LAUNCH_SHARE = 4, 40, 0.35
# In one launch a claim is compared at so many scenarios at most: what the launch has of its own does not average out.
_MOST_LOOKS = 4
# Of the time that is left, what one comparison may take.
_DEAREST_SHARE = 0.04
# A claim that was looked at already is worth finishing.
_BEGUN = 1.5
# Of the worth of an open claim, that of a further look at one that is proven.
_SURER = 0.2
# Cuts may bring so many times the claims there were: each of them needs launches of its own.
_MOST_CUT, _FEW_CUT = 1.5, 6
# Once nothing is open, so many launches more for scenarios of proven claims that may be slower as far as one knows.
_SURER_LAUNCHES = 10
_NOT_LOOKED_AT = "the budget ended before it was compared"


@dataclass
class Audit:
    """Puts ``claims`` to the proof; times in seconds on ``clock``.

    ``open_source`` starts a fresh launch, which takes about ``launch_s``; ``record`` hears of every sample.
    ``baseline`` gives what a choice is compared with: the default, or the choice that is the same and set in the
    candidates' way. ``cost_s``: what a comparison is expected to take. ``total_weight``: of all scenarios that the
    job can form.
    """

    claims: Sequence[Claim]
    open_source: Callable[[], Source]
    record: Callable[[Sequence[Sample]], None]
    baseline: Callable[[Scenario], Choice]
    cost_s: Callable[[Scenario], float]
    total_weight: float
    threshold: float
    launch_s: float
    seed: int = 0
    effort: Effort = EFFORT
    progress: Callable[[Sequence[ProvenDecision]], None] = lambda _results: None
    clock: Callable[[], float] = time.monotonic
    launches: int = field(default=0, init=False)
    _untrusted: dict[tuple[str, Choice], str] = field(default_factory=dict, init=False)
    _scale: float = field(default=0.1, init=False)
    _deviations: Deviations = field(default_factory=Deviations, init=False)
    _last_open: int = field(default=0, init=False)  # the last launch in which anything was open
    _until_s: float = field(default=math.inf, init=False)  # when the launch at hand is over
    _off: float = field(default=1.0, init=False)  # what comparisons took over what they were expected to take
    _expected_s: float = field(default=0.0, init=False)
    _took_s: float = field(default=0.0, init=False)
    _known: Mapping[tuple[str, Choice], Effect] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        floor = math.log(self.threshold)
        self._cases = [Case(claim, floor, self.seed + number) for number, claim in enumerate(self.claims)]
        self._costs = {id(case): self._costs_of(case.claim) for case in self._cases}

    def run(self, deadline_s: float) -> list[ProvenDecision]:
        """The verdicts, after as many launches as are of use before ``deadline_s``."""
        while self.launches < MOST_LAUNCHES and self._is_worth_a_launch(deadline_s):
            began_s = self.clock()
            self.launches += 1
            source = self.open_source()
            try:
                self._measure(source, began_s, deadline_s)
            finally:
                source.close()
            self._conclude()
            self.progress([self._standing(case) for case in self._cases])
        return self.results()

    def results(self) -> list[ProvenDecision]:
        """One decision for each scenario of each claim, also while the audit goes on or after it was cut off."""
        left_out = self._spared()
        cases = enumerate(self._cases)
        return [decision for n, case in cases for decision in self._decisions(case, left_out.get(n, set()))]

    def rest_s(self) -> float:
        """What it would take to look at the claims that nobody came to an end with, launches not counted."""
        return sum(
            (FEWEST_LAUNCHES + 1 - min(len(case.launches), FEWEST_LAUNCHES)) * self._off * min(self._costs[id(case)])
            for case in self._cases
            if case.verdict is Verdict.OPEN
        )

    def _costs_of(self, claim: Claim) -> list[float]:
        return [self.cost_s(scenario) for scenario in claim.scenarios]

    def _is_worth_a_launch(self, deadline_s: float) -> bool:
        left_s = deadline_s - self.clock() - self.launch_s
        cheapest_s = min((min(self._costs[id(case)]) for case in self._active()), default=math.inf)
        return left_s > self._off * cheapest_s

    def _active(self) -> list[Case]:
        """Those that a further comparison could change, the most gain for the time first."""
        found = [case for case in self._cases if case.verdict is Verdict.OPEN]
        if found or self.launches < self._last_open + _SURER_LAUNCHES:
            found += [case for case in self._cases if case.verdict is Verdict.KEPT and case.is_unsure]
        return sorted(found, key=self._worth, reverse=True)

    def _worth(self, case: Case) -> float:
        stake = max(case.claim.stake, 1e-9) / float(np.median(self._costs[id(case)]))
        return stake * (_SURER if case.verdict is Verdict.KEPT else _BEGUN if case.seen else 1.0)

    def _quota_s(self, deadline_s: float) -> float:
        """The time inside the launch at hand: those that are still to come need theirs, and take it."""
        left_s = deadline_s - self.clock()
        planned = max(_FIRST_LAUNCHES, min(3 * _FIRST_LAUNCHES, int(_LAUNCH_SHARE * left_s / max(self.launch_s, 1e-3))))
        to_come = max(planned - self.launches, 0) if self.launches <= _FIRST_LAUNCHES else 1
        return (left_s - to_come * self.launch_s) / (to_come + 1)

    def _measure(self, source: Source, began_s: float, deadline_s: float) -> None:
        """Rounds over all active claims, as long as the launch's share of the time lasts."""
        self._until_s = math.inf  # until it is known how long the launch itself took
        for _ in range(_MOST_LOOKS):
            answered = False
            for point, samples in source.measure(self._offers(deadline_s), self.effort):
                answered = True
                if self._until_s == math.inf:
                    # The launch itself is what the first comparison does not account for.
                    self._saw_launch(self.clock() - began_s - sum(sample.cost_s for sample in samples))
                    self._until_s = self.clock() + self._quota_s(deadline_s)
                if samples:
                    self._take(point, samples)
            if not answered or self.clock() >= self._until_s:
                break

    def _saw_launch(self, took_s: float) -> None:
        self.launch_s += (max(took_s, 0.0) - self.launch_s) / (1 + self.launches)

    def _offers(self, deadline_s: float) -> Iterator[Point]:
        for case in self._active():
            now_s = self.clock()
            left_s = min(self._until_s, deadline_s) - now_s
            dearest_s = max(_DEAREST_SHARE * (deadline_s - now_s), 2.0 * self._off * min(self._costs[id(case)]))
            limit_s = min(dearest_s, left_s) / self._off
            scenario = case.next_scenario([cost <= limit_s for cost in self._costs[id(case)]])
            if scenario is not None:
                yield Point(scenario, (self.baseline(scenario), case.claim.choice))

    def _take(self, point: Point, samples: Sequence[Sample]) -> None:
        self.record(samples)
        scenario = point.scenario
        ours = [case for case in self._cases if scenario in case.claim.rows and scenario not in case.replaced]
        baseline = self.baseline(scenario)
        for sample in samples:
            why = f"{sample.choice} was {sample.status} when measured again"
            if sample.status in _HERE_ALONE or (sample.status is not Status.OK and sample.choice == baseline):
                for case in ours:
                    case.impossible.add(scenario)
            elif sample.status is not Status.OK:
                self._untrusted[scenario.collective, sample.choice] = why
                self._distrust(scenario.collective, sample.choice, why)
        found = {sample.choice: sample for sample in samples if sample.status is Status.OK}
        if len(point.choices) < 2 or len(found) < 2:
            return
        default, chosen = found[point.choices[0]], found[point.choices[1]]
        self._note_cost(scenario, default.cost_s + chosen.cost_s)
        for case in ours:
            if case.claim.choice == chosen.choice:
                value = math.log(default.time_s / chosen.time_s)
                case.take(scenario, self.launches, value, _other_views(default, chosen))

    def _note_cost(self, scenario: Scenario, took_s: float) -> None:
        self._expected_s += self.cost_s(scenario)
        self._took_s += took_s
        self._off = max(self._took_s, 1e-9) / max(self._expected_s, 1e-9)

    def _distrust(self, collective: str, choice: Choice, why: str) -> None:
        for case in self._cases:
            if (case.claim.collective, case.claim.choice) == (collective, choice):
                case.verdict, case.reason = Verdict.REFUSED, why

    def _conclude(self) -> None:
        """Verdicts, cuts and the outlook after a launch."""
        self._scale = pooled_scale([case.launches for case in self._cases])
        effects = self._effects()
        for case in [case for case in self._cases if case.seen and case.verdict is not Verdict.REFUSED]:
            case.look_ahead(effects[case.claim.collective, case.claim.choice])
            if case.verdict is Verdict.OPEN and case.judge(self._scale) is not Verdict.KEPT:
                self._cut(case)
        self._known = effects
        if any(case.verdict is Verdict.OPEN for case in self._cases):
            self._last_open = self.launches

    def _effects(self) -> dict[tuple[str, Choice], Effect]:
        groups: dict[tuple[str, Choice], list[Seen]] = {}
        for case in self._cases:
            if case.seen:
                groups.setdefault((case.claim.collective, case.claim.choice), []).extend(case.seen)
        told = {key: Group(seen) for key, seen in groups.items()}
        self._deviations = deviations_of(told.values(), self._deviations)
        return {key: Effect(group, self._deviations) for key, group in told.items()}

    def _cut(self, case: Case) -> None:
        """What is faster in one part goes on as a claim of its own, whose evidence begins anew."""
        parts = case.parts() if len(self._cases) < _MOST_CUT * len(self.claims) + _FEW_CUT else []
        if not parts:
            return
        case.verdict, case.reason = Verdict.REFUSED, "faster in one part of its region only, which is judged by itself"
        case.replaced = {scenario for part in parts for scenario in part.scenarios}
        for part in parts:
            new = Case(part, case.floor, self.seed + len(self._cases))
            self._cases.append(new)
            self._costs[id(new)] = self._costs_of(part)

    def _spared(self) -> dict[int, set[Scenario]]:
        """What keeps the default of each kept claim, by its number."""
        kept = [number for number, case in enumerate(self._cases) if case.verdict is Verdict.KEPT]
        seen = [(case.claim.choice, one) for case in self._cases for one in case.seen]
        found = spared([self._cases[n].claim for n in kept], self._known, seen, self.total_weight, self.seed)
        return dict(zip(kept, found, strict=True))

    def _standing(self, case: Case) -> ProvenDecision:
        """Where a claim stands, in one of its scenarios for all."""
        ratios = tuple(math.exp(one.value) for one in case.seen)
        return ProvenDecision(case.claim.scenarios[0], case.claim.choice, case.verdict, ratios, case.reason)

    def _decisions(self, case: Case, left_out: Collection[Scenario]) -> Iterator[ProvenDecision]:
        verdict, reason = case.verdict, case.reason
        if verdict is Verdict.OPEN:
            verdict = Verdict.NOT_TRIED
            reason = f"the budget ended after {len(case.launches)} launches" if case.seen else _NOT_LOOKED_AT
        region = (case.speedup, *case.interval(self._scale)) if len(case.launches) >= FEWEST_LAUNCHES else None
        of_region = ProvenDecision(case.claim.scenarios[0], case.claim.choice, verdict, (), reason)
        for scenario in (s for s in case.claim.scenarios if s not in case.replaced):
            ratios = tuple(math.exp(one.value) for one in case.seen if one.scenario == scenario)
            decision = replace(of_region, scenario=scenario, ratios=ratios, region=region)
            if scenario in left_out:
                reason = "its region is faster, and here it may be slower"
                decision = replace(decision, verdict=Verdict.REFUSED, reason=reason, region=None)
            yield decision


def _other_views(default: Sample, chosen: Sample) -> list[float]:
    """Log ratios of the same comparison by calls back to back, and by the mean over ranks, where both were taken."""
    pairs = [(default.back_to_back_s, chosen.back_to_back_s), (default.osu_mean_s, chosen.osu_mean_s)]
    return [math.log(one / other) for one, other in pairs if one and other]
