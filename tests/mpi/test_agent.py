"""The agent itself: under sanitizers, at the limits of its tables, and on requests that nobody should send."""

import itertools
import math
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import QUIET

from colltune.catalog import load
from colltune.catalog.read import known_versions
from colltune.core.sample import NONBLOCKING, REDUCTIONS, TUNABLE, Choice, Scenario
from colltune.core.space import Point, message_sizes
from colltune.machine.compile import COMMON, TIMING_PARTS, source_directory
from colltune.measure.contract import Effort
from colltune.measure.live import UNREAD_BYTES
from colltune.measure.request import PointRequest, Settings
from colltune.mpi.installation import Installation
from commands import run_to_end
from compiled import compiled

NATIVE = Path(__file__).parents[1] / "native"
SANITIZED = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
# MPICH keeps what it has until the process ends.
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=77", "UBSAN_OPTIONS": "halt_on_error=1:exitcode=77"}
LATE_ON_RANK_2 = """
#include <mpi.h>
#include <unistd.h>
int MPI_Alltoall(const void *a, int b, MPI_Datatype c, void *d, int e, MPI_Datatype f, MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    usleep(rank == 2 ? 20000 : 0);
    return PMPI_Alltoall(a, b, c, d, e, f, comm);
}
"""
SHORT = "warm_up=1 fewest=2 most=4 box_us=200 width_ppm=500000"


def compile_sanitized(mpi: Installation, sources: Sequence[Path | str]) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    include = [f"-I{source_directory(name)}" for name in ("agent", *TIMING_PARTS, COMMON)]
    return compiled(mpi.mpicc, *SANITIZED, "-fno-sanitize-recover=all", *include, *sources, "-lm", "-ldl")


@pytest.fixture(scope="module")
def sanitized_agent(mpi: Installation) -> Path:
    sources = sorted(path for name in ("agent", *TIMING_PARTS, COMMON) for path in source_directory(name).glob("*.c"))
    return compile_sanitized(mpi, sources)


@pytest.fixture(scope="module")
def reader(mpi: Installation) -> Path:
    sources = [source_directory("agent") / "request.c", source_directory(COMMON) / "rules.c", "read_requests.c"]
    return compile_sanitized(mpi, sources)


Talk = Callable[..., list[str]]


@pytest.fixture(scope="module")
def talk(mpi: Installation) -> Talk:
    """Gives an agent lines, one after another, and returns what it says to them; its end must be an orderly one."""

    def talk(agent: Path, ranks: int, lines: Sequence[str], last: bytes = b"", **variables: str) -> list[str]:
        environment = {**os.environ, **QUIET, **SANITIZER_OPTIONS, **variables}
        # Hydra ends a job that leaves 64 KiB of its input unread, so what is longer is read without a launcher.
        command = [str(mpi.mpiexec), "-n", str(ranks), str(agent)] if len(last) < 1 << 15 else [str(agent)]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdin=-1, stdout=-1, stderr=errors, env=environment) as process,
        ):
            watchdog = threading.Timer(800.0, process.terminate)
            watchdog.start()
            answers = []
            assert process.stdout.readline().startswith(b"ready protocol=1 ")
            for line in lines:
                process.stdin.write(f"{line}\n".encode())
                process.stdin.flush()
                for answer in process.stdout:
                    answers.append(answer.decode(errors="replace").rstrip("\n"))
                    if answer.startswith((b"done ", b"error ")):
                        break
            process.stdin.write(last)
            process.stdin.close()
            last_lines = [answer.decode(errors="replace").rstrip("\n") for answer in process.stdout]
            # What others used of the machine is told at the end of a launch that was long enough.
            answers += [line for line in last_lines if not line.startswith("load ")]
            code = process.wait()
            watchdog.cancel()
            errors.seek(0)
            said = errors.read()
        assert code == 0, said[-3000:]
        assert "ERROR: AddressSanitizer" not in said
        assert "runtime error" not in said
        return answers

    return talk


def request(number: int, collective: str, size_bytes: int, ppn: int, nodes: str = "0", *more: str) -> str:
    fields = f"measure id={number} collective={collective} bytes={size_bytes} ppn={ppn} nodes={nodes} {SHORT}"
    return " ".join([fields, *(more or ["choice="])])


def done(answers: Sequence[str]) -> list[int]:
    return [int(line.split()[1].removeprefix("id=")) for line in answers if line.startswith("done ")]


# Fields that a good request may not have, in place of its own of that name.
ODD = (
    "id=-1", "nodes=", "nodes=0,0", "nodes=1", "nodes=0-1048575", "nodes=3-1", "ppn=3", "ppn=99999999999", "beside=3",
    "beside=0", "ppn=2 beside=65536", "bytes=-8", "fewest=9 most=3", "choice=A", "choice==3", "choice=A=",
    "choice=A=99999999999", "choice=0=1", "names=A choice=1=1", "names=A choice=-1=1", "collective=", "choice=\0",
    "unknown=1", "skew_us=-1",
)  # fmt: skip


