"""The audit: claims are compared with the default in fresh launches until each is proven, refused or out of time.

Every launch compares each open claim at one or more scenarios of its region, side by side with the default; the mean
of a launch is one piece of evidence (``judge.evidence``). Time goes first to the claims with the greatest gain
for it. What all comparisons say of the scenarios that nobody looked at (``audit.effects``) decides where to
look next, cuts a region that is faster in one part only, and leaves to the default what may be slower
(``audit.harm``).
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from colltune.bench.parallel import Lanes
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.sample import Choice, Heaps, OtherViews, Sample, Scenario, Status, log_speedup
from colltune.core.space import Point
from colltune.core.switchback import Standing
from colltune.judge.evidence import FEWEST_LAUNCHES, Reference, log_evidence, scatter_of, share_of_nulls
from colltune.measure.contract import Effort, Source
from colltune.prove.audit.case import MOST_LAUNCHES, Case
from colltune.prove.audit.claims import Claim, planned_launches
from colltune.prove.audit.comparing import Elsewhere, compare
from colltune.prove.audit.effects import ChoiceEffect, Deviations, Group, Seen, deviations_of
from colltune.prove.audit.harm import spared
from colltune.prove.audit.outcome import decisions_of, standing_of
from colltune.prove.audit.taken import Bests, Measured, PairTimes
from colltune.prove.audit.worth import ComparisonCosts, ContinuationCosts, gain_of
from colltune.schedule.contract import Task
from colltune.site.index_rows import PairedRatio

EFFORT = Effort(relative_width=0.04, box_s=0.004, fewest=8, most=100)
# Statuses that say something of one scenario, and nothing of the choice elsewhere.
_HERE_ALONE = frozenset({Status.INAPPLICABLE, Status.UNMEASURED})
# A launch in which more of the time of its comparisons was disturbed is no evidence.
_DISTURBED_SHARE = 0.2
# Launches in which a claim that is open is expected to come to its end.
_TO_THE_END = 4
# In one launch a claim is compared at so many scenarios at most: what the launch has of its own does not average out.
_MOST_LOOKS = 6
# Of the time that is left, what one comparison may take.
_LARGEST_SHARE = 0.04
# Looks are planned as if a claim gained this part of what is expected, and with so much evidence more than it needs.
_PART_OF_GAIN, _IN_RESERVE = 0.8, 0.5
# Of the worth of a claim that can be proven in the launches that are planned, that of one that takes more of them, and
# of a further look at one that is proven.
_LATER = 0.2
# Cuts may bring so many times the claims there were: each of them needs launches of its own.
_MOST_CUT, _FEW_CUT = 1.5, 6
# Once nothing is open, so many launches more for scenarios of proven claims that may be slower as far as one knows.
_SURER_LAUNCHES = 10


@dataclass
class Audit:
    """Puts ``claims`` to the proof; times in seconds on ``clock``.

    ``open_source`` starts a fresh launch, which takes about ``launch_s``: lanes where disjoint parts of the job compare
    at once. ``record`` hears of every sample.
    ``baseline`` gives what a choice is compared with: the default, or the choice that is the same and set in the
    candidates' way. ``default_s``: what it took in the campaign, infinite where that did not measure it. ``cost_s``:
    what a comparison is expected to take.
    ``total_weight``: of all scenarios that the job can form. ``repetitions``: how often each call is timed at most in
    a comparison; 0: as the effort says.
    ``skew_s``: how far apart ranks come to the calls, where late arrivals are timed too.
    ``before``: comparisons of other jobs, which are launches like those to come.
    ``applications``: what the application itself says of choices; each of its runs counts as a launch.
    ``least_gain``: what a second has to bring where so much is captured (``audit.worth``); ``captured``: by
    what other jobs proved, and ``after_s``: what else it takes once anything is proven.
    ``together``: all that is begun goes into the same launches of the source, each call once.
    """

    claims: Sequence[Claim]
    open_source: Callable[[], Source | Lanes]
    record: Callable[[Sequence[Sample]], None]
    baseline: Callable[[Scenario], Choice]
    cost_s: Callable[[Scenario], float]
    total_weight: float
    threshold: float
    launch_s: float
    default_s: Callable[[Scenario], float] = lambda _scenario: math.inf
    seed: int = 0
    effort: Effort = EFFORT
    repetitions: Callable[[Scenario], int] = lambda _scenario: 0
    skew_s: Callable[[Scenario], float] = lambda _scenario: 0.0
    progress: Callable[[Sequence[Decision]], None] = lambda _results: None
    clock: Callable[[], float] = time.monotonic
    before: Mapping[tuple[Scenario, Choice], Sequence[PairedRatio]] = field(default_factory=dict)
    applications: Sequence[Standing] = ()
    least_gain: Callable[[float], float] = lambda _captured: 0.0
    captured: float = 0.0
    after_s: float = 0.0
    together: bool = False
    launches: int = field(default=0, init=False)
    _reference: Reference = field(default_factory=Reference, init=False)
    _deviations: Deviations = field(default_factory=Deviations, init=False)
    _last_open: int = field(default=0, init=False)  # the last launch in which anything was open
    _until_s: float = field(default=math.inf, init=False)  # when the launch at hand is over
    _costs: ComparisonCosts = field(default_factory=ComparisonCosts, init=False)
    _known: Mapping[tuple[str, Choice], ChoiceEffect] = field(default_factory=dict, init=False)
    _least: float = field(default=0.0, init=False)  # gain per second
    _paid_launches: int = field(default=0, init=False)  # that are worth their time
    _unpaid: set[int] = field(default_factory=set, init=False)  # open cases that are not worth their time

    def __post_init__(self) -> None:
        self._cases: list[Case] = []
        self._bests = Bests()
        self._looked_s = self._disturbed_s = 0.0  # in the launch at hand
        self._at: defaultdict[Scenario, list[Case]] = defaultdict(list)
        self._cut_after: dict[Scenario, int] = {}  # the last launch that told where to cut a region it is in
        elsewhere = Elsewhere(self.before, self.applications, self.baseline)
        for claim in self.claims:
            elsewhere.remember(self._open(claim))
        if any(case.seen for case in self._cases):
            self._conclude()
        for case in list(self._cases):
            elsewhere.hear_application(case)  # last: by itself it proves nothing
        self._least = self.least_gain(self.captured + sum(gain_of(case) for case in self._kept()))

    def told_where_to_cut(self, sample: Sample) -> bool:
        """Whether ``sample`` chose what is in a part that was cut out: it proves nothing of that part elsewhere."""
        return sample.launch <= self._cut_after.get(sample.scenario, -1)

    def _open(self, claim: Claim) -> Case:
        costs_s = [self.cost_s(scenario) for scenario in claim.scenarios]
        late = any(self.skew_s(scenario) > 0.0 for scenario in claim.scenarios)
        case = Case(claim, math.log(self.threshold), self.seed + len(self._cases), costs_s, self._bests, late_too=late)
        case.expected_times = lambda scenario: self._expected_times(case, scenario)
        self._cases.append(case)
        for scenario in claim.scenarios:
            self._at[scenario].append(case)
        return case

    def _expected_times(self, case: Case, scenario: Scenario) -> PairTimes | None:
        default_s = self.default_s(scenario)
        gain = case.claim.gains[case.claim.rows[scenario]]
        return PairTimes(default_s, default_s * math.exp(-gain)) if math.isfinite(default_s) else None

    def run(self, deadline_s: float) -> list[Decision]:
        """The verdicts, after as many launches as are of use before ``deadline_s``."""
        while self.launches < MOST_LAUNCHES and self._is_worth_a_launch(deadline_s):
            began_s = self.clock()
            self.launches += 1
            self._looked_s = self._disturbed_s = 0.0
            opened = self.open_source()
            source = opened.source if isinstance(opened, Lanes) else opened
            try:
                self._measure(opened, began_s, deadline_s)
            finally:
                source.close()
            if source.disturbed or self._disturbed_s > _DISTURBED_SHARE * self._looked_s:
                for case in self._cases:
                    case.forget_launch(self.launches)
            self._conclude()
            self.progress([standing_of(case) for case in self._cases])
        return self.results()

    def results(self) -> list[Decision]:
        """One decision for each scenario of each claim, also while the audit goes on or after it was cut off."""
        left_out = self._spared()
        return [
            decision
            for n, case in enumerate(self._cases)
            for decision in decisions_of(case, left_out.get(n, set()), self._reference, unpaid=id(case) in self._unpaid)
        ]

    def rest_s(self) -> float:
        """What it would take to come to an end with the claims that are open, launches not counted.

        And with the scenarios of those that are kept, which were not all compared.
        """
        launches = {Verdict.OPEN: _TO_THE_END, Verdict.KEPT: 1}
        left = [case for case in self._cases if case.verdict in launches]
        looks = [min(self._looks(case, _TO_THE_END), self._most_looks(case)) for case in left]
        return sum(launches[case.verdict] * n * self._cost_s(case) for n, case in zip(looks, left, strict=True))

    def _is_worth_a_launch(self, deadline_s: float) -> bool:
        left_s = deadline_s - self.clock() - self.launch_s
        self._leave_unpaid(left_s)
        cheapest_s = min((min(case.costs_s) for case in self._active()), default=math.inf)
        return left_s > self._costs.likely_s(cheapest_s)

    def _leave_unpaid(self, left_s: float) -> None:
        """Finds what of the open claims is worth the time; what is proven already may take its time to be surer."""
        if self._least <= 0.0:
            return
        still_open = [case for case in self._cases if case.verdict is Verdict.OPEN]
        after_s = 0.0 if self._kept() else self.after_s
        costs = ContinuationCosts(self._least, self.launch_s, after_s, self._looks, self._cost_s, _MOST_LOOKS)
        most = int(left_s / max(self.launch_s, 1e-3)) + 1
        prior = self._reference if any(len(case.launches) >= FEWEST_LAUNCHES for case in self._cases) else Reference()
        self._paid_launches, paying = costs.paying(still_open, prior, most)
        self._unpaid = {id(case) for case in still_open} - {id(case) for case in paying}

    @property
    def unpaid(self) -> int:
        """How many open claims were left since they are not expected to gain enough for the time."""
        return sum(id(case) in self._unpaid and case.verdict is Verdict.OPEN for case in self._cases)

    def _kept(self) -> list[Case]:
        return [case for case in self._cases if case.verdict is Verdict.KEPT]

    def _active(self) -> list[Case]:
        """Those that a further comparison could change, and that are worth it."""
        active = [case for case in self._cases if case.verdict is Verdict.OPEN and id(case) not in self._unpaid]
        if active or self.launches < self._last_open + _SURER_LAUNCHES:
            active += [case for case in self._kept() if case.uncertain_count]
        return active

    def _looks(self, case: Case, launches: int) -> int:
        """How often it has to be compared in each of so many launches to be proven; more than there may be: never.

        If it gains what is known by now, and its launches scatter as those of all claims do.
        """
        if case.verdict is Verdict.KEPT:
            return case.uncertain_count
        needed, known = math.log(1.0 / self._reference.alpha) + _IN_RESERVE, case.launches
        gain = case.floor + _PART_OF_GAIN * (case.gain - case.floor)
        for looks in range(min(max(len(case.ends_unseen), case.looks_due, 1), _MOST_LOOKS), _MOST_LOOKS + 1):
            scale = self._reference.scatter.of(looks)
            to_come = [gain + (scale if number % 2 else -scale) for number in range(launches)]
            if log_evidence([*known, *to_come], scale, case.floor, case.expected) >= needed:
                return looks
        return _MOST_LOOKS + 1

    def _most_looks(self, case: Case) -> int:
        """In one launch, as many as tell most for their time and the claim's share of the launch."""
        share_s = self.launch_s / max(sum(other.verdict is Verdict.OPEN for other in self._cases), 1)
        return min(self._reference.scatter.best_looks(share_s, self._cost_s(case)), _MOST_LOOKS)

    def _cost_s(self, case: Case) -> float:
        return self._costs.likely_s(case.usual_cost_s)

    def _launches_to_come(self, left_s: float) -> int:
        """After the one at hand."""
        return (self._paid_launches or planned_launches(left_s, self.launch_s, self.launches - 1)) - 1

    def _plan(self, begun: Collection[int], quota_s: float, launches: int, *, together: bool) -> list[tuple[Case, int]]:
        """What is compared in the rest of a launch, and how often: what brings most for its time first.

        Each as often as it takes to prove it in ``launches``, of which this is the first; where all that is compared
        ``together`` is in one launch of the job, as often as tells most for the time. ``begun`` had their looks.
        """
        plans: list[tuple[float, int, Case]] = []
        for case in self._active():
            if id(case) not in begun:
                looks, most = self._looks(case, launches), self._most_looks(case)
                kept = case.verdict is Verdict.KEPT
                gain_per_s = max(case.gain, 1e-3) * sum(case.claim.weights) / (looks * self._cost_s(case))
                far = looks > _MOST_LOOKS or kept
                looks = looks if kept else most if together else min(looks, most)
                plans.append((_LATER * gain_per_s if far else gain_per_s, looks, case))
        plan = []
        for _, looks, case in sorted(plans, key=lambda ranked: -ranked[0]):
            if looks * self._cost_s(case) <= quota_s:
                plan.append((case, looks))
                quota_s -= looks * self._cost_s(case)
        return plan

    def _measure(self, source: Source | Lanes, began_s: float, deadline_s: float) -> None:
        """Compares in rounds, so that two looks at one claim are apart in time, until the launch's time is over."""
        begun: set[int] = set()
        self._until_s = math.inf  # until it is known how long the launch itself took
        left_s = deadline_s - self.clock()
        to_come = self._launches_to_come(left_s)
        until_s, launching_s = self.clock() + left_s / (to_come + 1), self.launch_s

        waiting, together = set[tuple[Scenario, Choice]](), self.together

        def offer(case: Case) -> Task | None:
            task = self._offer(case, deadline_s, waiting)
            if task is not None and together:
                waiting.add((task.point.scenario, case.claim.choice))
            return task

        def take(point: Point, samples: Sequence[Sample]) -> None:
            waiting.discard((point.scenario, point.choices[-1]))
            self._looked_s += sum(sample.cost_s for sample in samples)
            if self._until_s == math.inf and not waiting:
                # The launch itself is what the first comparisons do not account for.
                took_s = self.clock() - began_s - self._looked_s
                self.launch_s += (max(took_s, 0.0) - self.launch_s) / (1 + self.launches)
                self._until_s = max(until_s, self.clock())
            if samples:
                self._take(point, samples)

        while plan := self._plan(begun, until_s - self.clock() - launching_s, to_come + 1, together=together):
            launching_s = 0.0  # it starts with the first comparison
            rounds = [[case for case, looks in plan if looks > at] for at in range(max(looks for _, looks in plan))]
            for cases in [chain.from_iterable(rounds)] if together else rounds:
                compare(source, list(cases), offer, self.effort, take, self.clock)
            begun |= {id(case) for case, _ in plan}
            if self.clock() >= until_s:
                break

    def _offer(self, case: Case, deadline_s: float, waiting: Collection[tuple[Scenario, Choice]]) -> Task | None:
        """What to compare of ``case`` now, beside what is ``waiting``; None where there is nothing, or no time."""
        now_s = self.clock()
        left_s = min(self._until_s, deadline_s) - now_s
        likely_s = [self._costs.likely_s(cost_s) for cost_s in case.costs_s]
        limit_s = min(max(_LARGEST_SHARE * (deadline_s - now_s), 2.0 * min(likely_s)), left_s)
        scenario = case.next_scenario(
            [
                cost_s <= limit_s and (call, case.claim.choice) not in waiting
                for call, cost_s in zip(case.claim.scenarios, likely_s, strict=True)
            ]
        )
        if scenario is None:
            return None
        choices = (self.baseline(scenario), case.claim.choice)
        skew_s = self.skew_s(scenario) if case.may_stand else 0.0
        point = Point(scenario, choices, self.repetitions(scenario), skew_s)
        return Task(point, likely_s[case.claim.rows[scenario]])

    def _take(self, point: Point, samples: Sequence[Sample]) -> None:
        # A source does not know how many there were before it.
        samples = [replace(sample, launch=self.launches) for sample in samples]
        self.record(samples)
        if any(sample.status is Status.DISTURBED for sample in samples):
            self._disturbed_s += sum(sample.cost_s for sample in samples)
            return
        scenario = point.scenario
        ours = [case for case in self._at[scenario] if scenario not in case.replaced]
        baseline = self.baseline(scenario)
        for sample in samples:
            why = f"{sample.choice} was {sample.status} when measured again"
            if sample.status in _HERE_ALONE or (sample.status is not Status.OK and sample.choice == baseline):
                for case in ours:
                    case.impossible.add(scenario)
            elif sample.status is not Status.OK:
                self._exclude(scenario.collective, sample.choice, why)
        measured = {sample.choice: sample for sample in samples if sample.status is Status.OK}
        if len(point.choices) < 2 or len(measured) < 2:
            return
        default, chosen = measured[point.choices[0]], measured[point.choices[1]]
        self._costs.note(self.cost_s(scenario), default.cost_s + chosen.cost_s)
        times = PairTimes(default.time_s, chosen.time_s)
        for case in ours:
            if case.claim.choice == chosen.choice:
                self._bests.tell(self.launches, scenario, chosen.choice, times, case.expected_times(scenario))
                views, heaps = OtherViews.of(default, chosen), Heaps.of(default, chosen)
                case.take(scenario, self.launches, log_speedup(default, chosen), views, Measured(times, heaps))

    def _exclude(self, collective: str, choice: Choice, why: str) -> None:
        for case in self._cases:
            if (case.claim.collective, case.claim.choice) == (collective, choice):
                case.verdict, case.reason = Verdict.REFUSED, why

    def _conclude(self) -> None:
        """Verdicts, cuts and the outlook after a launch."""
        self._bests.end_launch()
        for case in self._cases:
            case.recheck_basis()
        self._reference = self._measured_reference()
        effects = self._effects()
        for case in [case for case in self._cases if case.seen and case.verdict is not Verdict.REFUSED]:
            case.look_ahead(effects[case.claim.collective, case.claim.choice])
            if case.verdict is Verdict.OPEN and case.judge(self._reference) is not Verdict.KEPT:
                self._cut(case)
        self._known = effects
        if any(case.verdict is Verdict.OPEN and id(case) not in self._unpaid for case in self._cases):
            self._last_open = self.launches

    def _measured_reference(self) -> Reference:
        scatter = scatter_of(case.by_launch for case in self._cases)
        telling = [case for case in self._cases if len(case.launches) >= FEWEST_LAUNCHES]
        return Reference(scatter, share_of_nulls([case.log_evidence(Reference(scatter)) for case in telling]))

    def _effects(self) -> dict[tuple[str, Choice], ChoiceEffect]:
        groups: dict[tuple[str, Choice], list[Seen]] = {}
        for case in self._cases:
            if case.seen:
                groups.setdefault((case.claim.collective, case.claim.choice), []).extend(case.seen)
        effects = {key: Group(seen) for key, seen in groups.items()}
        self._deviations = deviations_of(effects.values(), self._deviations)
        return {key: ChoiceEffect(group, self._deviations) for key, group in effects.items()}

    def _cut(self, case: Case) -> None:
        """What is faster in one part goes on as a claim of its own, whose evidence begins anew."""
        parts = case.parts() if len(self._cases) < _MOST_CUT * len(self.claims) + _FEW_CUT else []
        if not parts:
            return
        case.verdict, case.why = Verdict.REFUSED, Why.CUT_APART
        case.replaced = {scenario for part in parts for scenario in part.scenarios}
        for part in parts:
            self._open(part)
            self._cut_after |= dict.fromkeys(part.scenarios, self.launches)

    def _spared(self) -> dict[int, set[Scenario]]:
        """What keeps the default of each kept claim, by its number."""
        kept = [number for number, case in enumerate(self._cases) if case.verdict is Verdict.KEPT]
        seen = [(case.claim.choice, comparison) for case in self._cases for comparison in case.seen]
        spared_claims = spared([self._cases[n].claim for n in kept], self._known, seen, self.total_weight, self.seed)
        return dict(zip(kept, spared_claims, strict=True))
