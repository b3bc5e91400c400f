"""A setting of the non-uniform all-to-all is kept only where it holds for all patterns that look alike."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest

from colltune.alltoallv.prove import PatternProof
from colltune.alltoallv.setting import Setting, Shape
from colltune.alltoallv.source import Blocks
from colltune.alltoallv.tune import choice_of, setting_of
from colltune.core.choice import DEFAULT, Choice
from colltune.core.proven import Verdict
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort

_FORWARDING = choice_of(Setting("parata", 2, 0, 1024))


class Machine:
    """A source whose library takes 1 ms, and whose candidate what is said for a pattern; 0.5 ms elsewhere."""

    def __init__(self, slow_s: dict[Blocks, float]) -> None:
        self.slow_s, self.seen = slow_s, set[Blocks]()

    def measure(self, points: Iterable[Point], _effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            blocks = Blocks.of(point.scenario)
            self.seen.add(blocks)
            times = {DEFAULT: 1e-3, _FORWARDING: self.slow_s.get(blocks, 0.5e-3)}
            yield point, [self._sample(point.scenario, choice, times[choice]) for choice in point.choices]

    @staticmethod
    def _sample(scenario: Scenario, choice: Choice, time_s: float) -> Sample:
        return Sample(scenario=scenario, choice=choice, status=Status.OK, times_s=(time_s,) * 5, cost_s=1e-6)

    def close(self) -> None:
        pass


def prove(machine: Machine, sizes: Iterable[int] = (8, 64)) -> tuple[PatternProof, dict[int, set[int]]]:
    proof = PatternProof(Shape(8, 1), lambda: machine, lambda _samples: None, time.monotonic() + 60.0)
    return proof, {fill: set(kept) for fill, kept in proof.run(dict.fromkeys(sizes, _FORWARDING)).items()}


def test_what_is_faster_for_every_pattern_is_kept_in_every_class_that_eight_ranks_have() -> None:
    machine = Machine({})
    _, kept = prove(machine)
    assert kept == {4: {8, 64}, 3: {8, 64}, 2: {8, 64}, 1: {8, 64}}
    assert {
        Blocks(),
        Blocks("uniform", 6),
        Blocks("skewed", 6),
        Blocks("power", 6),
        Blocks("uniform", 1),
    } <= machine.seen


@pytest.mark.parametrize("pattern", [Blocks("uniform", 6), Blocks("skewed", 6), Blocks("power", 6)])
def test_one_pattern_that_is_slower_withdraws_the_rule_for_all_that_look_alike(pattern: Blocks) -> None:
    proof, kept = prove(Machine({pattern: 1.1e-3}))
    assert kept == {}
    refused = {result.scenario.collective for result in proof.results if result.verdict is not Verdict.KEPT}
    assert refused == {pattern.collective}


def test_a_pattern_that_gains_nothing_and_loses_nothing_withdraws_nothing() -> None:
    _, kept = prove(Machine({Blocks("skewed", 6): 1e-3}))
    assert kept[4] == {8, 64}


def test_a_class_in_which_it_does_not_pay_ends_the_way_to_sparser_ones() -> None:
    machine = Machine({Blocks("uniform", 5): 1e-3})
    _, kept = prove(machine)
    assert set(kept) == {4}
    assert Blocks("uniform", 3) not in machine.seen


def test_a_pattern_and_a_setting_come_back_from_their_names() -> None:
    for blocks in (Blocks(), Blocks("uniform", 6), Blocks("counts", 0)):
        assert Blocks.of(Scenario(blocks.collective, 2, 2, 8)) == blocks
    with pytest.raises(ValueError, match="allgather"):
        Blocks.of(Scenario("allgather", 2, 2, 8))
    assert setting_of(_FORWARDING) == Setting("parata", 2, 0, 1024)
