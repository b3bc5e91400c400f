"""Faster, same, open, slower: intervals that hold for any noise."""

import random
from collections.abc import Callable

import pytest

from colltune.cli.compare import show
from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Choice, Scenario, SizeBasis
from colltune.judge.verdict import compare, compare_all, fewest_launches, launches_to_decide, mean_speedup
from colltune.prove.compare.two_sides import held_out
from colltune.session.compare import Verification

SCENARIO = Scenario("bcast", 1, 4, 1024)
RING = Choice("ring")


def launches(draw: random.Random, centre: float, count: int = 8) -> list[float]:
    """Launch medians with two modes and a heavy tail."""
    return [centre * draw.choice((1.0, 1.3)) * draw.lognormvariate(0.0, 0.05) for _ in range(count)]


def test_equal_launches_are_hardly_ever_called_slower() -> None:
    draw = random.Random(1)
    verdicts = [
        compare(SCENARIO, RING, launches(draw, 1.0), launches(draw, 1.0), points=10).verdict for _ in range(3000)
    ]
    assert verdicts.count(SpeedVerdict.SLOWER) <= 6  # 2 in 1,000 at most
    assert verdicts.count(SpeedVerdict.FASTER) <= 6


def test_a_true_difference_is_seen_and_one_that_no_application_feels_is_called_the_same() -> None:
    draw = random.Random(2)
    slower = [compare(SCENARIO, RING, launches(draw, 1.0), launches(draw, 2.0), points=10).verdict for _ in range(200)]
    assert slower.count(SpeedVerdict.SLOWER) >= 190
    result = compare(SCENARIO, RING, [1.0] * 8, [1.02] * 8)
    assert (result.speedup.low, result.speedup.high) == (pytest.approx(1 / 1.02), pytest.approx(1 / 1.02))
    assert result.verdict is SpeedVerdict.SAME


def test_too_few_launches_tell_nothing() -> None:
    few = fewest_launches() - 1
    assert compare(SCENARIO, RING, [1.0] * few, [9.0] * few).verdict is SpeedVerdict.OPEN
    assert compare(SCENARIO, RING, [1.0] * (few + 1), [9.0] * (few + 1)).verdict is SpeedVerdict.SLOWER
    (alone,) = compare_all({(SCENARIO, RING): ([1.0], [9.0])})
    assert (alone.speedup.is_telling, alone.verdict) == (False, SpeedVerdict.OPEN)


def test_with_few_launches_the_spread_of_all_points_decides() -> None:
    noise = [0.97, 1.0, 1.03]
    truth = {16: 1.0, 32: 1.0, 64: 1.0, 128: 1.5, 256: 0.6}
    sides = {
        (Scenario("bcast", 1, 4, size), RING): ([ratio * n for n in noise], noise[::-1])
        for size, ratio in truth.items()
    }
    found = compare_all(sides)
    assert [one.verdict for one in found] == [*[SpeedVerdict.OPEN] * 3, SpeedVerdict.FASTER, SpeedVerdict.SLOWER]
    assert all(one.speedup.low < truth[one.scenario.size_bytes] < one.speedup.high for one in found)
    # One point that is calm by chance does not pass for a sure one.
    calm = {**sides, (Scenario("bcast", 1, 4, 8), RING): ([0.95] * 3, [1.0] * 3)}
    assert compare_all(calm)[-1].verdict is SpeedVerdict.OPEN


def test_points_of_which_some_have_more_launches_are_all_judged() -> None:
    sides = {
        (Scenario("bcast", 2, 2, 4), RING): ([1.0, 1.01], [9.0, 9.02, 9.01]),
        (Scenario("bcast", 2, 2, 8), RING): ([1.0, 1.02, 1.01, 0.99], [9.0, 9.1]),
        (Scenario("bcast", 2, 2, 16), RING): ([1.0], [9.0]),
    }
    found = [one.verdict for one in compare_all(sides)]
    assert found == [SpeedVerdict.SLOWER, SpeedVerdict.SLOWER, SpeedVerdict.OPEN]


Factors = Callable[[random.Random, int], list[float]]


