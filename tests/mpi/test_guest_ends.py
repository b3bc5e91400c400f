"""Communicators that begin and end while calls go on, as many as an MPI has, and error handlers that leave the call."""

import pytest
from guests import guest_in
from live_jobs import sanitized
from test_guest_programs import MODES, Programs

from colltune.machine.compile import COMMON, source_directory
from compiled import compiled, program

_UNUSUAL = [("JUMPS", "jump", "1"), ("JUMPS", "throw", "1"), ("THREADS",), ("SIGNALS", "handled-after")]
_HELD = "1990"  # of the 2,048 that MPICH has


@pytest.fixture(scope="module", params=["mpi", "openmpi"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """On three ranks: the all-to-all of fewer is the library's."""
    directory = tmp_path_factory.mktemp("ends")
    made = Programs(
        guest_in(request.getfixturevalue(request.param), directory, "guest_worlds.c", every=True), directory
    )
    made.ranks = 3
    for name in ("ends", "threads", "signals"):
        made.paths[name.upper()] = program(made.kit.bench.mpicc, f"guest_{name}.c")
    compiler = made.guest.bench.installation.mpicc.with_name("mpicxx")
    made.paths["JUMPS"] = str(compiled(compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "guest_jumps.cpp"))
    return made


@pytest.mark.parametrize("mode", MODES)
def test_communicators_that_begin_and_end_meanwhile_do_as_without_the_library(programs: Programs, mode: str) -> None:
    code, lines, said = programs.without("ENDS", "all")
    assert code == 0, said
    assert len(lines) >= programs.ranks * 11
    assert programs.outcome(programs.told(mode), "ENDS", "all") == (code, lines, said)


@pytest.mark.parametrize("mode", ["alltoallv", "live"])
def test_a_program_may_hold_as_many_communicators_as_without_the_library(programs: Programs, mode: str) -> None:
    code, lines, said = programs.without("ENDS", "held", _HELD)
    assert code == 0, said
    assert programs.outcome(programs.told(mode), "ENDS", "held", _HELD) == (code, lines, said)


@pytest.mark.parametrize("mode", ["profile", "measure", "alltoallv", "all"])
@pytest.mark.parametrize("how", ["jump", "throw"])
def test_a_handler_may_leave_the_call(programs: Programs, how: str, mode: str) -> None:
    """MPICH holds a lock while a handler runs where threads are asked for, and hangs by itself."""
    for threads in ("0", "1", "2") if programs.guest.openmpi else ("1",):
        code, lines, said = programs.without("JUMPS", how, threads)
        assert code == 0, said
        assert all("wrong=0" in line and "refused=0" not in line for line in lines)
        assert programs.outcome(programs.told(mode), "JUMPS", how, threads)[:2] == (code, lines)


def test_a_call_by_name_may_be_made_in_a_delete_function(programs: Programs) -> None:
    """Without a preloaded library, compiled such that what it reads beyond its memory ends the job."""
    parts = [source_directory(name) for name in ("include", "alltoallv", COMMON)]
    sources = [path for part in parts for path in sorted(part.glob("*.c"))]
    flags = ["-fsanitize=address,undefined", *(f"-I{part}" for part in parts)]
    target = program(programs.guest.bench.installation.mpicc, "alltoallv_named.c", *flags, *sources)
    told = {"COLLTUNE_ALLTOALLV": programs.guest.variables["COLLTUNE_ALLTOALLV"], "ASAN_OPTIONS": "detect_leaks=0"}
    programs.guest.ends_well(["-n", "3", target], told, 3)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("ENDS", "all"), *_UNUSUAL])
@pytest.mark.parametrize("mode", ["all", "explore", "alltoallv"])
def test_the_library_is_clean_under_sanitizers(
    programs: Programs, mode: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    code, lines, _ = programs.without(*command)
    told = programs.told(mode, sanitized(programs.kit).preload)
    assert programs.outcome(told, *command)[:2] == (code, lines)
