"""What of a tuning may be tried in an application: choices that were not decided, and may be faster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario
from colltune.core.summary import Summary
from colltune.session.candidates import left_open, require_open
from colltune.store.tuning import Tuning

RING = Choice("ring")
HERE = Environment("mpich", "5.0.2", "build", "machine", 2, 2, "single")


def decision(size: int, verdict: Verdict, *ratios: float) -> Decision:
    return Decision(Scenario("bcast", 2, 2, size), RING, verdict, ratios, "")


def test_what_is_open_and_not_seen_to_be_slower_is_left() -> None:
    decisions = (
        decision(1, Verdict.NOT_TRIED),
        decision(2, Verdict.NOT_TRIED, 1.1, 1.3),
        decision(4, Verdict.NOT_TRIED, 0.8, 0.9),
        decision(8, Verdict.REFUSED, 1.1),
        decision(16, Verdict.KEPT, 1.5),
        decision(32, Verdict.PROVISIONAL, 1.2),
    )
    found = left_open(Tuning(HERE, {}, {}, {}, Summary(decisions=decisions)))
    chosen = {scenario.size_bytes for scenario, choice in found["bcast"].items() if choice == RING}
    assert chosen == {1, 2, 32}
    # The others are there with the default, so that no rule reaches over them.
    assert {choice for scenario, choice in found["bcast"].items() if scenario.size_bytes in (4, 8, 16)} == {DEFAULT}


def test_nothing_is_left_where_all_was_decided() -> None:
    decisions = (decision(8, Verdict.REFUSED, 1.1), decision(16, Verdict.KEPT, 1.5))
    tuning = Tuning(HERE, {}, {}, {}, Summary(decisions=decisions))
    assert left_open(tuning) == {}
    assert left_open(replace(tuning, summary=Summary())) == {}


def test_where_only_calls_that_do_not_block_are_open_nobody_is_sent_in_a_circle() -> None:
    """Replaying them for `run --explore` is of no use, as it cannot time them; proving them is."""
    open_call = Decision(Scenario("ibcast", 2, 2, 64), RING, Verdict.NOT_TRIED, (), "")
    tuning = Tuning(HERE, {}, {}, {}, Summary(decisions=(open_call, decision(8, Verdict.REFUSED, 1.1))))
    with pytest.raises(InputError, match=r"only calls that do not block \(ibcast\)") as caught:
        require_open(Path("tuned"), tuning)
    assert "colltune tune ibcast --out tuned --resume" in caught.value.next_step
    with pytest.raises(InputError, match="left nothing open"):
        require_open(Path("tuned"), replace(tuning, summary=Summary()))
    blocking = replace(tuning, summary=Summary(decisions=(open_call, decision(4, Verdict.NOT_TRIED))))
    assert set(require_open(Path("tuned"), blocking)) == {"bcast"}
