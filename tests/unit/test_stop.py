"""A wish to stop is heeded where work may be cut off, and never lost elsewhere."""

import pytest

from colltune.core.stop import StopRequest, StopRequestedError


def test_a_request_cuts_off_what_may_be_cut_off() -> None:
    stop = StopRequest()
    with pytest.raises(StopRequestedError), stop.cuts():
        stop.make()
    assert stop.made


def test_a_request_between_two_stages_waits_for_the_next() -> None:
    stop = StopRequest()
    with stop.cuts():
        pass
    stop.make()
    with pytest.raises(StopRequestedError), stop.cuts():
        pytest.fail("begun in spite of the request")


def test_control_c_is_a_request_too() -> None:
    stop = StopRequest()
    with pytest.raises(KeyboardInterrupt), stop.cuts():
        raise KeyboardInterrupt
    assert stop.made


def test_nobody_asked() -> None:
    stop = StopRequest()
    with stop.cuts():
        pass
    assert not stop.made
