"""Communicators that end while calls go on, handlers that leave the call, and programs of another MPI or of several."""

import os
import subprocess
from collections.abc import Sequence

import pytest
from guests import MODULES, Guest, guest_in
from live_jobs import sanitized
from test_guest_programs import MODES, SOURCES, Programs

from colltune.machine.compile import COMMON, source_directory
from colltune.mpi.installation import Installation
from colltune.profile.parts import part_files, read_parts
from commands import run_to_end
from compiled import compiled, program, shared

_JUMPS = [("JUMPS", how, "1") for how in ("jump", "throw")]
_UNUSUAL = [*_JUMPS, (SOURCES[-1], "threads_at_once"), ("SIGNALS", "handled-after")]
_HELD = "1990"  # of the 2,048 that MPICH has


@pytest.fixture(scope="module")
def programs(either: Installation, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """On three ranks: the all-to-all of fewer is the library's."""
    made = Programs(either, tmp_path_factory.mktemp("ends"))
    made.ranks = 3
    for name in ("ends", "signals"):
        made.paths[name.upper()] = program(either.mpicc, f"guest_{name}.c")
    compiler = either.mpicc.with_name("mpicxx")
    made.paths["JUMPS"] = str(compiled(compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "guest_jumps.cpp"))
    return made


@pytest.mark.parametrize("mode", MODES)
def test_communicators_that_begin_and_end_meanwhile_do_as_without_the_library(programs: Programs, mode: str) -> None:
    assert len(programs.ends_as_without(mode, "ENDS", "all")) >= programs.ranks * 11


@pytest.mark.parametrize("mode", ["alltoallv", "live"])
def test_a_program_may_hold_as_many_communicators_as_without_the_library(programs: Programs, mode: str) -> None:
    programs.ends_as_without(mode, "ENDS", "held", _HELD)


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


_REFUSED = "was compiled for another MPI"


@pytest.fixture(scope="module")
def mpich(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return guest_in(mpi, tmp_path_factory.mktemp("mpich"), "guest_plugin_host.c")


@pytest.fixture(scope="module")
def open_mpi(openmpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return guest_in(openmpi, tmp_path_factory.mktemp("openmpi"), "guest_plugin_host.c")


@pytest.fixture(scope="module")
def host() -> str:
    """A program without an MPI."""
    return program("cc", "guest_host.c")


def _plugin(guest: Guest, name: str = "mpicc", *flags: str) -> str:
    compiler = guest.bench.installation.mpicc.with_name(name)
    if not compiler.exists():
        pytest.skip(f"this MPI has no {name}")
    return str(shared("guest_plugin.c", *flags, compiler=compiler))


def _alone(arguments: Sequence[str], told: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Without a launcher, under which only one MPI can start."""
    environment = {**os.environ, "OMPI_MCA_btl": "self,sm", **told}
    return run_to_end(arguments, env=environment)


@pytest.mark.parametrize("module", [*MODULES, "count"])
def test_a_plugin_of_the_standard_abi_runs_as_without_the_library(mpich: Guest, host: str, module: str) -> None:
    told = {"COLLTUNE_COUNT": f"{mpich.profile}.count"} if module == "count" else {}
    told = {**mpich.without_profile().told(*(() if told else (module,))), **told}
    said = mpich.ends_well(["-n", "2", host, _plugin(mpich, "mpicc_abi")], told, 2)
    assert (
        said.count("libmpi_abi.so.") == said.count(_REFUSED) == said.count("colltune") - said.count("libcolltune") == 1
    )
    assert part_files(mpich.profile) == []


def test_a_plugin_of_the_library_s_own_mpi_is_served(mpich: Guest, open_mpi: Guest, host: str) -> None:
    for guest in (mpich, open_mpi):
        told = guest.without_profile().told(*MODULES)
        assert "colltune" not in guest.ends_well(["-n", "2", host, _plugin(guest)], told, 2)
        assert read_parts(part_files(guest.profile)).ranks == 2


@pytest.mark.parametrize("module", MODULES)
def test_a_program_of_the_other_mpi_runs_as_without_the_library(mpich: Guest, open_mpi: Guest, module: str) -> None:
    for guest, other in ((mpich, open_mpi), (open_mpi, mpich)):
        told = {**guest.without_profile().told(module), "LD_PRELOAD": str(other.library)}
        said = guest.ends_well(["-n", "2", guest.program], told, 2)
        assert said.count(_REFUSED) == 1
        assert part_files(guest.profile) == []


def test_plugins_of_several_mpis_each_meet_their_own(mpich: Guest, open_mpi: Guest, host: str) -> None:
    """And the one that is the library's own is served."""
    plugins = [_plugin(open_mpi), _plugin(mpich)]
    for order in (plugins, plugins[::-1]):
        for guest in (mpich, open_mpi):
            done = _alone([host, *order], guest.without_profile().told("profile", "alltoallv"))
            assert (done.returncode, done.stdout) == (0, "rank=0 wrong=0\n" * 2), done.stderr
            assert done.stderr.count(_REFUSED) == 1
            assert read_parts(part_files(guest.profile)).ranks == 1


def test_a_program_of_an_mpi_loads_a_plugin_of_another(mpich: Guest, open_mpi: Guest) -> None:
    for guest, other in ((mpich, open_mpi), (open_mpi, mpich)):
        for library in (guest, other):
            done = _alone([guest.program, _plugin(other)], library.without_profile().told("profile"))
            assert (done.returncode, done.stdout) == (0, "rank=0 wrong=0\n" * 2), done.stderr
            assert bool(part_files(library.profile)) == (library is guest)


@pytest.mark.parametrize("bound", [{}, {"LD_BIND_NOW": "1"}])
def test_programs_without_mpi_meet_no_mpi(mpich: Guest, bound: dict[str, str]) -> None:
    seen = ["sh", "-c", "cat /proc/self/maps"]
    done = _alone(seen, {**mpich.told(*MODULES), **bound})
    assert (done.returncode, done.stderr) == (0, "")
    assert "libcolltune" in done.stdout
    assert "libmpi" not in done.stdout


def test_calls_that_do_not_come_by_are_told_of(mpich: Guest, host: str) -> None:
    library = mpich.bench.installation.libmpi
    plugin = _plugin(mpich, "mpicc", f'-DBY_HANDLE="{library}"')
    said = mpich.ends_well(["-n", "2", host, plugin], mpich.without_profile().told("profile"), 2)
    assert said.count("saw none of its calls") == said.count("colltune: ") == 1
