"""What a campaign measures, in which order, and when it ends, cut off and resumed: on simulated times."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest
from campaign_bench import AMPLE_S, EFFORT, Bench

from colltune.core.medians import broken_choices
from colltune.core.proven import StopReason
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Model, Point, Space
from colltune.core.stop import StopRequestedError
from colltune.learn.decision import DecisionLearner
from colltune.learn.scenario_columns import Floats
from colltune.measure.contract import Effort
from colltune.search.campaign import Progress
from colltune_study.testing import RING, TREE, measured, small_space, true_time_s


def test_the_whole_job_comes_before_its_parts_and_progress_says_how_far_it_is_and_what_is_best() -> None:
    bench = Bench()
    bench.run()
    ranks = [sample.scenario.ranks for sample in bench.journal]
    assert ranks == sorted(ranks, reverse=True)
    assert bench.heard[-1].pairs_done == bench.heard[-1].pairs_total == len(bench.pairs)
    assert {progress.best for progress in bench.heard} - {DEFAULT, None}
    # The default is among the candidates; noise aside, the best is no slower.
    assert all(progress.best is not None and progress.speedup >= 0.9 for progress in bench.heard)


def test_a_small_grid_is_measured_whole_and_nothing_twice_after_a_resume_from_any_moment() -> None:
    whole = Bench(["bcast", "allreduce"])
    assert not whole.run().interrupted
    for cut in (*range(0, len(whole.journal), 17), len(whole.journal)):
        known = whole.journal[:cut]
        bench = Bench(["bcast", "allreduce"], known=known)
        outcome = bench.run()
        done = {(sample.scenario, sample.choice) for sample in known}
        assert set(bench.measured) == bench.pairs - done
        assert set(bench.measured.values()) <= {1}
        assert [*known, *bench.journal] == list(outcome.samples)
        assert outcome.reasons == {"bcast": StopReason.WHOLE, "allreduce": StopReason.WHOLE}


@pytest.mark.parametrize("box_s", [0.001, 1.0])  # the whole grid is begun and cut off; the learner chooses
def test_the_budget_holds_and_is_shared(box_s: float) -> None:
    def slow(scenario: Scenario, choice: Choice) -> float:
        return 100.0 * true_time_s(scenario, choice)

    budget_s = 2.0
    bench = Bench(["bcast", "allreduce"], budget_s=budget_s, truth=slow, effort=replace(EFFORT, fewest=20, box_s=box_s))
    outcome = bench.run()
    stopped = all("expected to lose less" in reason for reason in outcome.reasons.values())
    assert stopped or outcome.elapsed_s >= 0.8 * budget_s
    points_s = Counter[int]()
    for sample in bench.journal:
        points_s[sample.group] += sample.cost_s
    # A point that was begun is ended, one for each collective.
    assert outcome.elapsed_s <= budget_s + 2 * max(points_s.values())
    assert 0 < len(bench.measured) < len(bench.pairs)
    assert max(bench.measured.values()) <= 2  # a first look, and a second one
    assert {s.scenario.collective for s in bench.journal} == {"bcast", "allreduce"}
    assert all("expected to lose less" in why or why == StopReason.BUDGET_SPENT for why in outcome.reasons.values())


class SoonContent(DecisionLearner):
    def should_stop(self) -> str | None:
        return "it knows enough" if len({scenario for scenario, _ in self._history.times()}) >= 3 else None


def test_a_learner_that_has_learned_enough_ends_its_collective() -> None:
    def even(scenario: Scenario, choice: Choice) -> float:
        """The first points say what all take: there is never time for the whole grid."""
        return true_time_s(replace(scenario, size_bytes=8), choice)

    whole = Bench(["bcast", "allreduce"], truth=even)
    bench = Bench(["bcast", "allreduce"], budget_s=whole.run().elapsed_s / 5, truth=even)
    bench.campaign.learners = {
        "bcast": SoonContent(bench.spaces["bcast"], 1),
        "allreduce": DecisionLearner(bench.spaces["allreduce"], 1),
    }
    outcome = bench.run()
    assert outcome.reasons["bcast"] == "it knows enough"
    measured = [sample.scenario for sample in bench.journal]
    assert len({s for s in measured if s.collective == "bcast"}) == 3
    # What it leaves goes to the other.
    assert len({s for s in measured if s.collective == "allreduce"}) > 3
    assert bench.measured.total() - len(bench.measured) <= again_at_most(len(bench.measured))


def test_the_budget_goes_where_most_is_to_be_gained() -> None:
    order = [TREE, RING, DEFAULT]

    def truth(scenario: Scenario, choice: Choice) -> float:
        """In bcast one algorithm is three times as fast, another one here than there; in allreduce none is."""
        fastest = order[(scenario.nodes + scenario.size_bytes.bit_length() // 3) % len(order)]
        faster = scenario.collective == "bcast" and choice == fastest
        return 1e-6 * (scenario.size_bytes + 100) / (3.0 if faster else 1.0)

    whole = Bench(["allreduce", "bcast"], truth=truth)
    bench = Bench(["allreduce", "bcast"], truth=truth, budget_s=0.3 * whole.run().elapsed_s)
    bench.run()
    assert bench.spent_s["bcast"] > 3.0 * bench.spent_s["allreduce"] > 0.0


def test_what_surrounds_a_call_belongs_to_its_price() -> None:
    """Calls of bcast are a tenth as long, and else all is alike: long requests leave them as dear as the others."""

    def truth(scenario: Scenario, choice: Choice) -> float:
        time_s = true_time_s(replace(scenario, collective="bcast"), choice)
        return time_s if scenario.collective == "bcast" else 10.0 * time_s

    whole_s = Bench(["allreduce", "bcast"], truth=truth).run().elapsed_s

    def count(budget_s: float, request_s: float, wait_s: float = 0.0) -> Counter[str]:
        bench = Bench(["allreduce", "bcast"], truth=truth, budget_s=budget_s + wait_s)
        bench.campaign.clock = lambda: (
            bench.source.now_s + request_s * len(bench.journal) + (wait_s if bench.journal else 0.0)
        )
        bench.run()
        return Counter(sample.scenario.collective for sample in bench.journal)

    free, dear, waited = count(whole_s / 12, 0.0), count(60.0, 1.0), count(60.0, 1.0, wait_s=1000.0)
    assert free["bcast"] > 2.0 * free["allreduce"]
    assert dear["bcast"] < dear["allreduce"]
    assert waited == dear  # the machine was not calm once


@pytest.mark.parametrize("share", [0.1, 0.03])  # everything that is open is compared; or what the learners ask for
def test_with_a_posterior_the_budget_goes_where_less_is_known(share: float) -> None:
    whole = Bench(["allreduce", "bcast"])
    elapsed_s = whole.run().elapsed_s
    known = [s for s in whole.journal if s.scenario.collective == "allreduce" and s.scenario.size_bytes != 512]
    bench = Bench(["allreduce", "bcast"], known=known, budget_s=share * elapsed_s)
    bench.run()
    first = Counter(sample.scenario.collective for sample in bench.journal[:16])
    assert first["bcast"] >= 12, first


class Listing:
    """Asks for what is on its list, a point at a time; expects to gain most from the last ones."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._left = list(points)

    def ask(self, count: int) -> list[Point]:
        return self._left[:count]

    def tell(self, samples: Sequence[Sample]) -> None:
        measured = {sample.scenario for sample in samples}
        self._left = [point for point in self._left if point.scenario not in measured]

    def tell_pending(self, point: Point) -> None: ...

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        return np.arange(1.0, 1.0 + len(points))

    def should_stop(self) -> str | None:
        return None if self._left else "the list is done"

    def model(self) -> Model:
        raise ValueError("there is none")