def test_a_mean_speedup_of_nothing_is_hardly_ever_significant_and_a_true_one_is() -> None:
    draw = random.Random(7)

    def mean(speedup: float) -> Interval:
        sides = {
            (Scenario("bcast", 1, 4, 1 << size), RING): (launches(draw, speedup), launches(draw, 1.0))
            for size in range(12)
        }
        found = mean_speedup(compare_all(sides))
        assert found[0].low <= found[0].estimate <= found[0].high
        assert found[1] == 12
        return found[0]

    assert sum(mean(1.0).excludes(1.0) for _ in range(200)) <= 8  # 1 in 100, and what chance allows
    assert sum(mean(1.5).excludes(1.0) for _ in range(50)) >= 48


def test_points_that_a_launch_lost_are_not_in_the_mean() -> None:
    sides = {
        (Scenario("bcast", 1, 4, 8), RING): ([2.0] * 6, [1.0] * 6),
        (Scenario("reduce", 1, 4, 16), RING): ([9.0] * 5, [1.0] * 6),
    }
    found = mean_speedup(compare_all(sides))
    assert (found[0].estimate, found[1]) == (pytest.approx(2.0), 1)
    assert mean_speedup([]) is None


def test_the_summary_of_verify_says_what_its_ratio_is_and_whether_the_mean_is_significant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    noise = [0.9, 0.95, 1.0, 1.0, 1.05, 1.1, 1.2, 0.85]
    sides = {(Scenario("bcast", 1, 4, 8), RING): (noise, noise[::-1])}
    found = Verification(compare_all(sides), 8)
    assert found.nowhere_slower
    show(found, "")
    text = " ".join(capsys.readouterr().out.split())
    assert "speed-up: the median of default over tuned of all pairs of launches." in text
    assert "geometric mean over 1 point: 1.000 (99% interval" in text
    assert "so it is not significant" in text
    faster = {key: ([2.0 * one for one in both[0]], both[1]) for key, both in sides.items()}
    show(Verification(compare_all(faster), 8), "")
    assert "not significant" not in " ".join(capsys.readouterr().out.split())


def steady(draw: random.Random, points: int) -> list[float]:
    return [draw.lognormvariate(0.0, 0.1) for _ in range(points)]


def uneven(draw: random.Random, points: int) -> list[float]:
    """Every fourth point is five times as restless as the others."""
    return [draw.lognormvariate(0.0, 0.05 if point % 4 else 0.25) for point in range(points)]


def loaded(draw: random.Random, points: int) -> list[float]:
    """Now and then something else runs, and a point takes half as long again."""
    return [draw.lognormvariate(0.0, 0.1) * (1.5 if draw.random() < 0.05 else 1.0) for _ in range(points)]


def one_side(draw: random.Random, count: int, launch: float, factors: Factors, points: int = 40) -> list[list[float]]:
    """Medians by point and launch; launches differ by ``launch``, at all their points alike, and by ``factors``."""
    speeds = [draw.lognormvariate(0.0, launch) for _ in range(count)]
    rows = [[speed * factor for factor in factors(draw, points)] for speed in speeds]
    return [[row[point] for row in rows] for point in range(points)]


@pytest.mark.parametrize("factors", [steady, uneven, loaded])
@pytest.mark.parametrize("launch", [pytest.param(0.0, marks=pytest.mark.slow), 0.2])
@pytest.mark.parametrize("count", [3, 8, *(pytest.param(count, marks=pytest.mark.slow) for count in (2, 4, 6, 12))])
@pytest.mark.parametrize("paired", [False, True])
def test_a_verification_of_the_default_against_itself_hardly_ever_finds_anything(
    count: int, launch: float, factors: Factors, paired: bool
) -> None:
    draw = random.Random(count)
    wrong = 0
    for _ in range(300):
        pairs = zip(one_side(draw, count, launch, factors), one_side(draw, count, launch, factors), strict=True)
        sides = {(Scenario("bcast", 1, 4, 4 * i), RING): pair for i, pair in enumerate(pairs)}
        sure = {SpeedVerdict.FASTER, SpeedVerdict.SLOWER}
        wrong += any(one.verdict in sure for one in compare_all(sides, paired=paired))
    assert wrong <= 15  # of 300


