"""Measuring fewer settings than there are, and finding the best all the same."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest

from colltune.alltoallv.cost import work
from colltune.alltoallv.guided import ROUNDS, first, following
from colltune.alltoallv.setting import LIBRARY, Setting, Shape, candidates
from colltune.alltoallv.tune import Exploration, setting_of
from colltune.core.choice import Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort

_SHAPE = Shape(16, 8)
_SIZES = (8, 64, 512)


def time_s(setting: Setting, size: int) -> float:
    """A machine on which messages, waits and bytes cost something each."""
    found = work(_SHAPE, setting, size)
    return 6e-7 * found.messages + 1e-6 * found.waits + 4e-10 * found.off_node_bytes + 1e-10 * found.node_bytes


def test_the_first_settings_have_every_family_and_its_ends() -> None:
    found = first(candidates(_SHAPE))
    assert found[0] == LIBRARY
    assert {setting.algorithm for setting in found} == {setting.algorithm for setting in candidates(_SHAPE)}
    assert {2, 64} <= {setting.radix for setting in found if setting.algorithm == "parata"}
    assert len(found) == len(set(found)) < len(candidates(_SHAPE)) / 2


def test_a_model_points_at_what_is_nearly_the_best_of_all_settings() -> None:
    settings = candidates(_SHAPE)
    known = {size: {setting: time_s(setting, size) for setting in first(settings)} for size in _SIZES}
    for _ in range(ROUNDS):
        for size, wanted in following(_SHAPE, settings, known).items():
            assert not set(wanted) & set(known[size])
            known[size] |= {setting: time_s(setting, size) for setting in wanted}
    assert sum(map(len, known.values())) < 0.6 * len(settings) * len(_SIZES)
    for size in _SIZES:
        best = min(time_s(setting, size) for setting in settings)
        assert min(known[size].values()) < 1.05 * best


def test_nothing_is_pointed_at_where_nothing_is_known() -> None:
    assert following(_SHAPE, candidates(_SHAPE), {}) == {}


class Machine:
    """A source that takes so long for each setting."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s
        self.asked: list[tuple[int, Setting]] = []

    def measure(self, points: Iterable[Point], _effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            size = point.scenario.size_bytes
            self.asked += [(size, setting_of(choice)) for choice in point.choices]
            time.sleep(self.pause_s * len(point.choices))
            yield point, [self._sample(point.scenario, choice) for choice in point.choices]

    def _sample(self, scenario: Scenario, choice: Choice) -> Sample:
        times_s = (time_s(setting_of(choice), scenario.size_bytes),) * 5
        return Sample(scenario, choice, Status.OK, times_s, cost_s=self.pause_s)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("budget_s", "whole"), [(3600.0, True), (0.3, False)])
def test_the_whole_grid_is_measured_where_there_is_time(budget_s: float, whole: bool) -> None:
    machine, kept = Machine(0.0 if whole else 0.008), list[Sample]()
    settings = candidates(_SHAPE)
    outcome = Exploration(machine, kept.extend, _SHAPE, settings, _SIZES, budget_s, 1).run()
    assert len(machine.asked) == len(set(machine.asked)) == len(outcome.samples) == len(kept)
    assert machine.asked
    if whole:
        again = Machine(0.0)
        resumed = Exploration(again, lambda _samples: None, _SHAPE, settings, _SIZES, budget_s, 1, kept[:-5]).run()
        assert len(again.asked) == 5
        assert set(resumed.samples) == set(outcome.samples)
    assert (len(machine.asked) == len(settings) * len(_SIZES)) == whole