def largest_first(name: str) -> list[Scenario]:
    return sorted(small_space(name).scenarios, key=lambda s: (-s.size_bytes, -s.ranks))


@pytest.mark.parametrize("names", [["bcast"], ["bcast", "allreduce"]])
def test_without_a_bound_each_learner_is_obeyed_to_the_letter(names: list[str]) -> None:
    bench = Bench(names, budget_s=math.inf)
    some = {name: enumerate(largest_first(name)[:20]) for name in names}
    lists = {name: [Point(scenario, (RING,), 1 + row % 3) for row, scenario in some[name]] for name in names}
    bench.campaign.learners = {name: Listing(lists[name]) for name in names}
    outcome = bench.run()
    for name in names:
        own = [s for s in bench.journal if s.scenario.collective == name]
        assert [Point(s.scenario, (s.choice,), len(s.times_s)) for s in own] == lists[name]
    assert set(outcome.reasons.values()) == {"the list is done"}


@pytest.mark.parametrize("names", [["bcast"], ["bcast", "allreduce"]])
def test_on_a_short_budget_each_learner_is_asked_in_its_own_order(names: list[str]) -> None:
    """Though the one that asks expects more of its later points."""
    bench = Bench(names, budget_s=0.1, truth=lambda _scenario, _choice: 1e-3, effort=Effort(box_s=0.002, fewest=5))
    # What is larger than all that was measured might be passed over as too expensive.
    bench.campaign.learners = {name: Listing([Point(s, (RING,)) for s in largest_first(name)]) for name in names}
    bench.run()
    assert 10 < len(bench.journal) < 30
    for name in names:
        own = [s.scenario for s in bench.journal if s.scenario.collective == name]
        assert own == largest_first(name)[: len(own)] != []


