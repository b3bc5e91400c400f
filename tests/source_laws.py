"""The laws of a source of samples, as a test class to inherit."""

import abc
from collections.abc import Iterator, Sequence
from contextlib import closing

from colltune.core.sample import DEFAULT, Sample, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source

# How many times as slow as the best a choice is that a source may time only once.
HOPELESS = 3.0
EFFORT = Effort(relative_width=0.5, box_s=0.0005, fewest=3, most=8, warm_up=1)


class SourceContract(abc.ABC):
    """Inherit, and say how the source under test is made and which points it can measure: three at least.

    ``ahead``: points that it may take beyond the ones that are answered.
    """

    ahead = 3

    @abc.abstractmethod
    def make(self) -> Source: ...

    @abc.abstractmethod
    def points(self) -> list[Point]: ...

    def answers(self, points: Sequence[Point]) -> list[tuple[Point, list[Sample]]]:
        """Those of a new source."""
        with closing(self.make()) as source:
            return [(point, list(samples)) for point, samples in source.measure(points, EFFORT)]

    def test_every_point_is_answered_with_one_sample_per_choice(self) -> None:
        points = self.points()
        answers = self.answers(points)
        assert [point for point, _ in answers] == points
        for point, samples in answers:
            assert [(s.scenario, s.choice) for s in samples] == [(point.scenario, c) for c in point.choices]

    def test_only_ok_samples_have_times_and_all_of_them_do(self) -> None:
        answers = [found for _, found in self.answers(self.points())]
        assert any(sample.status is Status.OK for found in answers for sample in found)
        for found in answers:
            fastest_s = min((time_s for sample in found for time_s in sample.times_s), default=0.0)
            for sample in found:
                assert bool(sample.times_s) == (sample.status is Status.OK)
                assert all(time_s > 0.0 for time_s in sample.times_s)
                assert len(sample.times_s) <= EFFORT.most
                # A choice that is both dear and hopeless is timed once.
                assert not 1 < len(sample.times_s) < EFFORT.fewest
                assert len(sample.times_s) != 1 or sample.times_s[0] > HOPELESS * fastest_s

    def test_a_group_is_what_was_measured_side_by_side(self) -> None:
        groups = [{(s.launch, s.group) for s in found} for _, found in self.answers(self.points() * 2)]
        assert all(len(group) == 1 for group in groups)
        assert len(set.union(*groups)) == len(groups)

    def test_points_are_taken_as_they_can_be_used_so_that_a_generator_may_stop(self) -> None:
        points, taken = self.points(), list[Point]()

        def endless() -> Iterator[Point]:
            while True:
                taken.append(points[len(taken) % len(points)])
                yield taken[-1]

        with closing(self.make()) as source:
            for number, _ in enumerate(source.measure(endless(), EFFORT), start=1):
                assert number <= len(taken) <= number + self.ahead
                if number == 6:
                    break

    def test_no_points_and_points_without_choices_need_nothing(self) -> None:
        assert self.answers([]) == self.answers([Point(self.points()[0].scenario, ())]) == []

    def test_the_default_can_be_measured_again_and_again(self) -> None:
        again = [Point(self.points()[0].scenario, (DEFAULT,))]
        with closing(self.make()) as source:
            for _ in range(3):
                ((_, (sample,)),) = source.measure(again, EFFORT)
                assert (sample.status, sample.choice) == (Status.OK, DEFAULT)
