"""The replayed source keeps the contract of sources, and invents nothing."""

from __future__ import annotations

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import MeasurementError
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.measure.replay import SET_UP_S, ReplaySource

HERE = Environment("mpich", "5.0.2", "abc", "a machine", 2, 4, "single")
RING = Choice("ring")
SMALL, LARGE = (Scenario("bcast", 2, 4, size) for size in (8, 1 << 20))


def source() -> ReplaySource:
    return ReplaySource.from_times({(SMALL, DEFAULT): 1e-6, (SMALL, RING): 2e-6, (LARGE, RING): 0.1}, HERE)


def test_answers_each_point_with_one_sample_per_choice_in_order():
    points = [Point(SMALL, (RING, DEFAULT)), Point(LARGE, (RING,))]
    answers = list(source().measure(points, Effort()))
    assert [point for point, _ in answers] == points
    assert [[sample.choice for sample in samples] for _, samples in answers] == [[RING, DEFAULT], [RING]]
    assert [sample.time_s for _, samples in answers for sample in samples] == [2e-6, 1e-6, 0.1]
    assert len({samples[0].group for _, samples in answers}) == 2


def test_what_was_not_recorded_is_inapplicable_and_has_no_time():
    [(_, [sample])] = source().measure([Point(LARGE, (DEFAULT,))], Effort())
    assert sample.status is Status.INAPPLICABLE
    assert sample.times_s == ()
    assert "not in the recorded data" in sample.detail


def test_costs_are_set_up_and_repetitions_within_the_bounds_of_the_effort():
    replay = source()
    effort = Effort(box_s=0.05, fewest=10, most=100, warm_up=2)
    [(_, [small])] = replay.measure([Point(SMALL, (DEFAULT,))], effort)
    [(_, [large])] = replay.measure([Point(LARGE, (RING,))], effort)
    assert small.cost_s == pytest.approx(SET_UP_S + 102 * 1e-6)
    assert large.cost_s == pytest.approx(SET_UP_S + 12 * 0.1)
    assert large.started_s == pytest.approx(small.cost_s)
    assert replay.spent_s == pytest.approx(small.cost_s + large.cost_s)


def test_repeated_recordings_come_one_after_another():
    recorded = [Sample(SMALL, RING, Status.OK, (t,), launch=i) for i, t in enumerate((1e-6, 3e-6))]
    replay = ReplaySource(recorded, HERE)
    times = [samples[0].time_s for _, samples in replay.measure([Point(SMALL, (RING,))] * 3, Effort())]
    assert times == [1e-6, 3e-6, 1e-6]


def test_recorded_failures_are_replayed_as_failures():
    replay = ReplaySource([Sample(SMALL, RING, Status.WRONG, detail="element 3")], HERE)
    [(_, [sample])] = replay.measure([Point(SMALL, (RING,))], Effort())
    assert (sample.status, sample.detail, sample.times_s) == (Status.WRONG, "element 3", ())


def test_a_closed_source_says_so():
    replay = source()
    replay.close()
    with pytest.raises(MeasurementError, match="closed"):
        list(replay.measure([Point(SMALL, (RING,))], Effort()))
