"""A speed-up and its bounds, and a choice, in words and back."""

import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import InputError
from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.sample import DEFAULT, Choice, format_choice, format_choices, parse_choice
from colltune.judge import wording
from colltune.judge.finding import WORSE, exit_code

ends = st.one_of(st.floats(1e-3, 1e3), st.just(math.inf))


@given(st.floats(1e-3, 1e3), ends, ends)
def test_what_is_scaled_is_bounded_as_before(estimate: float, below: float, above: float) -> None:
    before = Interval(estimate, -below, above)
    after = before.scaled(lambda value: 3.0 * value - 1.0)
    assert [math.isinf(end) for end in (after.low, after.high)] == [math.isinf(end) for end in (below, above)]
    assert after.low <= after.estimate <= after.high or not before.low <= estimate <= before.high


@pytest.mark.parametrize(
    ("speedup", "text", "cells"),
    [
        (Interval(1.2, 1.05, 1.37), "1.20 (1.05 to 1.37)", ("1.20", "1.05 to 1.37")),
        (Interval(1.2, high=1.37), "1.20 (less to 1.37)", ("1.20", "less to 1.37")),
        (Interval(1.2, 1.05), "1.20 (1.05 to more)", ("1.20", "1.05 to more")),
        (Interval(1.2), "not known", ("1.20", "not known")),
        (Interval(1.2, 0.0), "not known", ("1.20", "not known")),  # a ratio is above 0: that bounds nothing
        (None, None, ("", "")),
    ],
)
def test_every_report_says_the_same_of_a_speedup(
    speedup: Interval | None, text: str | None, cells: tuple[str, str]
) -> None:
    assert wording.cells(speedup) == cells
    assert speedup is None or wording.text(speedup) == text
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
    kept = {Choice("ring", (("k", 2),)): 1}
    command = "import pickle, sys; from colltune.core.sample import Choice; "
    command += "print(pickle.load(sys.stdin.buffer)[Choice('ring', (('k', 2),))])"
    assert (
        subprocess.run([sys.executable, "-c", command], input=pickle.dumps(kept), capture_output=True).stdout == b"1\n"
    )
