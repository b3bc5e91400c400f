"""The last proof of speed: compares the library with the files, as an application loads them, and without them.

The proof measures algorithms that control variables choose. With a file the library also searches the rules
in every call; with few ranks and bytes the search can take as long as the better algorithm saves.

The audit compares a choice with the default in one launch, side by side. Whether files are in force differs from
launch to launch, and launches differ by more than a search costs. So what was measured in force is read beside what was
proven. For a scenario i of one collective, log(default / tuned) in force is taken to be

    r_i = g_i - s / t_i + a + d_i + e_i,

with g_i the proven log speed-up (0 without a rule), s the seconds that the search takes in each call, t_i the time of a
call, a what the launches with files differ by from those without, d_i what the scenario has for itself in force, and
e_i the noise of its launches. All but g_i are normal about 0 (Bayesian linear regression, Bishop 2006, section 3.3).
Long calls tell a, short ones s.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from colltune.bench.contract import LibraryBench
from colltune.core.inner_calls import SharedCall, shared_calls
from colltune.core.interval import SpeedVerdict
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.distill.decide import Decided
from colltune.judge.spread import spreads
from colltune.judge.verdict import Comparison
from colltune.measure.contract import Effort
from colltune.prove.compare.two_sides import FEWEST_LAUNCHES, verify
from colltune.store.tuning import Tuning, write_files

Floats = NDArray[np.float64]
# Standard deviations before anything is compared: seconds that a search takes, and what a scenario has for itself.
_SEARCH_S, _OWN = 1e-6, 0.05
# Launches are never taken to agree better than this.
_LEAST = 0.01


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Of the files of one collective: ``search_s`` a call and its standard deviation ``unsure_s``, in seconds.

    ``own``: by scenario that was compared, the log speed-up that it has in force beyond what is proven and the search.
    """

    search_s: float
    unsure_s: float
    own: dict[Scenario, float]

    def gain(self, decision: Decision, time_s: float, growth: float = 1.0) -> float:
        """The log speed-up in force over a call of ``time_s`` by default; ``growth``: of the file since then.

        What a longer file costs is not known, so its search is taken to be as long as it may well be.
        """
        proven = proven_gain(decision)
        search_s = self.search_s if growth <= 1.0 else growth * (self.search_s + self.unsure_s)
        return proven - search_s / (time_s * math.exp(-proven)) + self.own.get(decision.scenario, 0.0)


def proven_gain(decision: Decision) -> float:
    """The log speed-up by the audit: between that of its region and that of its own comparisons."""
    gains = [] if decision.region is None else [math.log(decision.region.estimate)]
    if decision.ratios:
        gains.append(fmean(math.log(ratio) for ratio in decision.ratios))
    return fmean(gains or [0.0])


def search_cost(
    compared: Sequence[Comparison], kept: Sequence[Decision], time_s: Callable[[Scenario], float]
) -> SearchCost:
    """What ``compared``, the comparisons of one collective with files and without, say of their search.

    ``time_s``: what a call takes by default, in seconds.
    """
    if not compared:
        return SearchCost(0.0, _SEARCH_S, {})
    proven = {decision.scenario: proven_gain(decision) for decision in kept}
    expected = np.array([0.0 if c.choice == DEFAULT else proven.get(c.scenario, 0.0) for c in compared])
    times_s = np.array([time_s(c.scenario) for c in compared])
    times_s = np.where(np.isfinite(times_s), times_s, [c.a_s for c in compared]) * np.exp(-expected)
    sides = [(c.a_launches_s, c.b_launches_s) for c in compared]
    noise = np.array(
        [
            max(spread.deviation, _LEAST) * math.sqrt(1.0 / len(default) + 1.0 / len(tuned))
            for spread, (default, tuned) in zip(spreads(sides), sides, strict=True)
        ]
    )
    # Unknown: the search in units of _SEARCH_S, what the launches differ by in units of its own deviation.
    design = np.stack([-_SEARCH_S / times_s, np.full(len(compared), _between_launches(sides))], axis=1)
    beyond = np.log([c.speedup.estimate for c in compared]) - expected
    precision = 1.0 / (noise**2 + _OWN**2)
    covariance = np.linalg.inv(np.eye(2) + design.T @ (design * precision[:, None]))
    mean = covariance @ (design.T @ (precision * beyond))
    mean[0] = max(mean[0], 0.0)  # a search takes no less than nothing
    left = (beyond - design @ mean) * _OWN**2 * precision
    own = {c.scenario: float(value) for c, value in zip(compared, left, strict=True)}
    return SearchCost(_SEARCH_S * float(mean[0]), _SEARCH_S * math.sqrt(float(covariance[0, 0])), own)


