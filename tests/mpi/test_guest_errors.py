"""Wrong calls of one rank alone: a program ends with the library as it does without it, call by call."""

import pytest
from guests import Guest, guest_fixtures

guest = guest_fixtures("wrong_calls.c", every=True)[0]
_RANKS = 3
_MODES = {
    "live": ("select",),
    "measure": ("measure", "select"),
    "profile": ("profile",),
    "all": ("profile", "measure", "select", "alltoallv"),
}


def _lines(guest: Guest, handler: str, told: dict[str, str]) -> list[str]:
    done = guest.launch(["-n", str(_RANKS), guest.program, handler], told, wait_s=300.0)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-1000:]
    return sorted(done.stdout.splitlines())


@pytest.fixture(scope="module", params=["returns", "own", "mends", "leaves"])
def plain(request: pytest.FixtureRequest, guest: Guest) -> tuple[str, list[str]]:
    """How errors are handled, and what every rank sees of each case without the library."""
    found = _lines(guest, request.param, {})
    wrong = [line for line in found if " handled=0 elsewhere=0 seen=0 returned=0 " not in line]
    assert len(found) == _RANKS * len(wrong) >= _RANKS * 35
    return request.param, found


@pytest.mark.parametrize("mode", _MODES)
def test_a_wrong_call_of_one_rank_ends_as_without_the_library(
    guest: Guest, plain: tuple[str, list[str]], mode: str
) -> None:
    """Bad roots, counts, types, operations, communicators, aliased buffers; before and between right calls."""
    handler, without = plain
    told = {**guest.without_profile().told(*_MODES[mode]), "COLLTUNE_MEASURE_SHARE": "50"}
    assert _lines(guest, handler, told) == without
