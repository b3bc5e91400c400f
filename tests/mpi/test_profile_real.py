"""Profiles of programs whose calls are known, in C, Fortran and Python, under every MPI that is here."""

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import ON_EITHER, colltune, crowded, for_mpi4py

from colltune.cli.profile_show import print_profile
from colltune.core.heap import KEEPING
from colltune.machine.compile import cache_directory
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation, Library
from colltune.mpi.programs import library_for
from colltune.profile.advice import faulting, page_faults_text
from colltune.profile.application_profile import Calls, Profile
from colltune.profile.extrapolate import extrapolate
from colltune.profile.parts import part_files, read_parts
from colltune.profile.profile_files import load_profile, preload_command, preload_environment
from commands import run_to_end
from compiled import compiled, program

_SOURCES = Path(__file__).resolve().parents[1] / "native"
_RANKS = 4


@dataclass(frozen=True)
class Kit:
    """Compilers and launcher of one MPI."""

    mpi: Installation
    mpif90: str | None = None
    of_system: bool = False  # mpi4py finds that by itself

    @property
    def openmpi(self) -> bool:
        return self.mpi.library is Library.OPENMPI

    def program(self, source: str | Path, *more: str) -> str:
        return program(self.mpi.mpicc, source, *more)

    def job(self, ranks: int, *command: str) -> list[str]:
        return [str(self.mpi.mpiexec), *crowded(self.mpi), "-n", str(ranks), *command]

    def environment(self) -> dict[str, str]:
        python = for_mpi4py(self.mpi)
        if self.of_system:
            del python["LD_LIBRARY_PATH"]
        return {**os.environ, **ON_EITHER, **python}

    def profile(self, program: list[str], place: Path, ranks: int = _RANKS) -> tuple[int, Profile]:
        library = library_for(self.mpi, cache_directory(os.environ))
        out = place / "app.json"
        command = preload_command(self.job(ranks, *program), str(self.mpi.library))
        environment = preload_environment(library, out, self.environment())
        done = run_to_end(command, env=environment)
        if not part_files(out):
            pytest.fail(f"no profile: {done.returncode} {done.stdout} {done.stderr}")
        return done.returncode, read_parts(part_files(out))


def _debian(name: str) -> Kit | None:
    tools = [shutil.which(f"{tool}.{name}") for tool in ("mpicc", "mpiexec", "mpif90")]
    if tools[0] is None or tools[1] is None:
        return None
    fortran = tools[2] if shutil.which("gfortran") else None
    return Kit(find_mpi(tools[1], os.environ), fortran, of_system=True)


@pytest.fixture(params=["of the tests", "openmpi of the tests", "mpich", "openmpi"])
def kit(request: pytest.FixtureRequest) -> Kit:
    if request.param.endswith("of the tests"):
        return Kit(request.getfixturevalue("openmpi" if request.param.startswith("openmpi") else "mpi"))
    found = _debian(request.param)
    if found is None:
        pytest.skip(f"no {request.param} of the system (Debian: lib{request.param}-dev)")
    return found


def rows(profile: Profile) -> dict[tuple[str, str, int], tuple[float, int]]:
    """(collective, form, ranks of the communicator) -> calls of the communicator, bytes over all ranks."""
    found: dict[tuple[str, str, int], tuple[float, int]] = {}
    for one in profile.calls:
        key = one.collective, one.form, one.communicator.size
        calls, size_bytes = found.get(key, (0.0, 0))
        found[key] = calls + one.calls, size_bytes + one.own_bytes
    return found


def has_persistent(kit: Kit) -> list[str]:
    source = "#include <mpi.h>\nint main(void) { return MPI_Bcast_init == 0; }\n"
    command = [str(kit.mpi.mpicc), "-Werror", "-x", "c", "-", "-o", os.devnull]
    return ["-DPERSISTENT"] if run_to_end(command, input=source).returncode == 0 else []


def only(profile: Profile, collective: str, size: int = _RANKS, form: str = "blocking") -> Calls:
    (found,) = [
        one for one in profile.calls if (one.collective, one.communicator.size, one.form) == (collective, size, form)
    ]
    return found


