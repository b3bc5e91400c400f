"""Wrong calls of one rank alone: a program ends with the library as it does without it, call by call."""

from pathlib import Path

import pytest
from guests import Guest, guest_in
from live_jobs import live
from test_live_selector import prefer

_RANKS = 3
_MODES = {
    "live": ("select",),
    "measure": ("measure", "select"),
    "profile": ("profile",),
    "all": ("profile", "measure", "select", "alltoallv"),
}


@pytest.fixture(scope="module", params=["mpi", "openmpi"])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """With rules for the calls of every collective that has any."""
    installation, directory = request.getfixturevalue(request.param), tmp_path_factory.mktemp("errors")
    made = guest_in(installation, directory, "wrong_calls.c")
    kit = live(installation, directory)
    Path(made.variables["COLLTUNE_SELECT"]).write_bytes(kit.emit(*prefer(kit, 1)))
    return made


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
