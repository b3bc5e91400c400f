"""What runs of the application measured (`run --measure`): a folder ``history/DATE/`` of the tuning directory for each.

Before the application starts the folder gets a record of what runs; each rank that has heard of pairs appends them to a
file of its own there (native/shim/measure_record.c), at once. So a run that is killed leaves all that it measured, and
one that is still running can be read. Nothing is ever changed or removed.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.sample import COLLECTIVES, Choice, Environment, SizeBasis, format_choice, grouped
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Experiment
from colltune.machine.files import fitted, parse_json, read_file, read_text, write_atomically
from colltune.mpi.application import UNKNOWN, Application
from colltune.store.earlier import entries, new_entry
from colltune.store.records import Count
from colltune.store.summary_json import read_choice

RUN = "application-run.json"
PARTS = "blocks"
_SCHEMA = 1
_HEAD = "colltune-measure 2"


@dataclass(frozen=True)
class RunRecord:
    """What is known before an application starts.

    ``environment``: the one that was tuned. ``choices``: those of the selector's rules, by their numbers. ``bases``: by
    collective, the sizes that the rules compare. ``share``: percent of the blocks that run by default at first.
    ``candidates``: how many of ``choices``, the last ones, are not proven. ``checked``: where `tune --check` compared
    whole runs, why the rules of each collective are withdrawn, "" where they stay; such a record has no jobs.
    """

    environment: Environment
    choices: tuple[Choice, ...]
    bases: Mapping[str, SizeBasis]
    share: int
    application: Application = UNKNOWN
    candidates: int = 0
    checked: Mapping[str, str] = field(default_factory=dict)

    def is_candidate(self, cell: Cell) -> bool:
        """Whether the choice of ``cell`` is not proven."""
        return cell.choice >= len(self.choices) - self.candidates


@dataclass(frozen=True)
class ApplicationRun:
    """A run of the application, whose command may have started several MPI jobs."""

    place: Path
    record: RunRecord
    jobs: tuple[Experiment, ...]

    @property
    def date(self) -> str:
        return self.place.name

    @property
    def proven_alone(self) -> "ApplicationRun":
        """The same without what it says of candidates."""
        jobs = [
            replace(job, cells=tuple(cell for cell in job.cells if not self.record.is_candidate(cell)))
            for job in self.jobs
        ]
        return replace(self, jobs=tuple(jobs))


class _WrittenRun(msgspec.Struct):
    """``RunRecord`` as its file holds it."""

    schema: int
    environment: Environment
    choices: tuple[str, ...]
    bases: dict[str, SizeBasis]
    share: int
    command: tuple[str, ...] = ()
    candidates: Count = 0
    program: tuple[str, str] = ("", "")
    checked: dict[str, str] = {}

    def read(self) -> RunRecord:
        choices, application = tuple(map(read_choice, self.choices)), Application(self.command, *self.program)
        return RunRecord(self.environment, choices, self.bases, self.share, application, self.candidates, self.checked)


def begin_run(directory: Path, record: RunRecord, when_s: float) -> Path:
    """Makes the folder of a run; ranks are to write to files there that begin with PARTS. Raises ColltuneError."""
    choices, bases, checked = tuple(map(format_choice, record.choices)), dict(record.bases), dict(record.checked)
    ran = record.application
    known = (bases, record.share, ran.command, record.candidates, (ran.name, ran.digest), checked)
    held = _WrittenRun(_SCHEMA, record.environment, choices, *known)
    place = new_entry(directory, when_s)
    with on_os_error(f"cannot write {place / RUN}", "Give a writable directory", ColltuneError):
        write_atomically(place / RUN, (json.dumps(msgspec.to_builtins(held), indent=1) + "\n").encode())
    return place


def read_run(place: Path) -> ApplicationRun:
    """The run in a folder of the history. Raises InputError for what was not written by this colltune."""
    path = place / RUN
    try:
        written = fitted(parse_json(read_file(path)), _WrittenRun)
        if written.schema != _SCHEMA:
            raise InputError(f"{path} has schema {written.schema}", "Use the colltune that wrote it")
        record = written.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "Run the application with --measure") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}", f"Remove {place} if it is damaged") from error
    jobs = tuple(read_experiments(sorted(place.glob(f"{PARTS}.*"))))
    if any(cell.choice >= len(record.choices) for job in jobs for cell in job.cells):
        raise InputError(f"{place} has calls of a choice that {RUN} does not name", f"Remove {place} if it is damaged")
    return ApplicationRun(place, record, jobs)


def application_runs(
    directory: Path, note: Callable[[str], None] = lambda _text: None, *, since: str = ""
) -> list[ApplicationRun]:
    """The runs of the application that ``directory`` holds, the latest first; ``note`` hears of those that are damaged.

    ``since``: only those of this date and later, as the folders are named.
    """
    runs = []
    for place in entries(directory):
        if not (place / RUN).exists() or place.name < since:
            continue
        try:
            runs.append(read_run(place))
        except InputError as error:
            note(f"not used: {error.what}")
    return runs


def read_experiments(files: Iterable[Path]) -> list[Experiment]:
    """One for each job, in the order in which they began, from the files of all its ranks.

    A last line that was cut off is left out. Raises InputError, with file and line, for what the library did not write.
    """
    jobs = grouped((part for part in map(_read, files) if part is not None), lambda part: part.job.id)
    return [_joined(parts) for _, parts in sorted(jobs.items())]


_Positive = Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]


class _JobLine(msgspec.Struct):
    id: Count
    rank: Count
    ranks: _Positive
    nodes: _Positive
    share: Count


class _CellLine(msgspec.Struct):
    """The first fields are those of ``Cell``, in their order."""

    function: str
    choice: Count
    least: Count
    most: Count
    size: _Positive
    nodes: Count
    ppn: Count
    tuned_calls: Count
    default_calls: Count
    communicators: Count
    off: Count
    agree_ns: Count
    id: Count

    def __post_init__(self) -> None:
        if self.function not in COLLECTIVES:
            raise ValueError(f"function is {self.function!r}, which is no collective")

    def read(self) -> Cell:
        *known, agree_ns, _id = msgspec.structs.astuple(self)
        return Cell(*(*known, agree_ns * 1e-9, ()))


class _PairLine(msgspec.Struct):
    cell: Count
    calls: _Positive
    default_first: Count
    default_call_ns: Count
    default_wall_ns: Count
    tuned_call_ns: Count
    tuned_wall_ns: Count
    elapsed_ns: Count

    def read(self) -> BlockPair:
        default = BlockTimes(self.default_call_ns * 1e-9, self.default_wall_ns * 1e-9)
        tuned = BlockTimes(self.tuned_call_ns * 1e-9, self.tuned_wall_ns * 1e-9)
        return BlockPair(self.calls, self.default_first == 1, default, tuned)


class _EndLine(msgspec.Struct):
    elapsed_ns: Count


@dataclass
class _Part:
    """What one rank left. ``cells``: by their numbers, as they were last, without their ``pairs``."""

    job: _JobLine
    cells: dict[int, Cell] = field(default_factory=dict)
    pairs: dict[int, list[BlockPair]] = field(default_factory=dict)
    elapsed_ns: int = 0
    ended: bool = False

    def add(self, word: str, row: dict[str, str]) -> None:
        """Raises ValueError for what is missing in ``row``, no number or out of place."""
        if word == "cell":
            cell = fitted(row, _CellLine, strict=False)
            self.cells[cell.id] = cell.read()
        elif word == "pair":
            pair = fitted(row, _PairLine, strict=False)
            self.pairs.setdefault(pair.cell, []).append(pair.read())
            self.elapsed_ns = pair.elapsed_ns
        elif word == "end":
            end = fitted(row, _EndLine, strict=False)
            self.elapsed_ns, self.ended = end.elapsed_ns, True
        else:
            raise ValueError(f"{word!r} is none of cell, pair and end")


def _read(path: Path) -> _Part | None:
    """None for a file in which not even the first lines are complete."""
    advice = f"Remove {path} if it is damaged"
    try:
        lines = read_text(path).split("\n")[:-1]  # what has no end of line was cut off
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", advice) from error
    if lines and lines[0] != _HEAD:
        raise InputError(f"{path} is no measurement of this colltune", advice)
    part: _Part | None = None
    for number, line in enumerate(lines[1:], 2):
        word, _, rest = line.partition(" ")
        try:
            row = dict(item.split("=") for item in rest.split())
            if part is not None:
                part.add(word, row)
            elif word == "job":
                part = _Part(fitted(row, _JobLine, strict=False))
            else:
                raise ValueError("the job is not named first")
        except ValueError as error:
            raise InputError(f"{path}:{number}: the line {line[:60]!r} is damaged: {error}", advice) from error
    return part


def _joined(parts: list[_Part]) -> Experiment:
    """Cells of equal calls on equal communicators are one, whichever rank wrote them."""
    counted = ((part, number, cell) for part in parts for number, cell in part.cells.items())
    cells = (replace(cell, pairs=tuple(part.pairs.get(number, ()))) for part, number, cell in counted)
    kinds = grouped(cells, lambda c: (c.collective, c.choice, c.size_most.bit_length(), c.ranks, c.nodes, c.ppn))
    first = next((part for part in parts if part.job.rank == 0), parts[0])
    return Experiment(
        ranks=first.job.ranks,
        nodes=first.job.nodes,
        share=first.job.share,
        elapsed_s=max(part.elapsed_ns for part in parts) * 1e-9,
        cells=tuple(_sum(some) for _, some in sorted(kinds.items(), key=lambda item: repr(item[0]))),
        complete=first.ended,
    )


def _sum(cells: list[Cell]) -> Cell:
    first = cells[0]
    return Cell(
        first.collective, first.choice, min(cell.size_least for cell in cells), max(cell.size_most for cell in cells),
        first.ranks, first.nodes, first.ppn, sum(cell.tuned_calls for cell in cells),
        sum(cell.default_calls for cell in cells), sum(cell.communicators for cell in cells),
        sum(cell.off for cell in cells), sum(cell.agree_s for cell in cells),
        tuple(pair for cell in cells for pair in cell.pairs),
    )  # fmt: skip
