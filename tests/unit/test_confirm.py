"""The gate on simulated noise: what is not faster hardly ever passes, and what is clearly faster nearly always."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.proven import Verdict, fewest_groups
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source
from colltune.measure.simulated import SimulatedSource
from colltune.prove.fresh_launches import Confirmation

BENCH = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "bench_gate.py"))
ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "simulated", 1, 2, "single")
FAST, SLOW, BROKEN = Choice("fast"), Choice("slow"), Choice("broken")
SIZES = (8, 64, 512)


def test_of_equal_algorithms_at_most_one_in_a_hundred_is_kept() -> None:
    results = [one for seed in (1, 2, 3, 4) for one in BENCH["confirm"](250, 1.0, BENCH["NOISE"], seed)]
    assert len(results) == 1000
    assert BENCH["kept_per_100"](results) <= 1.0


def test_of_candidates_a_quarter_faster_at_least_95_in_a_hundred_are_kept() -> None:
    results = [one for seed in (5, 6) for one in BENCH["confirm"](100, 1.25, BENCH["NOISE"], seed)]
    assert BENCH["kept_per_100"](results) >= 95.0


def truth(scenario: Scenario, choice: Choice) -> float | Status:
    return {DEFAULT: 2e-5, FAST: 1e-5, SLOW: 3e-5}[choice]


class Launches:
    """Hands out simulated launches, and remembers them and what was measured."""

    def __init__(self, make: type[SimulatedSource] = SimulatedSource) -> None:
        self.sources: list[SimulatedSource] = []
        self.recorded: list[Sample] = []
        self._make = make

    def open(self) -> Source:
        self.sources.append(self._make(ENVIRONMENT, truth, 1, len(self.sources) + 1))
        return self.sources[-1]

    def confirmation(self, **options: object) -> Confirmation:
        return Confirmation(self.open, self.recorded.extend, **{"clock": lambda: 0.0, **options})  # type: ignore[arg-type]


def candidates(choice: Choice) -> dict[Scenario, Choice]:
    return {Scenario("bcast", 1, 2, size): choice for size in SIZES}


def test_groups_are_spread_over_all_launches_and_every_launch_is_closed() -> None:
    launches = Launches()
    results = launches.confirmation().run(candidates(FAST), math.inf)
    assert [result.verdict for result in results] == [Verdict.KEPT] * 3
    assert {len(result.ratios) for result in results} == {fewest_groups()}
    assert len(launches.sources) == Confirmation.launches
    assert all(source.closed for source in launches.sources)
    assert {sample.launch for sample in launches.recorded} == set(range(1, Confirmation.launches + 1))
    for result in results:
        assert result.low == pytest.approx(2.0, rel=0.05)


def test_the_slower_is_refused_early() -> None:
    launches = Launches()
    results = launches.confirmation().run(candidates(SLOW), math.inf)
    assert [result.verdict for result in results] == [Verdict.REFUSED] * 3
    assert max(len(result.ratios) for result in results) <= 3
    assert all("not 1.03 times as fast" in result.reason for result in results)


def test_what_is_not_proven_in_time_stays_with_the_default() -> None:
    launches = Launches()
    ticks = count()
    results = launches.confirmation(clock=lambda: float(next(ticks))).run(candidates(FAST), 6.0)
    assert {result.verdict for result in results} == {Verdict.NOT_TRIED}
    assert all("of the 8 comparisons that it needs" in result.reason for result in results)
    assert all(source.closed for source in launches.sources)
    assert Launches().confirmation(clock=lambda: 7.0).run(candidates(FAST), 6.0)[0].ratios == ()


def test_a_proof_that_is_cut_off_before_its_first_launch_has_tried_nothing() -> None:
    confirmation = Launches().confirmation(cost_s=lambda _scenario: 1.0)
    assert {result.verdict for result in confirmation.results(candidates(FAST))} == {Verdict.NOT_TRIED}
    assert confirmation.rest_s(candidates(FAST)) == pytest.approx(3.0 * fewest_groups())


def failed(point: Point, choice: Choice, status: Status) -> tuple[Point, list[Sample]]:
    return point, [Sample(point.scenario, choice, status)]


class EndsTheJob(SimulatedSource):
    """As a live source whose job the candidate ends: its failure comes alone, and then it is left out."""

    gone = False

    def measure(self, points: object, effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in list(points):  # type: ignore[call-overload]
            if not self.gone:
                self.gone = True
                yield failed(point, FAST, Status.CRASHED)
            rest = Point(point.scenario, tuple(choice for choice in point.choices if choice != FAST))
            yield from super().measure([rest], effort)


def test_a_candidate_that_ends_the_job_is_refused_wherever_it_stands() -> None:
    launches = Launches(EndsTheJob)
    results = launches.confirmation().run(candidates(FAST), math.inf)
    assert [result.verdict for result in results] == [Verdict.REFUSED] * 3
    assert all("crashed" in result.reason for result in results)
    assert len(launches.sources) == 1


class Refuses(SimulatedSource):
    """As a live source whose agent refuses the points of one size."""

    def measure(self, points: object, effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point, samples in super().measure(points, effort):  # type: ignore[arg-type]
            if point.scenario.size_bytes == 64:
                why = "no memory for a request"
                yield point, [Sample(s.scenario, s.choice, Status.UNMEASURED, detail=why) for s in samples]
            else:
                yield point, samples


def test_a_point_that_the_agent_refuses_is_not_proven_and_the_others_are() -> None:
    results = Launches(Refuses).confirmation().run(candidates(FAST), math.inf)
    by_size = {result.scenario.size_bytes: result for result in results}
    assert by_size[8].verdict is by_size[512].verdict is Verdict.KEPT
    assert by_size[64].verdict is Verdict.REFUSED
    assert by_size[64].reason.endswith("was unmeasured when measured again (no memory for a request)")


class EndsTogether(SimulatedSource):
    """The job ends whenever the two are measured side by side, and neither alone is to blame."""

    def measure(self, points: object, effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in list(points):  # type: ignore[call-overload]
            yield point, []
            for choice in point.choices:
                yield from super().measure([Point(point.scenario, (choice,))], effort)


def test_a_comparison_that_never_completes_is_given_up() -> None:
    launches = Launches(EndsTogether)
    results = launches.confirmation().run(candidates(FAST), math.inf)
    assert [result.verdict for result in results] == [Verdict.REFUSED] * 3
    assert all("beside the default" in result.reason for result in results)


class Wrong(SimulatedSource):
    def measure(self, points: object, effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point, samples in super().measure(points, effort):  # type: ignore[arg-type]
            bad: Sequence[Sample] = [Sample(point.scenario, FAST, Status.WRONG)]
            yield point, [*samples[:1], *bad]


def test_a_candidate_with_a_wrong_result_is_refused() -> None:
    results = Launches(Wrong).confirmation().run(candidates(FAST), math.inf)
    assert all(result.verdict is Verdict.REFUSED and "wrong" in result.reason for result in results)


def test_a_proof_that_takes_longer_than_expected_is_planned_anew_before_all_have_had_a_look() -> None:
    """Time for 20 of 100 candidates, while the costs that are expected have room for all of them."""
    launches = Launches()
    many = {Scenario("bcast", 1, 2, 4 * size): FAST for size in range(1, 101)}
    group_s = 20 * (truth(Scenario("bcast", 1, 2, 4), DEFAULT) + truth(Scenario("bcast", 1, 2, 4), FAST))  # type: ignore[operator]
    confirmation = launches.confirmation(
        clock=lambda: sum(source.now_s for source in launches.sources),
        cost_s=lambda _scenario: group_s / 100,
        effort=Effort(fewest=20),
    )
    results = confirmation.run(many, deadline_s=20 * fewest_groups() * group_s)
    assert sum(1 for result in results if result.ratios) <= 40
    assert sum(1 for result in results if result.verdict is Verdict.KEPT) >= 15


class Clock:
    """A machine's clock, on which a launch takes 5 s, and what lies beyond ``until_s`` is cut off."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def launch(self, truth: Callable[[Scenario, Choice], float | Status], number: int) -> Source:
        self.now_s += 5.0
        return OnClock(self, truth, number)


