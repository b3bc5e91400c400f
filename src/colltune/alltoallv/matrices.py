"""Recorded matrices of counts: what an application really exchanges, in place of drawn blocks.

Symbols: P ranks; a matrix is (P, P), the bytes that each rank (row) sends to each (column).

The MPI_Alltoallv calls of a profiled application: which parts of the job, sizes and classes of fill they need.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colltune.alltoallv.lookup_table import COLLECTIVE, FEWEST_RANKS, Shape, fill_class
from colltune.alltoallv.samples import Blocks
from colltune.core.errors import InputError, on_os_error
from colltune.core.sample import Scenario
from colltune.machine.arrays import read_array
from colltune.machine.file_formats import described
from colltune.machine.files import read_file, read_text, write_atomically
from colltune.profile.application_profile import BLOCKING, Calls, Communicator, Profile

_ADVICE = (
    "Give P lines of P numbers, or a .npy of (P, P) integers: the bytes that each rank (row) sends to each (column)"
)
_MOST = 2**31 - 1  # bytes of a rank, sent or received: displacements are int in MPI


@dataclass(frozen=True)
class Matrix:
    """``bytes``: (P, P) of ``path``."""

    path: Path
    bytes: NDArray[np.int64]

    @property
    def ranks(self) -> int:
        return len(self.bytes)

    @property
    def average_bytes(self) -> int:
        """A block of the rank that sends or receives most, its own left out: what the rules go by."""
        others = self.bytes * (1 - np.eye(self.ranks, dtype=np.int64))
        return int(max(others.sum(axis=0).max(), others.sum(axis=1).max())) // (self.ranks - 1)

    @property
    def fill(self) -> int:
        """The class of FILLS, of the rank with the most empty blocks, sent and received together."""
        empty = (self.bytes == 0) & ~np.eye(self.ranks, dtype=bool)
        idle = int((empty.sum(axis=0) + empty.sum(axis=1)).max())
        most = 2 * (self.ranks - 1)
        return fill_class((most - idle) / most)


@dataclass(frozen=True)
class RecordedMatrix:
    """A matrix as it is measured: ``scenario`` names it, and is in the cell of the table of ``plain`` and ``fill``."""

    matrix: Matrix
    scenario: Scenario
    plain: Scenario
    fill: int


def load_matrix(path: Path) -> Matrix:
    """A matrix of bytes from text or .npy. Raises InputError with what is wrong, and where."""
    try:
        matrix = read_array(read_file(path, link=True)) if path.suffix == ".npy" else np.array(_rows(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", _ADVICE) from error
    except (ValueError, OverflowError) as error:
        if not read_file(path, link=True).lstrip()[:1].isdigit():
            raise InputError(f"{described(path)}, and no matrix of counts", _ADVICE) from error
        raise InputError(f"{path} is no matrix of counts: {error}", _ADVICE) from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.issubdtype(matrix.dtype, np.integer):
        shape = " x ".join(map(str, matrix.shape))
        raise InputError(f"{path} holds {shape} values of type {matrix.dtype}, not P x P whole numbers", _ADVICE)
    if (matrix < 0).any():
        row, column = np.argwhere(matrix < 0)[0]
        raise InputError(
            f"{path}: rank {row} sends {matrix[row, column]} bytes to rank {column}; no count is below 0", _ADVICE
        )
    bytes_ = matrix.astype(np.int64)
    if max(bytes_.sum(axis=0).max(initial=0), bytes_.sum(axis=1).max(initial=0)) > _MOST:
        raise InputError(f"{path}: a rank sends or receives over 2 GiB", "Such calls stay with the library")
    return Matrix(path, bytes_)


def _rows(path: Path) -> list[list[int]]:
    rows: list[list[int]] = []
    for number, line in enumerate(read_text(path, link=True).splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            rows.append([int(word) for word in words])
        except ValueError:
            raise ValueError(f"line {number} has more than whole numbers: {line.strip()[:40]!r}") from None
        if len(words) != len(rows[0]):
            raise ValueError(f"line {number} has {len(words)} numbers, and the first has {len(rows[0])}")
    if not rows:
        raise ValueError("it is empty")
    return rows


def load_recorded(paths: Sequence[Path], whole: Shape, sizes: Sequence[int]) -> list[RecordedMatrix]:
    """The matrices of ``paths`` for the job ``whole``, each at the nearest of ``sizes``. Raises InputError."""
    matrices = []
    for number, path in enumerate(paths):
        matrix = load_matrix(path)
        if matrix.ranks != whole.ranks:
            raise InputError(
                f"{path} has {matrix.ranks} x {matrix.ranks} counts, and this job has {whole.ranks} ranks",
                "Record them in a job of this shape, or give --nodes and --ppn",
            )
        average = matrix.average_bytes
        if not (matrix.bytes * (1 - np.eye(matrix.ranks, dtype=np.int64))).any():
            raise InputError(f"{path} has no bytes for another rank, so there is nothing to tune", _ADVICE)
        size = min(sizes, key=lambda size: abs(np.log(size / max(average, 1))))
        if not size * 0.75 <= average < size * 1.5:
            raise InputError(
                f"{path} has blocks of {average} B on average, and {sizes[0]} to {sizes[-1]} B are tuned",
                "Larger ones need a larger --max-size, up to 16KiB",
            )
        plain = Scenario(Blocks().collective, whole.nodes, whole.ppn, size)
        scenario = Scenario(Blocks(f"counts{number}").collective, whole.nodes, whole.ppn, size)
        matrices.append(RecordedMatrix(matrix, scenario, plain, matrix.fill))
    return matrices


def write_matrices(recorded: Sequence[RecordedMatrix], directory: Path) -> list[Path]:
    """The matrices as the measuring program reads them, numbered, in ``directory``. Raises InputError."""
    paths = []
    for number, exchange in enumerate(recorded):
        path = directory / f"alltoallv-counts-{number}.txt"
        lines = "".join(" ".join(map(str, row)) + "\n" for row in exchange.matrix.bytes.tolist())
        with on_os_error(f"cannot write {path}", "Give another place by --out"):
            write_atomically(path, lines.encode("ascii"))
        paths.append(path)
    return paths


_COLLECTIVES = (COLLECTIVE, "alltoallw")
# A profile has each rank's own average block. The rules go by the busiest rank's, sent or received, which is larger.
_BUSIER = 2


@dataclass(frozen=True)
class Called:
    """``parts``: of the job. ``sizes``: average blocks in bytes. ``fills``: classes of FILLS. ``share``: of the run."""

    parts: tuple[Shape, ...]
    sizes: tuple[int, ...]
    fills: tuple[int, ...]
    share: float


def alltoallv_share(profile: Profile) -> float:
    """The share of the run's time over all ranks in calls of MPI_Alltoallv and MPI_Alltoallw that can be tuned."""
    return sum(calls.time_s for calls in _blocking(profile)) / max(profile.core_s, 1e-12)


