"""A speed-up and its bounds, and a choice, in words and back.

The evidence of launches: how often it is wrong, and how soon it tells what is there.
"""

import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import InputError
from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.sample import DEFAULT, Choice, format_choice, format_choices, parse_choice
from colltune.judge import wording
from colltune.judge.evidence import (
    ALPHA,
    FEWEST_LAUNCHES,
    Reference,
    Scatter,
    high_bound,
    is_above,
    is_below,
    log_evidence,
    low_bound,
    scatter_of,
    share_of_nulls,
)
from colltune.judge.finding import WORSE, exit_code

ends = st.one_of(st.floats(1e-3, 1e3), st.just(math.inf))


@given(st.floats(1e-3, 1e3), ends, ends)
def test_what_is_scaled_is_bounded_as_before(estimate: float, below: float, above: float) -> None:
    before = Interval(estimate, -below, above)
    after = before.scaled(lambda value: 3.0 * value - 1.0)
    assert [math.isinf(end) for end in (after.low, after.high)] == [math.isinf(end) for end in (below, above)]
    assert after.low <= after.estimate <= after.high or not before.low <= estimate <= before.high


@pytest.mark.parametrize(
    ("speedup", "bounds"),
    [
        (Interval(1.2, 1.05, 1.37), "1.05 to 1.37"),
        (Interval(1.2, high=1.37), "less to 1.37"),
        (Interval(1.2, 1.05), "1.05 to more"),
        (Interval(1.2), "not known"),
        (Interval(1.2, 0.0), "not known"),  # a ratio is above 0: that bounds nothing
        (None, ""),
    ],
)
def test_every_report_says_the_same_of_a_speedup(speedup: Interval | None, bounds: str) -> None:
    assert wording.cells(speedup) == ("" if speedup is None else "1.20", bounds)
    assert speedup is None or wording.text(speedup) == (bounds if bounds == "not known" else f"1.20 ({bounds})")
    assert wording.record(speedup).keys() == {"speedup", "speedup_low", "speedup_high"}


@pytest.mark.parametrize(
    ("speedup", "word"),
    [
        (Interval(1.2, 1.05, 1.37), "app is faster: 1.20 times as fast (1.05 to 1.37, 99% interval)"),
        (Interval(0.8, 0.7, 0.9), "app is slower: 0.80 times as fast (0.70 to 0.90, 99% interval)"),
        (Interval(1.2, 0.9, 1.6), "app is neither surely faster nor surely slower: 1.20 times as fast (0.90 to 1.60, "),
        (Interval(1.2), "app is neither surely faster nor surely slower: the 99% interval holds half and double"),
    ],
)
def test_a_sentence_says_what_the_interval_allows(speedup: Interval, word: str) -> None:
    assert wording.sentence("app", speedup, "99% interval").startswith(word)