def test_a_collective_whose_learner_asks_for_too_much_is_not_left_out() -> None:
    """bcast's learner asks for its largest messages first, of which one takes longer than all the budget."""

    def by_the_byte(scenario: Scenario, _choice: Choice) -> float:
        return 1e-6 * (scenario.size_bytes + 100) if scenario.collective == "bcast" else 1e-4

    by_size = largest_first("bcast")
    bench = Bench(["bcast", "allreduce"], budget_s=0.1, truth=by_the_byte, effort=Effort(box_s=0.002, fewest=5))
    bench.campaign.learners = {
        "bcast": Listing([Point(scenario, (RING,)) for scenario in by_size]),
        "allreduce": Listing([Point(scenario, (RING,)) for scenario in small_space("allreduce").scenarios]),
    }
    # What bytes cost is known from before.
    widest = [scenario for scenario in by_size if (scenario.nodes, scenario.ppn) == (3, 4)]
    known = [s for row, scenario in enumerate(widest) for s in measured(Point(scenario, (DEFAULT,)), row)]
    bench.campaign.known = [replace(s, cost_s=5 * by_the_byte(s.scenario, DEFAULT)) for s in known]
    bench.run()
    sizes = {s.scenario.size_bytes for s in bench.journal if s.scenario.collective == "bcast"}
    assert sizes
    assert max(sizes) <= 4096


def test_few_repetitions_do_not_make_others_look_cheap() -> None:
    """What a full measurement takes is what is expected of points that are not cut short."""
    point = Point(small_space().scenarios[0], (RING,), 1)
    bench = Bench(truth=lambda _scenario, _choice: 1e-3, effort=Effort(box_s=1.0, fewest=10, most=100))
    bench.campaign.learners = {"bcast": Listing([point])}
    bench.campaign.budget_s = math.inf
    bench.run()
    [sample] = bench.journal
    assert sample.cost_s == pytest.approx(1e-3, rel=0.1)
    assert bench.campaign._in_full(sample, 1).cost_s == pytest.approx(0.1, rel=0.1)
    assert bench.campaign._in_full(sample, 0) == sample


@pytest.mark.parametrize("calls", [15, 30, 60])
def test_large_messages_do_not_eat_the_budget_before_it_is_known_what_they_cost(calls: int) -> None:
    def by_the_byte(scenario: Scenario, _choice: Choice) -> float:
        return 1e-5 * (scenario.size_bytes + 1)

    space = small_space("bcast")
    largest = max(space.scenarios, key=lambda scenario: scenario.size_bytes)
    bench = Bench(truth=by_the_byte, spaces=[space], budget_s=calls * by_the_byte(largest, DEFAULT))
    outcome = bench.run()
    assert outcome.elapsed_s <= bench.campaign.budget_s
    measured = [sample.scenario for sample in bench.journal]
    before = set(takewhile(lambda scenario: scenario.size_bytes < largest.size_bytes, measured))
    assert {s for s in space.scenarios if s.size_bytes <= 512} <= before


