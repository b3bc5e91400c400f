"""What runs of the application measured (`run --measure`): a folder ``history/DATE/`` of the tuning directory for each.

Before the application starts the folder gets a record of what runs; each rank that has heard of pairs appends them to a
file of its own there (native/shim/measure_record.c), at once. So a run that is killed leaves all that it measured, and
one that is still running can be read. Nothing is ever changed or removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.choice import Choice
from colltune.core.errors import ColltuneError, InputError
from colltune.core.sample import Environment
from colltune.core.scenario import COLLECTIVES, SizeBasis
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Experiment
from colltune.machine.files import parse_json, read_file, read_text, write_atomically
from colltune.store.earlier import entries, new_entry
from colltune.store.fields import FieldError, as_object, decode, encode

RUN = "application-run.json"
PARTS = "blocks"
_SCHEMA = 1
_HEAD = "colltune-measure 2"


@dataclass(frozen=True)
class RunRecord:
    """What is known before an application starts.

    ``environment``: the one that was tuned. ``choices``: those of the selector's rules, by their numbers. ``bases``: by
    collective, the sizes that the rules compare. ``share``: percent of the blocks that run by default at first.
    ``candidates``: how many of ``choices``, the last ones, are not proven.
    """

    environment: Environment
    choices: tuple[Choice, ...]
    bases: Mapping[str, SizeBasis]
    share: int
    command: tuple[str, ...] = ()
    candidates: int = 0

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
    def proven_alone(self) -> ApplicationRun:
        """The same without what it says of candidates."""
        jobs = [
            replace(job, cells=tuple(cell for cell in job.cells if not self.record.is_candidate(cell)))
            for job in self.jobs
        ]
        return replace(self, jobs=tuple(jobs))


def begin_run(directory: Path, record: RunRecord, when_s: float) -> Path:
    """Makes the folder of a run; ranks are to write to files there that begin with PARTS. Raises ColltuneError."""
    place = new_entry(directory, when_s)
    written = as_object(encode(record), "record")
    try:
        write_atomically(place / RUN, (json.dumps({"schema": _SCHEMA, **written}, indent=1) + "\n").encode())
    except OSError as error:
        raise ColltuneError(f"cannot write {place / RUN}: {error.strerror}", "Give a writable directory") from error
    return place


def read_run(place: Path) -> ApplicationRun:
    """The run in a folder of the history. Raises InputError for what was not written by this colltune."""
    path = place / RUN
    try:
        written = as_object(parse_json(read_file(path)), "the whole")
        if written.get("schema") != _SCHEMA:
            raise InputError(f"{path} has schema {written.get('schema')}", "Use the colltune that wrote it")
        record = decode(RunRecord, written, "the whole")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "Run the application with --measure") from error
    except (FieldError, ValueError) as error:
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
    return list(_runs(directory, note, since))


def latest_run(directory: Path) -> ApplicationRun | None:
    """The latest run that can be read; the earlier ones are not looked at. None where there is none."""
    return next(_runs(directory, lambda _text: None, ""), None)


def _runs(directory: Path, note: Callable[[str], None], since: str) -> Iterator[ApplicationRun]:
    for place in entries(directory):
        if not (place / RUN).exists() or place.name < since:
            continue
        try:
            yield read_run(place)
        except InputError as error:
            note(f"not used: {error.what}")


def read_experiments(files: Iterable[Path]) -> list[Experiment]:
    """One for each job, in the order in which they began, from the files of all its ranks.

    A last line that was cut off is left out. Raises InputError, with file and line, for what the library did not write.
    """
    jobs: dict[int, list[_Part]] = {}
    for path in files:
        part = _read(path)
        if part is not None:
            jobs.setdefault(part.job.number, []).append(part)
    return [_joined(parts) for _, parts in sorted(jobs.items())]


_Row = dict[str, str]


@dataclass(frozen=True)
class _Job:
    number: int
    rank: int
    ranks: int
    nodes: int
    share: int


@dataclass(frozen=True)
class _End:
    """The last that a file says of the time; of a rank that has not ended, ``lost_pairs`` is not known."""

    elapsed_s: float
    lost_pairs: int = 0


@dataclass
class _Part:
    """What one rank left. ``cells``: by their numbers, as they were last, without their ``pairs``."""

    job: _Job
    cells: dict[int, Cell]
    pairs: dict[int, list[BlockPair]]
    last_pair: _End | None = None
    end: _End | None = None

    def add(self, word: str, row: _Row) -> None:
        """Raises KeyError for what is missing in ``row``, and ValueError for what is no number or out of place."""
        if word == "cell":
            self.cells[_number(row, "id")] = _cell(row)
        elif word == "pair":
            self.pairs.setdefault(_number(row, "cell"), []).append(_pair(row))
            self.last_pair = _End(_number(row, "elapsed_ns") * 1e-9)
        elif word == "end":
            self.end = _End(_number(row, "elapsed_ns") * 1e-9, _number(row, "lost_pairs"))
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
    if len(lines) < 2:
        return None
    part: _Part | None = None
    for number, line in enumerate(lines[1:], 2):
        word, _, rest = line.partition(" ")
        try:
            row = dict(item.split("=") for item in rest.split())
            if part is None:
                part = _Part(_job(word, row), {}, {})
            else:
                part.add(word, row)
        except (KeyError, ValueError) as error:
            why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}:{number}: the line {line[:60]!r} is damaged: {why}", advice) from error
    return part


def _joined(parts: list[_Part]) -> Experiment:
    """Cells of equal calls on equal communicators are one, whichever rank wrote them."""
    found: dict[tuple[object, ...], list[Cell]] = {}
    for part in parts:
        for number, counted in part.cells.items():
            cell = replace(counted, pairs=tuple(part.pairs.get(number, ())))
            size_class = cell.size_most.bit_length()
            found.setdefault((cell.collective, cell.choice, size_class, cell.ranks, cell.nodes, cell.ppn), []).append(
                cell
            )
    first = next((part for part in parts if part.job.rank == 0), parts[0])
    ends = [end for part in parts if (end := part.end or part.last_pair) is not None]
    return Experiment(
        ranks=first.job.ranks,
        nodes=first.job.nodes,
        share=first.job.share,
        elapsed_s=max((end.elapsed_s for end in ends), default=0.0),
        lost_pairs=sum(end.lost_pairs for end in ends),
        cells=tuple(_sum(cells) for _, cells in sorted(found.items(), key=lambda item: repr(item[0]))),
        complete=first.end is not None,
    )


def _sum(cells: list[Cell]) -> Cell:
    first = cells[0]
    return Cell(
        first.collective, first.choice, min(one.size_least for one in cells), max(one.size_most for one in cells),
        first.ranks, first.nodes, first.ppn, sum(one.tuned_calls for one in cells),
        sum(one.default_calls for one in cells), sum(one.communicators for one in cells), sum(one.off for one in cells),
        sum(one.agree_s for one in cells), tuple(pair for one in cells for pair in one.pairs),
    )  # fmt: skip


def _job(word: str, row: _Row) -> _Job:
    if word != "job":
        raise ValueError("the job is not named first")
    return _Job(
        _number(row, "id"), _number(row, "rank"), _number(row, "ranks", 1), _number(row, "nodes", 1),
        _number(row, "share"),
    )  # fmt: skip


def _cell(row: _Row) -> Cell:
    if row["function"] not in COLLECTIVES:
        raise ValueError(f"function is {row['function']!r}, which is no collective")
    return Cell(
        row["function"], _number(row, "choice"), _number(row, "least"), _number(row, "most"), _number(row, "size", 1),
        _number(row, "nodes"), _number(row, "ppn"), _number(row, "tuned_calls"), _number(row, "default_calls"),
        _number(row, "communicators"), _number(row, "off"), _number(row, "agree_ns") * 1e-9, (),
    )  # fmt: skip


def _pair(row: _Row) -> BlockPair:
    def block(side: str) -> BlockTimes:
        return BlockTimes(*(_number(row, f"{side}_{name}_ns") * 1e-9 for name in ("call", "wall", "sampled", "least")))

    first = _number(row, "default_first") == 1
    return BlockPair(_number(row, "calls", 1), _number(row, "sampled", 1), first, block("default"), block("tuned"))


def _number(row: _Row, name: str, least: int = 0) -> int:
    text = row[name]
    if not text.isdecimal() or len(text) > 20 or int(text) < least:
        raise ValueError(f"{name} is {text[:20]!r}, which is no whole number from {least} on")
    return int(text)