class OnClock(SimulatedSource):
    def __init__(self, clock: Clock, truth: Callable[[Scenario, Choice], float | Status], number: int) -> None:
        super().__init__(ENVIRONMENT, truth, 1, number)
        self._wall = clock

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point, samples in super().measure(points, effort):
            self._wall.now_s += sum(sample.cost_s for sample in samples)
            yield point, samples


def confirmation_on(clock: Clock, truth: Callable[[Scenario, Choice], float | Status]) -> Confirmation:
    """Launches of 5 s, and groups that are expected to take 2 s."""
    numbers = count(1)
    return Confirmation(
        lambda: clock.launch(truth, next(numbers)),
        lambda _samples: None,
        clock=lambda: clock.now_s,
        launch_s=5.0,
        cost_s=lambda _scenario: 2.0,
        effort=Effort(fewest=20),
    )


def slower_by(times: float, of: Callable[[Scenario], bool] = lambda _s: True) -> Callable[[Scenario, Choice], float]:
    """Groups of 20 + 20 calls that take 2 s, and ``times`` as long in some scenarios."""
    return lambda scenario, choice: (0.0667 if choice == DEFAULT else 0.0333) * (times if of(scenario) else 1.0)


@pytest.mark.parametrize("times", [1.0, 10.0])
def test_with_little_time_a_few_candidates_are_finished_and_the_best_first(times: float) -> None:
    """Five launches of 5 s and time for ten candidates, or for one, where all take ten times what is expected."""
    clock = Clock()
    many = {Scenario("bcast", 1, 2, 4 * size): FAST for size in range(1, 101)}
    confirmation = confirmation_on(clock, slower_by(times))
    deadline_s = 25.0 + 10 * fewest_groups() * 2.0
    results = confirmation.run(many, deadline_s)
    kept = [number for number, result in enumerate(results) if result.verdict is Verdict.KEPT]
    assert kept == list(range(len(kept)))
    assert len(kept) >= (8 if times == 1.0 else 1)
    assert {result.verdict for result in results} == {Verdict.KEPT, Verdict.NOT_TRIED}
    spent_on_them = sum(len(results[number].ratios) for number in kept)
    assert spent_on_them >= 0.7 * sum(len(result.ratios) for result in results)
    assert clock.now_s <= deadline_s + 2.0 * times
    assert confirmation.rest_s(many) >= 0.9 * (100 - len(kept) - 14) * fewest_groups() * 2.0 * times


