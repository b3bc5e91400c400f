"""A setting of the non-uniform all-to-all is kept only where it holds for all patterns that look alike."""

from collections.abc import Iterable, Iterator

import pytest

from colltune.alltoallv.lookup_table import Setting, Shape, choice_of, setting_of
from colltune.alltoallv.prove import PatternProof
from colltune.alltoallv.samples import Blocks
from colltune.core.errors import LaunchError
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.core.stop import StopRequest
from colltune.distill.decide import Decided
from colltune.measure.contract import Effort

_FORWARDING = choice_of(Setting("parata", 2, 0, 1024))
_WHOLE = Shape(8, 1)


class Machine:
    """A source whose library takes 1 ms, and whose candidate what is said for a pattern; 0.5 ms elsewhere.

    Each comparison takes a second of its clock, each launch ``launch_s``.
    """

    disturbed = False
    environment = Environment("mpich", "5.0.2", "0" * 64, "in memory", 8, 1, "single")

    def __init__(self, slow_s: dict[Blocks, float], launch_s: float = 1.0, stop_after: int = 0, fails: int = 0) -> None:
        self.fails = fails  # the launch that does not start
        self.slow_s, self.seen, self.launches = slow_s, set[Blocks](), 0
        self.clock_s, self.launch_s, self.stop, self.stop_after = 0.0, launch_s, StopRequest(), stop_after

    def open(self) -> "Machine":
        self.launches += 1
        self.clock_s += self.launch_s
        if self.launches == self.stop_after:
            self.stop.make()
        if self.launches == self.fails:
            raise LaunchError("the job does not start", "Try again")
        return self

    def measure(self, points: Iterable[Point], _effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            blocks = Blocks.of(point.scenario)
            self.seen.add(blocks)
            self.clock_s += 1.0
            times = {DEFAULT: 1e-3, _FORWARDING: self.slow_s.get(blocks, 0.5e-3)}
            yield point, [self._sample(point.scenario, choice, times[choice]) for choice in point.choices]

    @staticmethod
    def _sample(scenario: Scenario, choice: Choice, time_s: float) -> Sample:
        return Sample(scenario=scenario, choice=choice, status=Status.OK, times_s=(time_s,) * 5, cost_s=0.5)

    def close(self) -> None:
        pass


def prove(
    machine: Machine, sizes: Iterable[int] = (8, 16), budget_s: float = 1e4, shapes: Iterable[Shape] = (_WHOLE,)
) -> tuple[PatternProof, dict[int, set[tuple[Shape, int]]]]:
    """What was kept, by class of fill."""
    grid = [Scenario("alltoallv", shape.nodes, shape.ppn, size) for shape in shapes for size in sizes]
    gains, default_s = dict.fromkeys(grid, 0.69), dict.fromkeys(grid, 1e-3)
    proof = PatternProof(
        _WHOLE,
        machine.open,
        lambda _samples: None,
        budget_s,
        launch_s=machine.launch_s,
        clock=lambda: machine.clock_s,
        stop=machine.stop,
    )
    kept = proof.run(Decided(dict.fromkeys(grid, _FORWARDING), gains, default_s))
    places = {fill: {(Shape(s.nodes, s.ppn), s.size_bytes) for s in found} for fill, found in kept.items()}
    return proof, places


def test_what_is_faster_for_every_pattern_is_kept_in_every_class_that_eight_ranks_have() -> None:
    machine = Machine({})
    _, kept = prove(machine)
    assert kept == {fill: {(_WHOLE, 8), (_WHOLE, 16)} for fill in (4, 3, 2, 1)}
    assert {Blocks("constant"), *(Blocks(name, "few4") for name in ("constant", "skewed", "power"))} <= machine.seen
    assert Blocks("constant", "most0") not in machine.seen


def test_the_most_bytes_that_a_cell_can_have_to_forward_are_looked_at() -> None:
    """Measured on 4 x 4 at 4 KiB: uniform blocks 1.39 as fast by a rule, blocks of one size 0.92."""
    _, kept = prove(Machine({Blocks("constant"): 1.1e-3}))
    assert set(kept) == {3, 2, 1}


@pytest.mark.parametrize("name", ["constant", "skewed", "power"])
def test_one_pattern_that_is_slower_withdraws_the_rule_for_all_that_look_alike(name: str) -> None:
    slow = Blocks(name, "few4")
    proof, kept = prove(Machine({slow: 1.1e-3}))
    assert set(kept) == {3, 2, 1}
    refused = {result.scenario.collective for result in proof.results if result.verdict is not Verdict.KEPT}
    assert refused == {slow.collective}


def test_a_pattern_that_gains_nothing_and_loses_nothing_withdraws_nothing() -> None:
    _, kept = prove(Machine({Blocks("skewed", "few4"): 1e-3}))
    assert kept[4] == {(_WHOLE, 8), (_WHOLE, 16)}


def test_a_class_in_which_it_does_not_pay_has_no_rule_and_is_looked_at_no_further() -> None:
    machine = Machine({Blocks("constant", "most3"): 1e-3})
    _, kept = prove(machine)
    assert set(kept) == {4, 2, 1}
    assert Blocks("skewed", "few3") not in machine.seen


def test_a_part_that_a_class_does_not_fit_is_not_kept_in_it() -> None:
    _, kept = prove(Machine({}), shapes=[_WHOLE, Shape(3, 1)])
    three = {fill for fill, places in kept.items() if any(shape == Shape(3, 1) for shape, _ in places)}
    assert three == {4, 2}


def test_without_time_nothing_is_kept() -> None:
    proof, kept = prove(Machine({}), budget_s=4.0)
    assert kept == {}
    assert all(result.verdict is not Verdict.KEPT for result in proof.results)


def test_what_is_cut_off_keeps_nothing() -> None:
    proof, kept = prove(Machine({}, stop_after=2))
    assert kept == {}
    assert proof.results


def test_a_launch_that_fails_proves_nothing_and_ends_no_tuning() -> None:
    proof, kept = prove(Machine({}, fails=1))
    assert kept == {}
    assert {result.verdict for result in proof.results} == {Verdict.NOT_TRIED}


def test_a_pattern_and_a_setting_come_back_from_their_names() -> None:
    for blocks in (Blocks(), Blocks("uniform", "6"), Blocks("counts0"), Blocks("power", "few2")):
        assert Blocks.of(Scenario(blocks.collective, 2, 2, 8)) == blocks
    with pytest.raises(ValueError, match="allgather"):
        Blocks.of(Scenario("allgather", 2, 2, 8))
    assert setting_of(_FORWARDING) == Setting("parata", 2, 0, 1024)
    with pytest.raises(ValueError, match="3 ranks cannot"):
        Blocks("uniform", "few3").peers_among(3)