def with_fields(odd: str) -> str:
    words = f"id=1 collective=bcast bytes=8 ppn=1 nodes=0 {odd}".split(" ")
    fields = {"choice": "choice="} | {word.split("=")[0]: word for word in words}
    return " ".join(["measure", *(word for name, word in fields.items() if name != "choice"), fields["choice"]])


BROKEN = ["", " ", "measure", "stop", "measure id=1", "\0", *map(with_fields, ODD)]
BROKEN.append("measure id=1 collective=bcast bytes=8 ppn=1 nodes=0 nodes=0 choice=")


def test_a_session_of_good_and_broken_requests_is_clean_under_sanitizers(talk: Talk, sanitized_agent: Path) -> None:
    good = []
    for name in TUNABLE:
        for size in (0, 8, 1000, 65536):
            for ppn in (1, 2):
                good.append(request(len(good) + 1, name, size - size % 4 if name in REDUCTIONS else size, ppn))
    good.append(request(len(good) + 1, "bcast", 2**31, 1))
    good.append(request(len(good) + 1, "allgatherv", 2**40, 2))
    good.append(request(len(good) + 1, "nonsense", 8, 2))
    good.append(request(len(good) + 1, "reduce", 64, 2, "0", "root=1", "choice="))
    good.append(request(len(good) + 1, "alltoall", 64, 2, "0", "skew_us=20", "choice="))
    flat = "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0,MPIR_CVAR_BCAST_INTRA_ALGORITHM=1"
    choices = ["choice=", f"choice={flat}", "choice=NO_SUCH=1", *["choice="] * 297]
    good.append(request(len(good) + 1, "bcast", 64, 2, "0", *choices))
    good.append(request(len(good) + 1, "bcast", 64, 2, "0", f"choice={','.join([flat] * 20)}", f"choice={'A' * 200}=1"))
    names = "names=MPIR_CVAR_BCAST_DEVICE_COLLECTIVE,NO_SUCH,MPIR_CVAR_BCAST_INTRA_ALGORITHM"
    good.append(request(len(good) + 1, "bcast", 64, 2, "0", names, "choice=0=0,2=1", "choice=1=1"))
    good.append(request(len(good) + 1, "x" * 40, 64, 2))
    assert len(good) > 3 * len(BROKEN)
    lines = [line for pair in itertools.zip_longest(good, BROKEN) for line in pair if line is not None]
    answers = talk(sanitized_agent, 2, lines)
    assert done(answers) == list(range(1, len(good) + 1))
    assert sum(line.startswith("error ") for line in answers) == len(BROKEN)
    bad = {line for line in answers if "status=wrong" in line}
    assert not bad
    assert sum(line.startswith(f"result id={len(good) - 3} ") for line in answers) == 300
    by_place = [line.split(" detail=")[-1] for line in answers if line.startswith(f"result id={len(good) - 1} ")]
    assert " status=ok " in by_place[0]
    assert by_place[1] == "no-control-variable:NO_SUCH"


@settings(max_examples=4)
@given(data=st.data())
def test_garbage_is_refused_line_by_line(talk: Talk, sanitized_agent: Path, data: st.DataObject) -> None:
    alphabet = st.characters(blacklist_characters="\n\0", blacklist_categories=("Cs",))
    garbage = data.draw(st.lists(st.text(alphabet), min_size=20, max_size=60))
    answers = talk(sanitized_agent, 2, [*garbage, request(5, "bcast", 8, 2)])
    assert sum(line.startswith("error ") for line in answers) == len(garbage)
    assert done(answers) == [5]


def figure(line: str, key: str) -> float | None:
    words = dict(word.split("=", 1) for word in line.split()[1:])
    return float(words[key]) if key in words else None


def test_communicators_side_by_side_make_each_call_at_once(
    talk: Talk, sanitized_agent: Path, agent: Path, mpi: Installation, tmp_path: Path
) -> None:
    """Each has ranks of its own and right results; a call takes as long as in the slowest, here that of rank 2."""
    names = [name for name in TUNABLE if name not in NONBLOCKING]
    lines = [request(number, name, 64, 2, "0", "beside=2", "choice=") for number, name in enumerate(names, 1)]
    lines.append(request(len(lines) + 1, "alltoall", 64, 1, "0", "beside=4", "skew_us=20", "choice="))
    results = [line for line in talk(sanitized_agent, 4, lines) if line.startswith("result ")]
    assert len(results) == len(lines)
    assert all(" status=ok " in line and " detail=2-side-by-side " in line for line in results[:-1])
    (tmp_path / "late.c").write_text(LATE_ON_RANK_2)
    late = compiled(mpi.mpicc, "-shared", "-fPIC", tmp_path / "late.c")
    lines = [request(1, "alltoall", 64, 2), request(2, "alltoall", 64, 2, "0", "beside=2", "choice=")]
    alone, both = [line for line in talk(agent, 4, lines, LD_PRELOAD=str(late)) if line.startswith("result ")]
    for line, longer in ((alone, False), (both, True)):
        times_ns = line.partition("times_ns=")[2].split()[0].split(",")
        assert (min(map(float, times_ns)) > 20e6) == longer, line


