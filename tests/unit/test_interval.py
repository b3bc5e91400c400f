"""A speed-up and its bounds, and the words for it."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.interval import Interval, SpeedVerdict
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
