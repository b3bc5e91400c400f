"""Times from what the OSU Micro-Benchmarks, the Intel MPI Benchmarks and ReproMPI print.

Formats: OSU 5 to 7 (``# OSU MPI Allreduce Latency Test v7.5``), IMB-MPI1 to 2021 (``# Benchmarking Allreduce``),
ReproMPI with and without --summary (``#@nprocs=4``). None says on which nodes it ran, so a line before a run may:
``# nodes=4 ppn=2``, and with it ``algorithm=ring``. What cannot be told for sure is left out: rows of other programs
between or behind those of a table, and a last row that was cut off.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median

from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES, Scenario
from colltune.machine.file_formats import BENCHMARK_HEAD, log_text
from colltune.machine.files import MIB, MOST_BYTES

_OSU = re.compile(r"MPI (.+?) Latency Test")
_ROW = re.compile(r"^[ \t]*[^\s#].*$", re.MULTILINE)
_IMB_COLUMNS = re.compile(r"^\s*#(.*t_max\[usec\].*)$", re.MULTILINE)
_RANKS = re.compile(r"#processes = (\d{1,9})|#@nprocs=(\d{1,9})")
_EXTENT = re.compile(r"#@datatype_extent_bytes=(\d{1,9})")
_SIZES, _TIMES = ("size", "bytes", "count"), ("time", "t_max[usec]", "runtime_sec", "median_sec")
_NAMES = {"broadcast": "bcast", "all-to-all personalized exchange": "alltoall"}
_MOST = 2**62


@dataclass(frozen=True)
class BenchmarkOutput:
    """``program``: OSU, IMB or ReproMPI. ``times_s``: by call and algorithm (empty: the library's own), one each run.

    OSU: the mean over ranks and repetitions; IMB: the mean over repetitions of the slowest rank; ReproMPI: the median.
    """

    program: str
    times_s: Mapping[tuple[Scenario, str], Sequence[float]]


def parse_output(data: bytes, path: Path, shape: tuple[int, int] | None = None) -> BenchmarkOutput:
    """``shape``: nodes and ranks per node of runs before which no line says them. Raises InputError."""
    if len(data) > MOST_BYTES:
        raise InputError(f"{path} is larger than {MOST_BYTES // MIB} MiB", "Give the output of fewer runs")
    try:
        text, algorithm, programs, others = log_text(data), "", set[str](), set[int]()
    except ValueError as error:
        raise InputError(f"{path}: {error}", "Give the whole file") from None
    times_s: defaultdict[tuple[Scenario, str], list[float]] = defaultdict(list)
    heads, before = list(BENCHMARK_HEAD.finditer(text)), 0
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=False):
        if head["nodes"]:
            shape, algorithm, before = (int(head["nodes"]), int(head["ppn"])), head["algorithm"] or "", head.end()
            continue
        above = text[before : head.start()]
        ranks = _last(_RANKS, above if head["ReproMPI"] else text[head.end() : end])
        table = _table(text, head, end, _last(_EXTENT, above) or 1, path)
        before = head.end()
        if not table:
            continue
        if shape is None:
            raise InputError(
                f"{path} does not say on which nodes it was measured",
                "Write a line such as '# nodes=4 ppn=2' before each run, or for `compare` give --nodes and --ppn",
            )
        if min(shape) > 0 and ranks in (None, shape[0] * shape[1]):
            for (name, size_bytes), values_s in table.items():
                times_s[Scenario(name, *shape, size_bytes), algorithm].append(median(values_s))
            programs.add(str(head.lastgroup))
        elif ranks:
            others.add(ranks)
    if len(programs) > 1:
        raise InputError(f"{path} holds output of {' and '.join(sorted(programs))}", "Give a file for each")
    if not times_s:
        other = f", with ranks for {shape[0]} x {shape[1]}" if shape else ""
        tests = list(dict.fromkeys(head[0].strip("# ")[:60] for head in heads if not head["nodes"]))[:3]
        raise InputError(
            f"{path} holds no times of a collective that blocks{other}",
            f"Its runs have {', '.join(map(str, sorted(others)))} ranks: give their nodes and ranks per node"
            if others
            else f"It holds: {'; '.join(tests)}"
            if tests
            else "Give the whole output",
        )
    return BenchmarkOutput(programs.pop(), dict(times_s))


def _table(text: str, head: re.Match[str], end: int, extent: int, path: Path) -> dict[tuple[str, int], list[float]]:
    """Seconds by collective and bytes in the rows behind ``head``; other lines are what programs beside it said."""
    program, times = str(head.lastgroup), defaultdict[tuple[str, int], list[float]](list)
    match = _OSU.match(head["OSU"] or "")
    name = match[1].lower() if match else (head["IMB"] or "").lower()
    name = _NAMES.get(name, name)
    columns = ["time"] if name == "barrier" else ["size", "time"]
    if program == "ReproMPI":
        columns = head["ReproMPI"].split()
    elif program == "IMB":
        columns = line[1].split() if (line := _IMB_COLUMNS.search(text, head.end(), end)) else []
    width, last = len(columns) if program == "ReproMPI" else 0, (-1, "")  # the size and the time of the row before
    for row in _ROW.finditer(text, head.end(), end):
        words = row[0].split()
        named = dict(zip(columns, words, strict=False))
        called = named.get("test", f"mpi_{name}").lower().removeprefix("mpi_")
        if called not in COLLECTIVES or (program != "OSU" and called.startswith("reduce_scatter")):
            continue  # of the latter it is not certain whether a size is that of a rank or of all
        size, time = ("".join(named[column] for column in some if column in named) for some in (_SIZES, _TIMES))
        try:
            size_bytes = 0 if called == "barrier" else int(size) * (extent if program == "ReproMPI" else 1)
            time_s = float(time) * (1.0 if program == "ReproMPI" else 1e-6)
        except ValueError:
            continue
        cut_off = row.end() == len(text) and last[1] and len(time.partition(".")[2]) < len(last[1].partition(".")[2])
        if cut_off or len(words) != (width or len(words)) or (program != "ReproMPI" and size_bytes <= last[0]):
            continue
        width, last = len(words), (size_bytes, time)
        if not (isfinite(time_s) and time_s > 0.0 and 0 <= size_bytes < _MOST):
            number = text.count("\n", 0, row.start()) + 1
            raise InputError(f"{path}, line {number}: {size} B in {time} is no measurement", "Remove the line")
        if size_bytes or called == "barrier":
            times[called, size_bytes].append(time_s)
    return times


def _last(pattern: re.Pattern[str], text: str) -> int | None:
    matches = list(pattern.finditer(text))
    return int(next(filter(None, matches[-1].groups()))) if matches else None