def test_every_call_of_a_c_program_is_counted(kit: Kit, tmp_path: Path) -> None:
    persistent = has_persistent(kit)
    code, profile = kit.profile([kit.program("known_calls.c", *persistent)], tmp_path)
    assert code == 0
    expected = {
        ("barrier", "blocking", 4): (3, 0),
        ("bcast", "blocking", 4): (5, 5 * 4 * 128),
        ("allreduce", "blocking", 4): (8, 8 * 4 * 64),
        ("reduce", "blocking", 4): (1, 4 * 24),
        ("gather", "blocking", 4): (1, 4 * 16),
        ("gatherv", "blocking", 4): (1, 2 * 32),
        ("scatter", "blocking", 4): (1, 4 * 16),
        ("scatterv", "blocking", 4): (1, 2 * 32),
        ("allgather", "blocking", 4): (1, 4 * 16),
        ("allgatherv", "blocking", 4): (1, 2 * 32),
        ("alltoall", "blocking", 4): (2, 2 * 4 * 4 * 64),
        ("alltoallv", "blocking", 4): (1, 4 * 4 * 8),
        ("reduce_scatter", "blocking", 4): (1, 4 * 16),
        ("reduce_scatter_block", "blocking", 4): (1, 4 * 32),
        ("scan", "blocking", 4): (1, 4 * 4),
        ("exscan", "blocking", 4): (1, 4 * 4),
        # Three times two halves of two ranks, ten calls each.
        ("allreduce", "blocking", 2): (60, 60 * 2 * 4),
        ("bcast", "nonblocking", 4): (4, 4 * 4 * 20),
        ("allreduce", "nonblocking", 4): (4, 4 * 4 * 20),
        ("neighbor_allgather", "blocking", 4): (1, 4 * 12),
        ("neighbor_alltoall", "blocking", 4): (1, 4 * 24),
        ("alltoallv", "nonblocking", 4): (1, 4 * 8),
        ("neighbor_alltoallv", "blocking", 4): (1, 4 * 16),
        ("neighbor_alltoallv", "nonblocking", 4): (1, 4 * 16),
    }
    if persistent:
        expected |= {("allreduce", "persistent", 4): (5, 5 * 4 * 24), ("bcast", "persistent", 4): (2, 2 * 4 * 28)}
    assert rows(profile) == expected
    assert {one.size: count for one, count in profile.communicators} == {4: 2.0, 2: 6.0}
    assert all((one.nodes, one.ppn) == (1, one.size) for one, _ in profile.communicators)
    assert (profile.ranks, profile.reporting, profile.ended, profile.lost_calls) == (4, 4, "", 0)
    assert 0.0 < profile.start_s < 60.0


def test_how_calls_were_made_is_noted(kit: Kit, tmp_path: Path) -> None:
    _, profile = kit.profile([kit.program("known_calls.c")], tmp_path)
    bcast, allreduce, alltoallv = (only(profile, name) for name in ("bcast", "allreduce", "alltoallv"))
    assert (bcast.root_zero, bcast.root_repeated) == (2 * 4, 0)  # roots 0 1 2 3 0
    assert (allreduce.in_place, allreduce.op) == (4, "arithmetic")
    assert only(profile, "reduce").op == "extremum"
    assert only(profile, "reduce").in_place == 1  # at the root
    assert allreduce.size_least == allreduce.size_most == 64
    # Rank r sends 2 doubles to itself and 1 to each rank of the other parity: 2 + 2 of them, and one count is 0.
    assert alltoallv.blocks.sparsity == pytest.approx(0.25)
    assert alltoallv.blocks.self_bytes / alltoallv.blocks.total_bytes == pytest.approx(0.5)
    assert alltoallv.blocks.spread == pytest.approx(0.5**0.5)
    others = [
        only(profile, name, form=form)
        for name, form in (("alltoallv", "nonblocking"), ("neighbor_alltoallv", "blocking"))
    ]
    assert [one.blocks.sparsity for one in others if one.blocks is not None] == [pytest.approx(0.5), 0.0]


def test_calls_whose_data_have_gaps_are_counted(kit: Kit, tmp_path: Path) -> None:
    _, profile = kit.profile([kit.program("alltoallv_gaps.c", "-ldl")], tmp_path)
    exchanges = {name: [one for one in profile.calls if one.collective == name] for name in ("alltoallv", "alltoallw")}
    # A hundred calls of each kind on four ranks: in one the second rank alone has gaps, in one all of them have.
    assert sum(one.gaps for one in exchanges["alltoallv"]) == 100
    assert [one.gaps for one in exchanges["alltoallw"]] == [one.rank_calls for one in exchanges["alltoallw"]] == [400]