def called_by(profile: Profile, whole: Shape, sizes: Sequence[int]) -> Called:
    """What ``profile`` calls that the job ``whole`` can form, of the ``sizes`` that are tuned.

    Raises InputError where there is none of it.
    """
    parts, called, densest = set(), set(), 0
    for calls in _blocking(profile):
        where = calls.communicator
        ppn = where.ppn if where.even else max(1, round(where.size / where.nodes))
        if where.nodes > whole.nodes or ppn > whole.ppn or where.nodes * ppn < FEWEST_RANKS:
            continue
        mine = [size for size in sizes if calls.size_least <= size * 1.5 and size * 0.75 <= _BUSIER * calls.size_most]
        if mine:
            parts.add(Shape(where.nodes, ppn))
            called |= set(mine)
            densest = max(densest, fill_class(_share_not_empty(calls)))
    if not parts:
        raise InputError(_nothing(profile, whole, sizes), "Tune without --profile, or profile a run that makes them")
    return Called(tuple(sorted(parts)), tuple(sorted(called)), tuple(range(densest + 1)), alltoallv_share(profile))


def saved_s(profile: Profile, first_call: int, speedup: float) -> float:
    """What a table saves the profiled run at most, in seconds: the calls from the first on, on each communicator."""
    each, called = dict(profile.communicators), defaultdict[Communicator, float](float)
    for calls in _blocking(profile):
        called[calls.communicator] += calls.calls / max(each.get(calls.communicator, 1.0), 1.0)
    left = {where: max(0.0, 1.0 - (first_call - 1) / max(number, 1.0)) for where, number in called.items()}
    tuned_s = sum(calls.time_s * left[calls.communicator] for calls in _blocking(profile))
    return tuned_s / max(profile.reporting, 1) * (1.0 - 1.0 / speedup)


def _blocking(profile: Profile) -> Iterator[Calls]:
    for call in profile.calls:
        tunable = call.collective in _COLLECTIVES and call.form == BLOCKING and call.communicator.has_places
        if tunable and call.communicator.size >= FEWEST_RANKS and not _has_gaps(call):
            yield call


def _has_gaps(calls: Calls) -> bool:
    """Whether most of the calls have data with gaps, which the rules leave to the library."""
    return 2 * calls.gaps > calls.rank_calls


def _share_not_empty(calls: Calls) -> float:
    """Of the blocks for other ranks at most, where each rank's own is empty; no rank has fewer than the mean."""
    if calls.blocks is None or not calls.blocks.count:
        return 1.0
    ranks = calls.communicator.size
    return min(1.0, (1.0 - calls.blocks.sparsity) * ranks / (ranks - 1))


def _nothing(profile: Profile, whole: Shape, sizes: Sequence[int]) -> str:
    calls = [call for call in profile.calls if call.collective in _COLLECTIVES]
    others = [f"{form} calls" for form in sorted({call.form for call in calls} - {BLOCKING})]
    others += ["calls whose data have gaps"] if any(map(_has_gaps, calls)) else []
    besides = f"; its {' and '.join(others)} are the library's" if others else ""
    return (
        f"the profile has no blocking MPI_Alltoallv of {sizes[0]} to {sizes[-1]} B that a job of"
        f" {whole.nodes} x {whole.ppn} can form{besides}"
    )