def drifting(draw: random.Random, ratio: float, count: int, points: int = 4) -> list[SpeedVerdict]:
    """Verdicts where the machine takes 1.6 times as long from the middle on; B takes 1 / ``ratio`` of A's time."""
    machine = [1.0 if n < count // 2 else 1.6 for n in range(count)]
    sides = {}
    for point in range(points):
        a_s, b_s = ([speed * draw.lognormvariate(0.0, 0.005) for speed in machine] for _ in range(2))
        sides[Scenario("bcast", 1, 4, 8 << point), RING] = a_s, [time_s / ratio for time_s in b_s]
    return [one.verdict for one in compare_all(sides, paired=True)]


def test_neighbours_are_compared_where_the_machine_changes_midway() -> None:
    draw = random.Random(11)
    assert [drifting(draw, 1.0, 12) for _ in range(20)] == [[SpeedVerdict.SAME] * 4] * 20
    assert [drifting(draw, 1 / 1.3, 12) for _ in range(20)] == [[SpeedVerdict.SLOWER] * 4] * 20
    assert [drifting(draw, 1.3, 12) for _ in range(20)] == [[SpeedVerdict.FASTER] * 4] * 20


def test_what_few_launches_cannot_tell_is_open_and_more_decide() -> None:
    draw = random.Random(12)
    noise = [draw.lognormvariate(0.0, 0.05) for _ in range(6)]
    sides = {(SCENARIO, RING): (noise, noise[3:] + noise[:3])}
    found = compare_all(sides, paired=True)
    assert [one.verdict for one in found] == [SpeedVerdict.OPEN]
    needed = launches_to_decide(found, 6)
    assert 12 < needed < 200
    decided = 0
    for _ in range(20):
        a_s, b_s = ([draw.lognormvariate(0.0, 0.05) for _ in range(2 * needed)] for _ in range(2))
        (one,) = compare_all({(SCENARIO, RING): (a_s, b_s)}, paired=True)
        decided += one.verdict is SpeedVerdict.SAME
    assert decided >= 10
    assert launches_to_decide(compare_all({(SCENARIO, RING): ([1.0] * 8, [2.0] * 8)}), 8) == 0
    assert launches_to_decide([], 3) == 0  # nothing looked suspicious


def test_the_summary_says_how_many_stay_open_and_what_would_decide(capsys: pytest.CaptureFixture[str]) -> None:
    found = Verification(compare_all({(SCENARIO, RING): ([1.0, 1.1, 1.0], [1.1, 1.0, 1.0])}), 3, budget_s=60.0)
    points, launches, budget_s = found.undecided.values()
    assert points == 1
    assert budget_s == launches * 25.0
    show(found, "use a larger --budget")
    text = " ".join(capsys.readouterr().out.split())
    assert "1 of 1 stay open" in text
    assert f"{launches} launches of each side would decide" in text
    assert "; use --budget " in text
    assert text.endswith("0 faster, 0 same, 1 open, 0 slower.")


def test_what_is_twice_as_slow_is_seen_in_three_launches() -> None:
    draw = random.Random(5)
    seen = 0
    for _ in range(50):
        sides = {}
        pairs = zip(one_side(draw, 3, 0.05, steady), one_side(draw, 3, 0.05, steady), strict=True)
        for i, (default, tuned) in enumerate(pairs):
            sides[Scenario("bcast", 1, 4, 4 * i), RING] = (default, [2.0 * t for t in tuned] if i == 7 else tuned)
        found = [one.scenario.size_bytes for one in compare_all(sides) if one.verdict is SpeedVerdict.SLOWER]
        seen += found == [28]
    assert seen >= 45


def test_held_out_sizes_are_between_the_tuned_ones_and_no_powers_of_two() -> None:
    rules = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, None, 64, Choice("default")), Rule(None, None, None, RING)))
    scenarios = held_out(rules, [16, 32, 64, 128, 256], 1, 4)
    sizes = {scenario.size_bytes for scenario in scenarios}
    assert {96, 192} <= sizes
    tuned = [scenario for scenario in scenarios if scenario.size_bytes > 64]
    assert [scenario.size_bytes for scenario in tuned] == [96, 128, 192, 256]
    assert len(scenarios) - len(tuned) == 3  # controls