@pytest.mark.parametrize(("name", "ranks"), [("barrier", 2), ("allreduce", 4)])
def test_late_arrivals_are_timed_from_the_last_rank_on(
    talk: Talk, sanitized_agent: Path, name: str, ranks: int
) -> None:
    """Nobody leaves these calls before the last rank came, after 0.3 s; what they take from then on is far less."""
    lines = [request(1, name, 8, ranks, "0", "skew_us=300000", "choice="), request(2, name, 8, ranks)]
    skewed_us = math.inf
    for _attempt in range(20):  # ranks of other tests may hold a core for longer than its lateness, for some seconds
        late, together = [line for line in talk(sanitized_agent, ranks, lines) if line.startswith("result ")]
        cost_us = figure(late, "cost_us")
        assert cost_us is not None
        assert cost_us >= 300_000
        assert figure(together, "skewed_us") is None
        skewed_us = min(skewed_us, figure(late, "skewed_us") or math.nan)
        if skewed_us < 150_000:
            break
    assert 0.0 < skewed_us < 150_000


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("name", NONBLOCKING)
def test_what_a_computation_hides_of_a_nonblocking_call_is_told(
    talk: Talk, sanitized_agent: Path, name: str, ranks: int
) -> None:
    lines = [
        request(1, name, 4096, ranks, "0", "skew_us=100", "choice="),
        request(2, name.removeprefix("i"), 64, ranks),
    ]
    told = ("compute_us", "b2b_us", "skewed_us")
    for _attempt in range(5):  # of a call that a busy machine held for long the agent takes its time alone
        overlapped, blocking = [line for line in talk(sanitized_agent, ranks, lines) if line.startswith("result ")]
        assert " status=ok " in overlapped
        figures = {key: figure(overlapped, key) for key in told}
        if None not in figures.values():
            break
    assert all(value is not None for value in figures.values()), figures
    assert figures["compute_us"] > 0.0 or ranks == 1
    # The call itself takes some time, however much of the rest is hidden.
    assert all(int(time) > 0 for time in overlapped.split("times_ns=")[1].split(","))
    assert "compute_us" not in blocking


def test_an_agent_hears_what_follows_a_zero_byte_or_a_long_line(talk: Talk, sanitized_agent: Path) -> None:
    last = b"\0\0\nmeasure id=1 \0\n" + b"x" * (1 << 18) + b"\n" + request(9, "bcast", 8, 1).encode() + b"\n"
    answers = talk(sanitized_agent, 1, [], last)
    errors = [line for line in answers if line.startswith("error ")]
    assert [line.split()[1] for line in errors] == ["id=-1", "id=1", "id=-1"]
    assert ["zero byte" in line for line in errors] == [True, True, False]
    assert done(answers) == [9]


def test_an_input_that_ends_in_the_midst_of_a_line_ends_the_agent_in_good_order(
    talk: Talk, sanitized_agent: Path
) -> None:
    assert talk(sanitized_agent, 1, [], b"x" * (1 << 18)) == []
    assert talk(sanitized_agent, 2, []) == []
    assert talk(sanitized_agent, 2, [], b"measure id=1 cut off") == []


