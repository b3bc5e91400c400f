"""Which rules an application is better without."""

from collections.abc import Callable

import pytest

from colltune.core.errors import LaunchError
from colltune.prove.in_run.whole_runs import DEFAULT_SIDE, Checked, Side, check_application, finding_of, runs_text

_RUNS = 7


def checked(*collectives: str, time_s: Callable[[Side], float], runs: int = _RUNS) -> Checked:
    return check_application(collectives, _noisy(time_s), runs, 1, lambda _text: None)


def _noisy(time_s: Callable[[Side], float]) -> Callable[[Side], float]:
    """A share of 1% up and down: less than any difference that a test is about."""
    turn = 0

    def taken_s(side: Side) -> float:
        nonlocal turn
        turn += 1
        return time_s(side) * (1.0 + 0.01 * (turn % 3 - 1))

    return taken_s


def _product(**factors: float) -> Callable[[Side], float]:
    def time_s(side: Side) -> float:
        taken = 2.0
        for name in side:
            taken *= factors[name]
        return taken

    return time_s


def test_rules_that_make_it_faster_stay() -> None:
    found = checked("alltoall", "bcast", time_s=_product(alltoall=0.8, bcast=1.0))
    assert not found.withdrawn
    assert found.text("app").startswith("with the rules app is faster: 1.25 times as fast (1.2")
    assert found.text("app").endswith("; withdrawn for it: nothing")
    (only,) = found.rounds
    assert only.rules == ("alltoall", "bcast")
    assert finding_of(only).speedup.low > 1.2


def test_only_what_slows_it_is_withdrawn() -> None:
    found = checked("alltoall", "bcast", "allreduce", time_s=_product(alltoall=1.5, bcast=0.9, allreduce=1.0))
    assert found.withdrawn.keys() == {"alltoall"}
    assert "0.67 times as fast" in runs_text(found.withdrawn["alltoall"])
    assert found.rounds[-1].rules == ("allreduce", "bcast")  # what is left was run together, too
    said = found.text("app")
    assert said.startswith("with the rules app is slower: 0.7")
    assert ", 99% interval of 7 runs each); withdrawn for it: the rules of alltoall; with the rules of" in said
    assert "of allreduce, bcast the application is faster: 1.1" in said


def test_the_only_collective_is_not_run_twice() -> None:
    found = checked("alltoall", time_s=_product(alltoall=1.2))
    assert found.withdrawn.keys() == {"alltoall"}
    assert len(found.rounds) == 1


def test_what_is_slow_together_and_not_alone_goes_altogether() -> None:
    found = checked("alltoall", "bcast", time_s=lambda side: 1.3 if len(side) == 2 else 1.0)
    assert found.withdrawn.keys() == {"alltoall", "bcast"}


def test_what_is_left_goes_too_where_it_is_slow_together() -> None:
    def time_s(side: Side) -> float:
        return 1.5 if "bcast" in side else 1.2 if len(side) > 1 else 1.0

    assert checked("alltoall", "bcast", "reduce", time_s=time_s).withdrawn.keys() == {"alltoall", "bcast", "reduce"}


def test_a_failure_under_the_rules_withdraws_them() -> None:
    def time_s(side: Side) -> float:
        if "bcast" in side:
            raise LaunchError("ended with exit code 9")
        return 1.0

    found = checked("alltoall", "bcast", time_s=time_s)
    assert {name: runs_text(runs) for name, runs in found.withdrawn.items()} == {
        "bcast": "the application ended with exit code 9"
    }
    assert found.text("app").startswith("with the rules app ended with exit code 9; ")
    assert "withdrawn for it: the rules of bcast" in found.text("app")


def test_a_failure_without_rules_says_nothing_of_them() -> None:
    def time_s(side: Side) -> float:
        if side == DEFAULT_SIDE:
            raise LaunchError("ended with exit code 9")
        return 1.0

    with pytest.raises(LaunchError):
        checked("alltoall", time_s=time_s)


@pytest.mark.parametrize("slowdown", [1.1, 1.5])
def test_few_runs_that_look_slower_are_enough(slowdown: float) -> None:
    assert checked("alltoall", time_s=_product(alltoall=slowdown), runs=3).withdrawn


def test_a_difference_that_nobody_feels_is_none() -> None:
    assert not checked("alltoall", time_s=_product(alltoall=1.01)).withdrawn
