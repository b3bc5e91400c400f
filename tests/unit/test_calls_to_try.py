"""Why the runs of a program try nothing: the reason that keeps most of its time from being tried."""

from dataclasses import replace

import pytest
from test_payoff import calls, profile

from colltune.catalog import load
from colltune.profile.application_profile import Calls, Communicator
from colltune.session.application.calls_to_try import why_none_is_tried

_BUSY = replace(calls("bcast", 1, 4), rank_calls=4 * 1051, time_s=28.0)
_SELDOM = replace(calls("allreduce", 1, 4), rank_calls=4 * 60, time_s=5.6)
_UNEVEN = replace(_BUSY, communicator=Communicator(3, 2, 2, even=False))


@pytest.mark.parametrize(
    ("made", "share", "reason"),
    [
        ((_BUSY, _SELDOM), "84.0%", "makes 4,000 times, and makes none so often: bcast of about 1 KiB 1,051 times"),
        ((_UNEVEN, _SELDOM), "84.0%", "on communicators with different numbers of ranks on their nodes"),
        ((replace(_SELDOM, time_s=0.02),), "0.1%", "no kind of call 0.2% of it"),
    ],
)  # fmt: skip
def test_the_reason_is_the_one_that_decides(made: tuple[Calls, ...], share: str, reason: str) -> None:
    """A program whose collectives take 84% of its time, and in which no kind of call is frequent."""
    text = why_none_is_tried(profile(*made), load("mpich", "5.0.2"), [])
    assert text.startswith(f"calls that can be tuned take {share} of its time")
    assert reason in text
