"""Small programs, each with other calls or at another moment, under every mode: they end as without the library."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from guests import Guest, guest_in
from live_jobs import live, sanitized

from compiled import NATIVE, program, shared

SOURCES = ("guest_comms.c", "guest_kinds.c", "guest_process.c")
MODES = {
    "profile": "PROFILE",
    "live": "SELECT",
    "measure": "MEASURE MEASURE_SHARE SELECT",
    "explore": "MEASURE EXPLORE_RISK CANDIDATES SELECT",
    "alltoallv": "ALLTOALLV",
    "prove": "COUNT COUNT_RULES",
    "all": "PROFILE MEASURE MEASURE_SHARE SELECT ALLTOALLV COUNT",
}
# Ways to end that are each a launch of its own.
_ENDS = (
    "abort_by_a_thread",
    "exit_without_finalize",
    "finalize_at_exit",
    "killed",
    "plug_in",
    "quick_exit",
    "sessions_alone",
    "sessions_beside",
    "threads_at_once",
)


class Programs:
    """The programs of one MPI, with rules for the calls of every collective that has any."""

    def __init__(self, guest: Guest, directory: Path, sources: Sequence[str] = SOURCES) -> None:
        self.guest = guest
        self.ranks = 3 if guest.openmpi else 2  # waiting ranks of MPICH keep the cores from each other
        self.kit = live(guest.bench.installation, directory)
        self.paths = {source: program(self.kit.bench.mpicc, source) for source in sources}
        if SOURCES[-1] in sources:
            self.paths["PLUG_IN"] = str(shared(SOURCES[-1], compiler=self.kit.bench.mpicc))
        rules = guest.variables["COLLTUNE_SELECT"]
        none = directory / "none.rules"
        none.write_bytes(self.kit.emit())
        self._variables = {
            **guest.variables,
            "COLLTUNE_MEASURE_SHARE": "50",
            "COLLTUNE_CANDIDATES": rules,
            "COLLTUNE_EXPLORE_RISK": "100000",
            "COLLTUNE_COUNT": str(directory / "count"),
            "COLLTUNE_COUNT_RULES": rules,
        }
        self._none = str(none)
        self.runs: dict[tuple[str, ...], tuple[int, list[str], list[str]]] = {}

    def told(self, mode: str, library: Path | None = None) -> dict[str, str]:
        names = [f"COLLTUNE_{name}" for name in MODES[mode].split()]
        told = {"LD_PRELOAD": str(library or self.guest.library), **{name: self._variables[name] for name in names}}
        return {**told, "COLLTUNE_SELECT": self._none} if mode == "explore" else told

    def outcome(self, told: dict[str, str], *command: str) -> tuple[int, list[str], list[str]]:
        """Exit code and both streams: lines in any order, on standard error without numbers, as those of processes."""
        arguments = ["-n", str(self.ranks), *(self.paths.get(word, word) for word in command)]
        done = self.guest.without_profile().launch(arguments, told, wait_s=300.0)
        said = re.sub(r"0x[0-9a-f]+|\d+", "#", done.stderr)
        lines = re.sub(r"PID \d+", "PID #", done.stdout)  # Hydra says on standard output which process was killed
        return done.returncode, sorted(lines.splitlines()), sorted(said.splitlines())

    def without(self, *command: str) -> tuple[int, list[str], list[str]]:
        if command not in self.runs:
            self.runs[command] = self.outcome({}, *command)
        return self.runs[command]


@pytest.fixture(scope="module", params=["mpi", "openmpi"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    directory = tmp_path_factory.mktemp("programs")
    return Programs(
        guest_in(request.getfixturevalue(request.param), directory, "guest_worlds.c", every=True), directory
    )


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_a_program_ends_as_without_the_library(programs: Programs, mode: str, source: str) -> None:
    code, lines, said = programs.without(source, "all")
    assert code == 0, said
    assert len(lines) >= programs.ranks * 6
    assert programs.outcome(programs.told(mode), source, "all") == (code, lines, said)


@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("mode", ["profile", "alltoallv"])
def test_a_program_that_ends_in_its_own_way_does_so(programs: Programs, mode: str, end: str) -> None:
    command = ("guest_process.c", end, "PLUG_IN")
    assert programs.outcome(programs.told(mode), *command) == programs.without(*command)


@pytest.mark.parametrize("mode", MODES)
def test_a_program_in_python_ends_as_without_the_library(
    programs: Programs, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By mpi4py, which finds the MPI by its name when it is imported."""
    installation = programs.guest.bench.installation
    monkeypatch.setenv("MPI4PY_MPIABI", "openmpi" if programs.guest.openmpi else "mpich")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(installation.libmpi.parent))
    command = (sys.executable, str(NATIVE / "guest_python.py"))
    code, lines, said = programs.without(*command)
    assert code == 0, said
    assert len(lines) >= programs.ranks * 3
    assert programs.outcome(programs.told(mode), *command) == (code, lines, said)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", ["all", "explore", "prove"])
def test_the_library_is_clean_under_sanitizers(
    programs: Programs, mode: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    code, lines, _ = programs.without(source, "all")
    told = programs.told(mode, sanitized(programs.kit).preload)
    assert programs.outcome(told, source, "all")[:2] == (code, lines)