def test_one_candidate_that_takes_far_longer_than_expected_does_not_eat_the_time_of_the_others() -> None:
    clock = Clock()
    slow = Scenario("bcast", 1, 2, 8)
    many = {Scenario("bcast", 1, 2, 4 * size): FAST for size in range(1, 11)}
    confirmation = confirmation_on(clock, slower_by(10.0, lambda scenario: scenario == slow))
    deadline_s = 25.0 + 10 * fewest_groups() * 2.0
    results = confirmation.run(many, deadline_s)
    found = {result.scenario: result for result in results}
    assert len(found[slow].ratios) <= 2
    assert found[slow].verdict is Verdict.NOT_TRIED
    assert sum(1 for result in results if result.verdict is Verdict.KEPT) >= 6
    assert clock.now_s <= deadline_s + 2.0


class Stalls(SimulatedSource):
    """Every fifth group makes the machine wait for a hundred times what its calls take."""

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for number, answer in enumerate(super().measure(points, effort)):
            if number % 5 == 0:
                self.now_s += 100 * sum(sample.cost_s for sample in answer[1])
            yield answer


def test_time_that_no_group_accounts_for_is_planned_with_too() -> None:
    """Time for 20 of 100 candidates, stalls included: a few are proven, in place of a look at every one."""
    launches = Launches(Stalls)
    many = {Scenario("bcast", 1, 2, 4 * size): FAST for size in range(1, 101)}
    group_s = 20 * (truth(Scenario("bcast", 1, 2, 4), DEFAULT) + truth(Scenario("bcast", 1, 2, 4), FAST))  # type: ignore[operator]
    confirmation = launches.confirmation(
        clock=lambda: sum(source.now_s for source in launches.sources),
        cost_s=lambda _scenario: group_s,
        effort=Effort(fewest=20),
    )
    results = confirmation.run(many, deadline_s=21 * 20 * fewest_groups() * group_s)
    assert sum(1 for result in results if result.verdict is Verdict.KEPT) >= 10