def test_a_grid_of_which_a_point_was_given_up_is_not_said_to_be_whole() -> None:
    bench = Bench()
    measure = bench.source.measure
    last = min(bench.pairs, key=lambda pair: (pair[0].ranks, -pair[0].size_bytes))[0]

    def cut_off(points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        """As a source whose time is over when it is asked for the last point."""
        for point in points:
            if point.scenario == last:
                return
            yield from measure([point], effort)

    bench.source.measure = cut_off  # type: ignore[method-assign]
    outcome = bench.run()
    assert set(bench.measured) == {pair for pair in bench.pairs if pair[0] != last}
    assert outcome.reasons == {"bcast": "the time for measuring is spent"}


def again_at_most(pairs: int) -> int:
    """Of so many pairs that are known, those that are looked at again, to tell what a look has of its own."""
    return 1 + pairs // 16


def test_resume_of_a_learners_campaign_measures_little_twice() -> None:
    first = Bench(budget_s=0.05)
    first.run()
    for cut in range(5, len(first.journal), 40):
        known = first.journal[:cut]
        bench = Bench(budget_s=0.05, known=known)
        bench.run()
        done = {(sample.scenario, sample.choice) for sample in known}
        assert len(done & set(bench.measured)) <= again_at_most(len(done | set(bench.measured)))
        assert set(bench.measured.values()) <= {1, 2}


@pytest.mark.parametrize("status", [Status.WRONG, Status.CRASHED, Status.HUNG])
@pytest.mark.parametrize("budget_s", [AMPLE_S, 0.05])
def test_a_broken_choice_is_never_measured_again(status: Status, budget_s: float) -> None:
    def broken(scenario: Scenario, choice: Choice) -> float | Status:
        return status if choice == RING else true_time_s(scenario, choice)

    bench = Bench(truth=broken, budget_s=budget_s)
    outcome = bench.run()
    bad = [sample for sample in bench.journal if sample.choice == RING]
    assert [sample.status for sample in bad] == [status]
    assert broken_choices(outcome.samples) == {("bcast", RING)}
    if budget_s == AMPLE_S:
        assert set(bench.measured) >= {pair for pair in bench.pairs if pair[1] != RING}

    again = Bench(truth=broken, known=outcome.samples, budget_s=budget_s)
    again.run()
    assert not [sample for sample in again.journal if sample.choice == RING]


@pytest.mark.parametrize("budget_s", [AMPLE_S, 0.05])
def test_an_inapplicable_choice_is_tried_at_every_scenario_but_once(budget_s: float) -> None:
    def partly(scenario: Scenario, choice: Choice) -> float | Status:
        return Status.INAPPLICABLE if choice == TREE and scenario.nodes == 3 else true_time_s(scenario, choice)

    bench = Bench(truth=partly, budget_s=budget_s)
    bench.run()
    assert set(bench.measured.values()) == {1}
    assert broken_choices(bench.journal) == set()
    assert {s.status for s in bench.journal if s.choice == TREE and s.scenario.nodes == 1} == {Status.OK}


@pytest.mark.parametrize("budget_s", [AMPLE_S, 0.05])
@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_refused_point_is_recorded_once_and_the_campaign_goes_on(budget_s: float, *, all_of_them: bool) -> None:
    def refused(scenario: Scenario, choice: Choice) -> float | Status:
        gone = all_of_them or scenario.nodes == 3
        return Status.UNMEASURED if gone else true_time_s(scenario, choice)

    bench = Bench(["bcast", "allreduce"], truth=refused, budget_s=budget_s)
    outcome = bench.run()
    assert bench.measured.total() - len(bench.measured) <= again_at_most(len(bench.measured))
    assert all(count == 1 for (scenario, _), count in bench.measured.items() if all_of_them or scenario.nodes == 3)
    assert broken_choices(bench.journal) == set()
    assert not outcome.interrupted
    statuses = {sample.scenario.nodes == 3: sample.status for sample in bench.journal}
    assert statuses.get(True, Status.UNMEASURED) is Status.UNMEASURED
    assert statuses[False] is (Status.UNMEASURED if all_of_them else Status.OK)
    again = Bench(["bcast", "allreduce"], truth=refused, known=outcome.samples, budget_s=budget_s)
    again.run()
    assert len(set(again.measured) & set(bench.measured)) <= again_at_most(len(bench.measured))


@pytest.mark.parametrize("stop", [StopRequestedError, KeyboardInterrupt])
@pytest.mark.parametrize("budget_s", [AMPLE_S, 0.05])
def test_a_stop_from_outside_leaves_what_was_measured(stop: type[BaseException], budget_s: float) -> None:
    bench = Bench(["bcast", "allreduce"], budget_s=budget_s)

    def heard(progress: Progress) -> None:
        if progress.pairs_done >= 20:
            raise stop

    bench.campaign.progress = heard
    outcome = bench.run()
    assert outcome.interrupted
    assert 20 <= len(outcome.samples) < 30
    assert list(outcome.samples) == bench.journal
    assert outcome.reasons == {"bcast": "stopped from outside", "allreduce": "stopped from outside"}


def test_every_sample_is_recorded_before_the_next_is_asked_for() -> None:
    bench = Bench()
    recorded_when_asked: list[int] = []
    measure = bench.source.measure

    def watched(points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for number, answer in enumerate(measure(points, effort)):
            recorded_when_asked.append(len({sample.group for sample in bench.journal}) - number)
            yield answer

    bench.source.measure = watched  # type: ignore[method-assign]
    bench.run()
    assert recorded_when_asked
    assert set(recorded_when_asked) == {0}


def test_a_journal_that_cannot_be_written_ends_the_campaign() -> None:
    bench = Bench()

    def full(_samples: Sequence[Sample]) -> None:
        raise OSError(28, "No space left on device")

    bench.campaign = replace(bench.campaign, record=full)
    with pytest.raises(OSError, match="No space"):
        bench.run()


def test_a_space_without_choices_has_nothing_to_measure() -> None:
    space = Space("bcast", small_space().scenarios, lambda _scenario: ())
    bench = Bench(spaces=[space])
    assert bench.run().reasons == {"bcast": StopReason.WHOLE}
    assert bench.journal == []