def test_an_agent_that_hears_nothing_ends_itself(mpi: Installation, agent: Path) -> None:
    environment = {**os.environ, **QUIET, "COLLTUNE_SILENCE_S": "1"}
    command = [mpi.mpiexec, "-n", "2", agent, "--thread-level", "single"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as job:
        try:
            assert job.wait(timeout=60) == 0  # its input stays open all the while
        finally:
            job.kill()


def test_more_shapes_than_communicators_are_kept(talk: Talk, agent: Path) -> None:
    """Five nodes, by the library's own means, in so many orders that communicators must be given back."""
    orders = [order for count in (2, 3, 5) for order in itertools.permutations("01234", count)][:90]
    shapes = [(1, ",".join(order)) for order in [*orders, *orders[:10]]]
    lines = [
        request(number, "bcast" if number % 2 else "allgather", 100, ppn, nodes)
        for number, (ppn, nodes) in enumerate(shapes, start=1)
    ]
    answers = talk(agent, 5, lines, MPIR_CVAR_NUM_CLIQUES="5")
    assert done(answers) == list(range(1, len(lines) + 1))
    assert all("status=ok" in line for line in answers if line.startswith("result "))


@pytest.mark.slow
@pytest.mark.skipif(
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 20 << 30, reason="needs 20 GiB of memory"
)
def test_only_what_has_a_block_for_each_rank_is_limited_by_their_number(talk: Talk, agent: Path) -> None:
    size_bytes = (2**31 - 1) // 8 + 1024
    answers = talk(agent, 8, [request(1, "bcast", size_bytes, 8), request(2, "alltoall", size_bytes, 8)])
    results = [line for line in answers if line.startswith("result ")]
    assert ["status=ok" in line for line in results] == [True, False]
    assert "no-buffers" in results[1]


def test_more_times_than_can_be_counted_are_refused(reader: Path) -> None:
    many = "measure id=1 collective=bcast ppn=1 nodes=0 most=100000 " + "choice= " * 11_000
    assert read(reader, [many, many.replace("most=100000", "most=1000")])[0].startswith("no so many choices")


@settings(max_examples=10)
@given(data=st.data())
def test_what_is_written_is_what_is_read(reader: Path, data: st.DataObject) -> None:
    number = st.integers(0, 2**31 - 1)
    lines, expected = [], []
    for _ in range(20):
        first, last = sorted(data.draw(st.tuples(st.integers(0, 50), st.integers(0, 50))))
        size, identity, ppn = data.draw(number), data.draw(number), data.draw(st.integers(1, 65536))
        values = data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=12))
        choice = ",".join(f"KNOWN_{'x' * i}={value}" for i, value in enumerate(values))
        read_choice = ",".join(f"{6 + i}:{value}" for i, value in enumerate(values))
        nodes = ",".join(map(str, range(first, last + 1)))
        fixed = "warm_up=2 fewest=10 most=1000 box_us=50000 limit_s=3"
        lines.append(
            f"measure id={identity} collective=bcast bytes={size} ppn={ppn} beside=3 nodes={first}-{last} "
            f"{fixed} choice={choice} choice=GONE=1"
        )
        expected.append(
            f"ok id={identity} collective=bcast bytes={size} ppn={ppn} beside=3 nodes={nodes} {fixed}"
            f" choice={read_choice}/ choice=/GONE"
        )
    assert read(reader, lines) == expected


SHAPES = [(nodes, ppn) for nodes in (1, 2, 3, 4, 5, 64, 1024) for ppn in (1, 2, 3, 4, 128) if nodes * ppn > 1]


@pytest.mark.parametrize(
    ("library", "version"), [(name, v) for name in ("mpich", "openmpi") for v in known_versions(name)]
)
def test_the_largest_request_of_every_catalogue_is_read(reader: Path, library: str, version: str) -> None:
    """A point of all choices of a collective is larger than those of any shape and size."""
    catalogue = load(library, version)
    levels = ("single", "multiple")
    lines, expected = [], []

    def settings(name: str, choice: Choice) -> Settings:
        # The reader of the tests knows names that begin so; no value is longer than this one.
        return tuple((f"KNOWN_{variable}", -(2**31)) for variable, _ in catalogue.settings(name, choice))

    for number, name in enumerate(catalogue.entries):
        choices = catalogue.choices(name)
        sizes = message_sizes(name, 1, 1 << 26)
        scenarios = [Scenario(name, nodes, ppn, size) for nodes, ppn in SHAPES for size in sizes]
        assert all(set(catalogue.legal(s, level)) <= set(choices) for s in scenarios for level in levels)
        scattered = tuple(range(0, 2048, 2))  # no two beside each other: the longest way to name 1,024 nodes
        point = Point(Scenario(name, 1024, 128, 1 << 26), choices)
        text = PointRequest(number, 0, point, Effort(), scattered, 3600.0).text(
            lambda at, choice: settings(at.collective, choice), 2**31 - 1
        )
        assert len(text) < UNREAD_BYTES / 2
        lines.append(text)
        known = [settings(name, choice) for choice in choices]
        expected.append([",".join(f"{len(n)}:{value}" for n, value in some) + "/" for some in known])
    answers = read(reader, lines)
    assert all(answer.startswith("ok ") for answer in answers), answers
    assert [answer.split(" choice=")[1:] for answer in answers] == expected


def read(reader: Path, lines: Sequence[str]) -> list[str]:
    written = "".join(f"{line}\n" for line in lines)
    run = run_to_end([reader], input=written, env={**os.environ, **SANITIZER_OPTIONS}, check=True)
    said = run.stdout.splitlines()
    assert len(said) == len(lines)
    return said
