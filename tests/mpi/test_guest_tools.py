"""Another tool that counts MPI calls: it sees what it sees without the library, wherever it stands."""

from dataclasses import replace

import pytest
from guests import Guest, guest_fixtures

from compiled import program, shared

guest = guest_fixtures("tool_calls.c", every=True)[0]
_RANKS = 3
_MODES = {"live": ("select",), "measure": ("measure", "select"), "profile": ("profile",)}


def _counts(guest: Guest, told: dict[str, str]) -> str:
    done = guest.launch(["-n", str(_RANKS), guest.program], told)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" wrong=0") == _RANKS
    assert "colltune" not in done.stderr
    return next(line for line in done.stdout.splitlines() if line.startswith("tool"))


@pytest.mark.parametrize("place", ["before", "behind", "linked", "inside"])
def test_another_tool_counts_what_it_counts_without_the_library(guest: Guest, place: str) -> None:
    """Preloaded before or behind the library, linked to the program, or a part of it."""
    mpicc = guest.bench.installation.mpicc
    tool = shared("counting_tool.c", compiler=mpicc)
    more = {"linked": [tool, f"-Wl,-rpath,{tool.parent}"], "inside": ["counting_tool.c", "-rdynamic"]}
    guest = replace(guest, program=program(mpicc, "tool_calls.c", *more.get(place, ())))
    preloaded = {"before": [str(tool), str(guest.library)], "behind": [str(guest.library), str(tool)]}
    order = preloaded.get(place, [str(guest.library)])
    alone = ":".join(one for one in order if one != str(guest.library))
    without = _counts(guest, {"LD_PRELOAD": alone} if alone else {})
    assert "allreduce=180 " in without
    assert "strange=0" in without
    for mode in _MODES.values():
        told = {**guest.without_profile().told(*mode), "LD_PRELOAD": ":".join(order), "COLLTUNE_MEASURE_SHARE": "50"}
        assert _counts(guest, told) == without