def test_commands_end_with_the_exit_codes_that_the_page_of_verdicts_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w -]+)` \|.*\| (1: .*) \|$", page, re.MULTILINE))
    assert rows == {name: f"1: {', or '.join(worse.values())}; 4: no verdict" for name, worse in WORSE.items()}
    for name, worse in WORSE.items():
        assert [exit_code(name, [one]) for one in SpeedVerdict] == [int(one in worse) for one in SpeedVerdict]
        assert (exit_code(name, [], undecided=True), exit_code(name, worse, undecided=True)) == (4, 1)


RECEXCH = [Choice("recexch", (("k", k),)) for k in (2, 3, 4)]


@pytest.mark.parametrize("choice", [DEFAULT, Choice("ring"), RECEXCH[0], Choice("tree", (("type", "kary"), ("k", 4)))])
def test_a_choice_survives_its_text(choice: Choice) -> None:
    assert parse_choice(format_choice(choice)) == choice


def test_an_algorithm_is_listed_once_with_all_values_of_its_parameters() -> None:
    assert format_choices([DEFAULT, *RECEXCH, Choice("ring")]) == "default, recexch(k=2|3|4), ring"


@pytest.mark.parametrize("text", ["", "two words", "ring(", "ring(k)", "ring(k=)"])
def test_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"recexch\(k=4\)|name=value"):
        parse_choice(text)


def test_a_parameter_that_a_file_names_twice_has_a_place_in_the_order() -> None:
    twice = parse_choice("ring(k=b,k=4)")
    assert twice.parameters == (("k", 4), ("k", "b"))
    mixed = [parse_choice("ring(k=b)"), twice, parse_choice("ring(k=4)"), Choice("ring"), DEFAULT]
    assert sorted(mixed) == [DEFAULT, Choice("ring"), parse_choice("ring(k=4)"), twice, parse_choice("ring(k=b)")]


def test_another_process_finds_what_was_kept_by_a_choice() -> None:
    kept = pickle.dumps({Choice("ring", (("k", 2),)): 1})
    command = "import pickle, sys; from colltune.core.sample import Choice; "
    command += "print(pickle.load(sys.stdin.buffer)[Choice('ring', (('k', 2),))])"
    assert subprocess.run([sys.executable, "-c", command], input=kept, capture_output=True).stdout == b"1\n"


FLOOR = math.log(1.03)
# Each of two algorithms is 1.38 times as slow in half of the launches, for itself.
MODES = (0.0, 0.0, math.log(1.38), -math.log(1.38))
MODES_SCALE = math.log(1.38) / math.sqrt(2.0)
launches_of_any_kind = st.lists(st.floats(-2.0, 2.0), max_size=20)


def ever_above(gain: float, launches: int, scale: float, seed: int, *, modes: bool) -> bool:
    """Whether a campaign that looks after every launch ever calls it faster."""
    random = np.random.default_rng(seed)
    drawn = gain + (random.choice(MODES, launches) if modes else random.standard_t(3, launches) * scale)
    return any(is_above(drawn[:count].tolist(), scale, FLOOR) for count in range(1, launches + 1))


@pytest.mark.parametrize("modes", [False, True])
def test_what_is_as_fast_as_the_default_is_hardly_ever_called_faster(modes: bool) -> None:
    """At the floor itself, with tails or with two modes, and a look after each of 30 launches."""
    scale = MODES_SCALE if modes else 0.1
    wrong = sum(ever_above(FLOOR, 30, scale, seed, modes=modes) for seed in range(1500))
    assert wrong <= 1.5 * ALPHA * 1500


@pytest.mark.parametrize(("launches", "scale", "modes", "least"), [(40, MODES_SCALE, True, 160), (5, 0.03, False, 190)])
def test_what_is_a_quarter_faster_is_found(launches: int, scale: float, modes: bool, least: int) -> None:
    """In spite of two modes; and in few launches where it is clear."""
    found = sum(ever_above(math.log(1.25), launches, scale, seed, modes=modes) for seed in range(200))
    assert found >= least


@given(launches_of_any_kind, st.floats(0.01, 0.5), st.floats(-0.2, 0.5))
def test_bounds_lie_about_the_mean_are_mirrored_and_agree(launches: list[float], scale: float, floor: float) -> None:
    low, high = low_bound(launches, scale), high_bound(launches, scale)
    assert len(launches) < FEWEST_LAUNCHES or low <= float(np.mean(launches)) <= high
    assert low_bound([-value for value in launches], scale) == -high
    assert low >= floor - 0.02 or not is_above(launches, scale, floor)
    assert not (is_above(launches, scale, 0.0) and is_below(launches, scale, 0.0, ALPHA))


def test_too_few_launches_tell_nothing() -> None:
    few = [1.0] * (FEWEST_LAUNCHES - 1)
    assert not is_above(few, 0.02, 0.0)
    assert (low_bound(few, 0.02), high_bound(few, 0.02)) == (-math.inf, math.inf)
    assert log_evidence([], 0.1, 0.0) == 0.0


def drawn(between: float, within: float, looks: int, seed: int = 0) -> list[list[list[float]]]:
    """60 regions of 6 launches, each with so many comparisons."""
    random = np.random.default_rng(seed)
    return [
        [(mean + random.normal(0.0, between) + random.normal(0.0, within, looks)).tolist() for _ in range(6)]
        for mean in np.linspace(-1.0, 1.0, 60)
    ]


@pytest.mark.parametrize("between", [0.05, 0.3])
def test_the_scatter_is_found_between_launches_and_within(between: float) -> None:
    found = scatter_of(drawn(between, 0.2, 4))
    assert found.within == pytest.approx(0.2, rel=0.1)
    assert found.between == pytest.approx(between, rel=0.35)


def test_a_few_regions_with_two_modes_do_not_make_all_others_look_unsure() -> None:
    random = np.random.default_rng(1)
    bimodal = [[(random.choice([-1.4, 1.1]) + random.normal(0.0, 0.1, 2)).tolist() for _ in range(9)] for _ in range(4)]
    usual = drawn(0.1, 0.1, 2)
    assert scatter_of([*usual, *bimodal]).of(1.0) == pytest.approx(scatter_of(usual).of(1.0), rel=0.1)
    assert scatter_of(bimodal).between > 0.8  # and where all have them, they count


def test_with_one_comparison_a_launch_the_scatter_of_a_launch_is_found() -> None:
    assert scatter_of(drawn(0.2, 0.2, 1)).of(1.0) == pytest.approx(0.2 * math.sqrt(2.0), rel=0.1)
    assert scatter_of([]).of(1.0) == pytest.approx(Scatter().of(1.0))


def test_a_dear_comparison_is_made_once_in_a_launch_and_a_cheap_one_as_often_as_it_tells_something() -> None:
    scatter = Scatter(between=0.1, within=0.1)
    assert scatter.best_looks(launch_s=1.0, look_s=4.0) == 1
    assert scatter.best_looks(launch_s=1.0, look_s=0.04) == 5
    # What differs between launches no comparison within one can tell.
    assert Scatter(between=0.5, within=0.1).best_looks(launch_s=1.0, look_s=0.04) == 1

    def variance(looks: int, time_s: float = 100.0) -> float:
        return scatter.of(looks) ** 2 / (time_s / (1.0 + 0.04 * looks))

    assert min(range(1, 20), key=variance) == 5


def test_the_share_of_claims_that_are_no_gain_is_found() -> None:
    random = np.random.default_rng(0)
    null = [log_evidence(random.normal(0.0, 0.1, 6).tolist(), 0.1, FLOOR) for _ in range(100)]
    true = [log_evidence(random.normal(0.3, 0.1, 6).tolist(), 0.1, FLOOR) for _ in range(100)]
    assert share_of_nulls(null + true) == pytest.approx(0.5, abs=0.1)
    assert share_of_nulls(null) > 0.9
    assert share_of_nulls(true) < 0.1
    assert Reference(nulls=share_of_nulls(null)).alpha < ALPHA < Reference(nulls=share_of_nulls(true)).alpha