def _between_launches(sides: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The standard deviation of the difference that launches of two kinds show in all points alike."""
    variance = 0.0
    for kind in (0, 1):
        means = np.log([list(both[kind]) for both in sides]).mean(axis=0)
        variance += float(np.var(means, ddof=1)) / len(means) if len(means) > 1 else 0.0
    return max(math.sqrt(variance), _LEAST)


# Files that are compared; after the last one only what makes the file shorter may still go.
_ROUNDS = 2
# Beside the scenarios with a rule, so many without one are looked at per collective: the search costs these, too.
_CONTROLS = 4
_LAUNCHES = 5
# Scenarios with a rule that are compared: the audit has judged their speed, and the search is alike in all of them.
_MOST_RULED = 32
# Scenarios whose default has something in common with a rule of another one: at most so many are looked at.
_TOUCHED = 8
_UNCOMPARED = "the budget ended before the files were compared in force"
_NOT_WORTH_IT = "in force, the search of the file costs more than it gains"
_EFFORT = Effort(relative_width=0.03, box_s=0.004, fewest=20, most=200)


def longest_s(decided: Decided, launch_s: float, overhead: float) -> float:
    """Seconds that the comparison takes at most, whatever of ``decided`` is proven (see `FilesComparison`)."""
    cost_s = {scenario: overhead * _EFFORT.expected_cost_s(time_s) for scenario, time_s in decided.default_s.items()}
    ruled = {scenario: choice for scenario, choice in decided.choices.items() if choice != DEFAULT}
    beside = _CONTROLS * len({scenario.collective for scenario in ruled}) + _TOUCHED
    measuring_s = sum(cost_s[scenario] for scenario in _shortest(ruled.items(), decided.default_s.__getitem__))
    return _ROUNDS * 2 * _LAUNCHES * (launch_s + measuring_s + beside * fmean(cost_s.values() or [0.0]))


def _shortest(calls: Iterable[tuple[Scenario, Choice]], time_s: Callable[[Scenario], float]) -> list[Scenario]:
    """The shortest call of each choice in each shape, as many as are compared: the search of the file costs it most."""
    by_time = sorted(calls, key=lambda call: time_s(call[0]))
    firsts = {(s.collective, s.nodes, s.ppn, choice): s for s, choice in reversed(by_time)}
    return sorted(firsts.values(), key=time_s)[:_MOST_RULED]


@dataclass(frozen=True)
class FilesComparison:
    """The comparison of files with none.

    ``emit`` makes the tuning of rules, ``rules_of`` the rules of results. ``workplace``: a directory that all nodes
    see. ``grid``: every scenario that was looked at. ``launch_s``: what a launch takes; ``time_s``: what a call takes
    by default, as far as known; ``overhead``: what measuring takes over the calls. ``deadline_s`` is on the bench's
    clock; what outlasts it by ``grace_s`` is cut off.
    """

    bench: LibraryBench
    rules_of: Callable[[Sequence[Decision]], Mapping[str, RuleSet]]
    emit: Callable[[Mapping[str, RuleSet]], Tuning]
    workplace: Path
    grid: Sequence[Scenario]
    seed: int
    launch_s: float
    time_s: Callable[[Scenario], float]
    deadline_s: float
    grace_s: float = math.inf
    overhead: float = 1.0

    def keep_what_pays(self, decisions: Sequence[Decision]) -> list[Decision]:
        """``decisions`` with the decisions refused that are not faster with the files; one round for each tried file.

        A kept scenario is refused where it is not expected to be faster with the file, by what was proven and what is
        compared now (``compare.search_cost``); where it is slower beyond the interval, and with it the shorter
        calls of the same choice in its shape; all of a collective where a scenario without a rule is slower beyond the
        interval. Where time is short there are fewer launches, and calls that take long are left out: what the search
        of the rules costs, the short ones feel most.
        """
        results = list(decisions)
        for round_number in range(_ROUNDS):
            kept = [result for result in results if result.verdict is Verdict.KEPT]
            if not kept:
                break
            tuning = self.emit(self.rules_of(results))
            write_files(self.workplace, tuning.files)
            scenarios, launches = self._affordable(kept, tuning)
            compared = verify(
                self.bench,
                tuning,
                self.workplace,
                scenarios,
                launches,
                self.seed + round_number,
                effort=_EFFORT,
                deadline_s=self.deadline_s,
                until_s=self.deadline_s + self.grace_s,
            )
            if not {c.scenario for c in compared} & {result.scenario for result in kept}:
                return [result.if_kept(Verdict.NOT_TRIED, _UNCOMPARED, Why.BUDGET) for result in results]
            touching = self._touching(kept)
            slowed = self._slowed_beside(compared, touching)
            beside = {c.scenario for c in compared if c.choice == DEFAULT and self._meets(c.scenario, touching)}
            compared = [c for c in compared if c.scenario not in beside]
            costs = self._costs(compared, kept)
            refused = {r.scenario: _NOT_WORTH_IT for r in kept if self._gain(costs, r) <= 0.0}
            refused |= _refused(compared, kept) | slowed
            if not refused:
                return results
            last = (
                round_number == _ROUNDS - 1 or self.bench.now_s() + self._round_s(scenarios, launches) > self.deadline_s
            )
            results = _after(results, refused)
            if last:
                return self._without_longer_files(results, tuning, costs)
        return results

    def _affordable(self, kept: Sequence[Decision], tuning: Tuning) -> tuple[list[Scenario], int]:
        """The scenarios to compare in the time that is left, and the number of launches with the file and without.

        Of the scenarios without a rule those with short calls stay longest, one of each collective always.
        """
        collectives = sorted({result.scenario.collective for result in kept})
        shortest: list[Scenario] = []
        controls: list[Scenario] = []
        for name in collectives:
            controls_of = sorted(_controls(tuning.rule_sets[name], self.grid), key=self.time_s)
            shortest += controls_of[:1]
            controls += controls_of[1:]
        controls += [s for s in self._touched(kept, tuning) if s not in {*controls, *shortest}]
        controls.sort(key=self.time_s)
        ordered = _shortest(((result.scenario, result.choice) for result in kept), self.time_s)
        left_s = self.deadline_s - self.bench.now_s()
        launches = _LAUNCHES
        while launches > FEWEST_LAUNCHES and self._round_s([*shortest, *controls, *ordered], launches) > left_s:
            launches -= 1
        while self._round_s([*shortest, *controls, *ordered], launches) > left_s:
            if len(ordered) > 1:
                ordered.pop()
            elif controls:
                controls.pop()
            else:
                break
        return [*shortest, *controls, *ordered], launches

    def _touched(self, kept: Sequence[Decision], tuning: Tuning) -> list[Scenario]:
        """Scenarios without a rule whose default runs an inner collective that another scenario's rule decides."""
        touching = self._touching(kept)
        default = [s for s in self.grid if tuning.rule_sets[s.collective].evaluate(s) == DEFAULT]
        touched = [scenario for scenario in default if touching and self._meets(scenario, touching)]
        return sorted(touched, key=self.time_s)[:: max(1, -(-len(touched) // _TOUCHED))]

    def _touching(self, kept: Sequence[Decision]) -> dict[SharedCall, list[tuple[Decision, Choice]]]:
        touching: defaultdict[SharedCall, list[tuple[Decision, Choice]]] = defaultdict(list)
        for result in kept:
            for key, value in shared_calls(self.bench.inner_calls, result.scenario, result.choice).items():
                touching[key].append((result, value))
        return touching

    def _meets(
        self, scenario: Scenario, touching: Mapping[SharedCall, Sequence[tuple[Decision, Choice]]]
    ) -> list[Decision]:
        """The results that change something in ``scenario``, which has no rule of its own."""
        own = self.bench.touched_by_default(scenario)
        return [result for key, value in own.items() for result, other in touching.get(key, ()) if other != value]

    def _slowed_beside(
        self, compared: Sequence[Comparison], touching: Mapping[SharedCall, Sequence[tuple[Decision, Choice]]]
    ) -> dict[Scenario, str]:
        """What slows scenarios without a rule by what it has in common with them."""
        return {
            result.scenario: f"in force, it slows {c.scenario.nodes} x {c.scenario.ppn} ranks to {c.speedup}"
            for c in compared
            if c.choice == DEFAULT and c.verdict is SpeedVerdict.SLOWER
            for result in self._meets(c.scenario, touching)
        }

    def _round_s(self, scenarios: Sequence[Scenario], launches: int) -> float:
        measuring_s = self.overhead * sum(_EFFORT.expected_cost_s(self.time_s(scenario)) for scenario in scenarios)
        return 2 * launches * (self.launch_s + measuring_s)

    def _without_longer_files(
        self, results: Sequence[Decision], tried: Tuning, costs: Mapping[str, SearchCost]
    ) -> list[Decision]:
        """After the last comparison: what stays, where refusals cut the rules of a collective into more."""
        rules = self.emit(self.rules_of(results)).rule_sets
        growth = {name: len(rules[name].rules) / max(len(tried.rule_sets[name].rules), 1) for name in rules}
        costly = {
            r.scenario: _NOT_WORTH_IT
            for r in results
            if r.verdict is Verdict.KEPT and self._gain(costs, r, growth[r.scenario.collective]) <= 0.0
        }
        return _after(results, costly)

    def _costs(self, compared: Sequence[Comparison], kept: Sequence[Decision]) -> dict[str, SearchCost]:
        """By collective."""
        names = {result.scenario.collective for result in kept}
        return {n: search_cost([c for c in compared if c.scenario.collective == n], kept, self.time_s) for n in names}

    def _gain(self, costs: Mapping[str, SearchCost], result: Decision, growth: float = 1.0) -> float:
        """The log speed-up that a kept result is expected to have in force."""
        return costs[result.scenario.collective].gain(result, self.time_s(result.scenario), growth)


def _controls(rules: RuleSet, grid: Sequence[Scenario]) -> list[Scenario]:
    """The scenarios without a rule next to those with one: where the search is longest for nothing."""
    mine = sorted(s for s in grid if s.collective == rules.collective)
    default = [s for s in mine if rules.evaluate(s) == DEFAULT]
    step = max(1, len(default) // _CONTROLS)
    return default[::step][:_CONTROLS]


def _refused(compared: Sequence[Comparison], kept: Sequence[Decision]) -> dict[Scenario, str]:
    slowed = {c.scenario.collective: c for c in compared if c.choice == DEFAULT and c.verdict is SpeedVerdict.SLOWER}
    refused: dict[Scenario, str] = {}
    for result in kept:
        culprit = slowed.get(result.scenario.collective)
        if culprit is not None:
            refused[result.scenario] = (
                f"in force, the search of the file slows {culprit.scenario.size_bytes} B to {culprit.speedup}"
            )
    for comparison in compared:
        if comparison.choice != DEFAULT and comparison.verdict is SpeedVerdict.SLOWER:
            reason = f"in force, the file is only {comparison.speedup} times as fast"
            refused |= {r.scenario: reason for r in kept if _is_shorter(r, comparison) and r.scenario not in refused}
    return refused


def _is_shorter(result: Decision, comparison: Comparison) -> bool:
    """Whether the result is of the compared call, or of a shorter one of its choice and shape."""
    shorter, longer = result.scenario, comparison.scenario
    same = (shorter.collective, shorter.nodes, shorter.ppn) == (longer.collective, longer.nodes, longer.ppn)
    return same and result.choice == comparison.choice and shorter.size_bytes <= longer.size_bytes


def _after(results: Sequence[Decision], refused: Mapping[Scenario, str]) -> list[Decision]:
    return [
        result.if_kept(Verdict.REFUSED, refused[result.scenario], Why.SLOW_FILE)
        if result.scenario in refused
        else result
        for result in results
    ]
