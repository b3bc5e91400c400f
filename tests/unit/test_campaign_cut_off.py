"""A campaign on simulated times that is cut off, resumed, or meets choices that fail."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
from campaign_bench import AMPLE_S, Bench

from colltune.core.medians import broken_choices
from colltune.core.proven import StopReason
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Point, Space
from colltune.core.stop import StopRequestedError
from colltune.measure.contract import Effort
from colltune.search.campaign import Progress
from colltune_study.testing import RING, TREE, small_space, true_time_s


def test_a_grid_of_which_a_point_was_given_up_is_not_said_to_be_whole() -> None:
    bench = Bench(budget_s=AMPLE_S)
    measure = bench.source.measure

    def cut_off(points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        """As a source whose time is over when it is asked for the last point."""
        last = min(bench.pairs, key=lambda pair: (pair[0].ranks, -pair[0].size_bytes))[0]
        for point in points:
            if point.scenario == last:
                return
            yield from measure([point], effort)

    bench.source.measure = cut_off  # type: ignore[method-assign]
    outcome = bench.run()
    assert len(bench.measured) == len(bench.pairs) - len(
        bench.spaces["bcast"].choices(next(iter(sorted(bench.pairs)))[0])
    )
    assert outcome.reasons == {"bcast": "the time for measuring is spent"}


def test_resume_of_a_learners_campaign_measures_nothing_twice() -> None:
    first = Bench(budget_s=0.05)
    first.run()
    for cut in range(5, len(first.journal), 40):
        known = first.journal[:cut]
        bench = Bench(budget_s=0.05, known=known)
        bench.run()
        done = {(sample.scenario, sample.choice) for sample in known}
        assert not done & set(bench.measured)
        assert set(bench.measured.values()) <= {1}


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
    assert set(bench.measured.values()) == {1}
    assert broken_choices(bench.journal) == set()
    assert not outcome.interrupted
    statuses = {sample.scenario.nodes == 3: sample.status for sample in bench.journal}
    assert statuses.get(True, Status.UNMEASURED) is Status.UNMEASURED
    assert statuses[False] is (Status.UNMEASURED if all_of_them else Status.OK)
    again = Bench(["bcast", "allreduce"], truth=refused, known=outcome.samples, budget_s=budget_s)
    again.run()
    assert not set(again.measured) & set(bench.measured)


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


def test_progress_says_what_is_best_and_by_how_much() -> None:
    bench = Bench()
    bench.run()
    for progress in bench.heard:
        assert progress.best is not None
        assert progress.speedup is not None
        assert progress.speedup >= 0.9  # the default is among the candidates; noise aside, the best is no slower
    assert {progress.best for progress in bench.heard} - {DEFAULT}


def test_a_space_without_choices_has_nothing_to_measure() -> None:
    space = Space("bcast", small_space().scenarios, lambda _scenario: ())
    bench = Bench(spaces=[space])
    assert bench.run().reasons == {"bcast": StopReason.WHOLE}
    assert bench.journal == []