def test_every_call_of_a_fortran_program_is_counted(kit: Kit, tmp_path: Path) -> None:
    if kit.mpif90 is None:
        pytest.skip("this MPI has no Fortran here")
    made = str(compiled(kit.mpif90, "-w", "-fallow-argument-mismatch", "known_calls.f90"))
    code, profile = kit.profile([made], tmp_path)
    assert code == 0
    assert rows(profile) == {
        ("allreduce", "blocking", 4): (6, 6 * 4 * 64),
        ("bcast", "blocking", 4): (1, 4 * 12),
        ("barrier", "blocking", 4): (1, 0),
        ("alltoall", "blocking", 4): (4, 4 * 4 * 4 * 16),
        ("bcast", "nonblocking", 4): (1, 4 * 32),
        ("allgather", "blocking", 4): (3, 3 * 4 * 32),
        ("reduce", "blocking", 4): (1, 4 * 48),
    }
    assert only(profile, "allreduce").in_place == 4


def test_every_call_of_a_python_program_is_counted(kit: Kit, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    if kit.mpif90 is not None and not kit.openmpi:
        pytest.skip("mpi4py does not load Debian's MPICH")
    code, profile = kit.profile([sys.executable, str(_SOURCES / "known_calls.py")], tmp_path)
    assert code == 0
    assert rows(profile) == {
        ("allreduce", "blocking", 4): (6, 6 * 4 * 64),
        ("bcast", "blocking", 4): (2, 2 * 4 * 40),
        ("alltoall", "blocking", 2): (8, 8 * 2 * 2 * 16),
        ("barrier", "nonblocking", 4): (1, 0),
    }
    assert profile.threads_multiple


@pytest.mark.parametrize("end", ["abort", "crash"])
def test_a_job_that_is_aborted_leaves_what_there_is(kit: Kit, tmp_path: Path, end: str) -> None:
    code, profile = kit.profile([kit.program("known_calls.c"), end], tmp_path)
    assert code != 0
    assert profile.ended
    assert 1 <= profile.reporting <= 4
    allreduce = only(profile, "allreduce")
    assert allreduce.rank_calls == 8 * profile.reporting


def test_calls_with_a_spawned_rank_are_whole_numbers(
    kit: Kit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spawning = [kit.program("lost_ranks.c"), "spawn"]
    if run_to_end(kit.job(2, *spawning), env=kit.environment()).returncode:
        pytest.skip("this MPI cannot spawn here, with or without us")
    code, profile = kit.profile(spawning, tmp_path, ranks=2)
    assert (code, profile.ended, profile.reporting) == (0, "", 2)
    calls = {(one.communicator.size, one.communicator.remote_size): one.calls for one in profile.calls if one.own_bytes}
    assert calls == {(2, 0): 20, (2, 1): 10, (3, 0): 10}
    print_profile(profile, tmp_path / "app.json", brief=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "Communicators of 3 ranks: the calls of this job's ranks alone. Processes that it spawned" in shown


@pytest.mark.parametrize("end", ["kill", "_exit 0", "_exit 3"])
def test_ranks_that_leave_no_profile_are_the_reason_that_is_given(
    mpi: Installation, openmpi: Installation, tmp_path: Path, end: str
) -> None:
    """MPICH's launcher kills what is left of a job by SIGKILL: no rank leaves a profile. Open MPI's asks first."""
    for installation in (mpi, openmpi):
        kit = Kit(installation)
        job = kit.job(4, kit.program("lost_ranks.c"), *end.split())
        done = colltune("profile", "--", *job, cwd=tmp_path)
        assert done.returncode, done.stdout
        if not (tmp_path / "app.json").is_file():
            assert "a signal other than SIGKILL; after _exit there is none" in done.stderr
            continue
        profile = load_profile(tmp_path / "app.json")
        assert profile.ended
        assert 1 <= profile.reporting < 4
        assert only(profile, "allreduce").calls == 10
        assert f"These are the calls of {profile.reporting} of 4 ranks." in " ".join(done.stdout.split())


def test_the_command_writes_shows_and_draws(mpi: Installation, tmp_path: Path) -> None:
    job = Kit(mpi).job(4, program(mpi.mpicc, "known_calls.c"))
    colltune("profile", "--out", "app.json", "--", *job, cwd=tmp_path, code=0)
    assert load_profile(tmp_path / "app.json").ranks == 4
    assert not part_files(tmp_path / "app.json")
    shown = colltune("profile", "show", "app.json", cwd=tmp_path)
    assert "alltoallv" in shown.stdout


def test_the_exit_code_is_the_programs(mpi: Installation, tmp_path: Path) -> None:
    done = colltune("profile", "--", mpi.mpiexec, "-n", "2", "sh", "-c", "exit 5", cwd=tmp_path, code=5)
    assert "left no profile" in done.stderr


def test_a_terminal_without_utf8_costs_neither_profile_nor_exit_code(either: Installation, tmp_path: Path) -> None:
    made = program(either.mpicc, "known_calls.c")
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    job = Kit(either).job(4, "sh", "-c", f"{made} && exit 5")
    done = colltune("profile", "--", *job, cwd=tmp_path, code=5, **ascii_only)
    assert "Traceback" not in done.stderr
    assert "####" in done.stdout
    assert done.stdout.isascii()


def test_a_profile_names_the_collectives_that_meet_page_faults_in_each_call(kit: Kit, tmp_path: Path) -> None:
    """And none where the heap keeps memory, as the setting has it that is named."""
    made = kit.program("fresh_memory.c")
    _, found = kit.profile([made, "60"], tmp_path, ranks=2)
    named = [(one.collective, 200 < one.faults < 500) for one in faulting(found)]
    if platform.libc_ver()[0] == "glibc":
        assert named == [("allreduce", True)]  # 256 pages are received into
        assert "allreduce of 1 MiB" in page_faults_text(found)
        _, kept = kit.profile(["env", *(f"{name}={value}" for name, value in KEEPING.items()), made, "60"], tmp_path, 2)
        assert not faulting(kept)
        assert page_faults_text(kept) == ""


@pytest.mark.parametrize(
    "names",
    [("entry",), ("shim", "alltoallv"), ("agent", "alltoallv_measure", "alltoallv", "heap"), ("conformance",)],
)
def test_our_c_compiles_without_a_warning(mpi: Installation, names: tuple[str, ...], tmp_path: Path) -> None:
    native = _SOURCES.parents[1] / "native"
    folders = [native / name for name in (*names, "common", "load")]
    include = [f"-I{folder}" for folder in [native / "include", *folders]]
    flags = ["-std=c11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", '-DCT_MPI_LIBRARY="libmpi.so"', *include]
    for source in sorted(path for folder in folders for path in folder.glob("*.c")):
        command = [str(mpi.mpicc), *flags, "-c", str(source), "-o", str(tmp_path / "object.o")]
        run_to_end(command, check=True)


@pytest.mark.parametrize("kit", ["of the tests"], indirect=True)
@pytest.mark.parametrize(
    ("example", "unknown"),
    [("fft_transpose", set()), ("solver", set()), ("sample_sort", {"allgather"})],
    ids=["FFT", "solver", "sort"],
)
def test_what_a_program_calls_on_eight_ranks_is_told_by_two_and_four(
    kit: Kit, tmp_path: Path, example: str, unknown: set[str]
) -> None:
    """Every call that is not left out: the alltoall of the FFT has a quarter of the bytes on twice the ranks.

    The allgather of the sort grows with the ranks, or with their logarithm: from 2 to 4 these are the same.
    """
    source = _SOURCES.parents[1] / "examples" / f"{example}.c"
    made = kit.program(source, "-O2", "-Wl,--no-as-needed")
    found: dict[int, Profile] = {}
    for ranks in (2, 4, 8):
        place = tmp_path / str(ranks)
        place.mkdir()
        small = {"fft_transpose": ["64", "3"], "solver": ["1000", "20"]}.get(example, [])
        code, found[ranks] = kit.profile([made, *small], place, ranks)
        assert code == 0

    def told(profile: Profile) -> list[tuple[object, ...]]:
        some = [one for one in profile.calls if one.collective not in {*unknown, "alltoallv"}]
        return sorted((o.collective, o.communicator, o.calls, o.size_least, o.size_most) for o in some)

    predicted, text = extrapolate([found[2], found[4]], 1, 8)
    assert told(predicted) == told(found[8])
    assert {one.collective for one in found[8].calls} - {one.collective for one in predicted.calls} == unknown
    assert all(f"{name} of" in text for name in unknown)
