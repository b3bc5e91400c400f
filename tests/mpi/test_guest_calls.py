"""Unusual calls, legal ones and ones that MPI refuses: a program sees of each what it sees without the library."""

from dataclasses import replace

import pytest
from guests import Guest, guest_fixtures
from live_jobs import live, sanitized

built = guest_fixtures("guest_calls.c", every=True)[0]
_RANKS = 3
# Not on Open MPI. unset_types: it looks at each type itself. empty_bcast: it refuses that. wide: it has no such counts.
_CASES = {"unset_types": True, "empty_bcast": True, "inter": False, "null_requests": False, "wide": True}
_MODES = ("profile", "select", "measure", "alltoallv", "count")


def _sees(guest: Guest, case: str, told: dict[str, str]) -> list[str]:
    done = guest.launch(["-n", str(_RANKS), guest.program, case], told)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "colltune" not in done.stderr
    return sorted(done.stdout.splitlines())


def _told(guest: Guest, mode: str) -> dict[str, str]:
    if mode == "count":
        counting = {
            "COLLTUNE_COUNT": f"{guest.profile}.count",
            "COLLTUNE_COUNT_RULES": guest.variables["COLLTUNE_SELECT"],
        }
        return {**guest.told(), **counting}
    modules = ("measure", "select") if mode == "measure" else (mode,)
    return {**guest.told(*modules), "COLLTUNE_MEASURE_SHARE": "50"}


def _same_in_all_modes(guest: Guest, case: str, modes: tuple[str, ...] = _MODES) -> None:
    if _CASES[case] and guest.openmpi:
        pytest.skip("not a call of this MPI")
    without = _sees(guest, case, {})
    assert [line.split()[:2] for line in without] == [[f"rank={rank}", "wrong=0"] for rank in range(_RANKS)]
    for mode in modes:
        assert _sees(guest.without_profile(), case, _told(guest, mode)) == without, mode


@pytest.mark.parametrize("case", _CASES)
def test_a_call_ends_as_without_the_library(built: Guest, case: str) -> None:
    _same_in_all_modes(built, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", _CASES)
def test_no_byte_beyond_an_argument_is_read(built: Guest, case: str) -> None:
    """Compiled such that this, or what C leaves undefined, ends the job."""
    kit = sanitized(live(built.bench.installation, built.profile.parent))
    watched = {"ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": str(kit.preload)}
    without = _sees(built, case, {}) if not (_CASES[case] and built.openmpi) else None
    if without is None:
        pytest.skip("not a call of this MPI")
    guest = replace(built, library=kit.preload)
    for mode in _MODES:
        assert _sees(guest.without_profile(), case, {**_told(guest, mode), **watched}) == without, mode
