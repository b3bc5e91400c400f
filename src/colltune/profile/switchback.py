"""Reads what the live selector measured in an application (native/shim/measure.h): pairs of blocks of calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import InputError

_HEAD = "colltune-measure 1"


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """Times of a block of calls in seconds, means over the ranks.

    ``call_s``: in its timed calls; ``wall_s``: that and what lies between the calls. ``sampled_s``: in its first timed
    calls, and ``least_s`` the same for the rank that was the shortest time in each: the last one to arrive, where the
    collective synchronises.
    """

    call_s: float
    wall_s: float
    sampled_s: float
    least_s: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring blocks of ``calls`` timed calls each, of which ``sampled`` are in ``sampled_s``."""

    calls: int
    sampled: int
    default_first: bool
    by_default: BlockTimes
    tuned: BlockTimes


@dataclass(frozen=True)
class Cell:
    """Calls of one choice and one class of sizes, on communicators of one shape.

    ``choice``: its number in the selector's rules. ``tuned_calls`` and ``default_calls`` are those of all
    ``communicators`` together; ``off``: how many of them have switched the rule off. ``agree_s``: the time that their
    ranks spent to agree.
    """

    collective: str
    choice: int
    size_least: int
    size_most: int
    ranks: int
    nodes: int
    ppn: int
    tuned_calls: int
    default_calls: int
    communicators: int
    off: int
    agree_s: float
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Experiment:
    """What one job measured. ``share``: percent of the blocks that ran by default at first."""

    ranks: int
    nodes: int
    share: int
    elapsed_s: float
    lost_pairs: int
    cells: tuple[Cell, ...]


def read_experiments(files: Iterable[Path]) -> list[Experiment]:
    """One for each job, in the order in which they began, from the files of all its ranks.

    Raises InputError for a file that the library did not write, or that was cut short.
    """
    jobs: dict[int, list[_Part]] = {}
    for path in files:
        part = _read(path)
        jobs.setdefault(int(part.job["id"]), []).append(part)
    return [_joined(parts) for _, parts in sorted(jobs.items())]


@dataclass
class _Part:
    job: dict[str, str]
    cells: list[dict[str, str]]
    pairs: list[dict[str, str]]


def _read(path: Path) -> _Part:
    advice = "Run again with --measure"
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", advice) from error
    if len(lines) < 3 or lines[0] != _HEAD or lines[-1] != "end":
        raise InputError(f"{path} is no measurement of this colltune, or was cut short", advice)
    rows: dict[str, list[dict[str, str]]] = {"job": [], "cell": [], "pair": []}
    try:
        for line in lines[1:-1]:
            word, _, rest = line.partition(" ")
            rows[word].append(dict(item.split("=") for item in rest.split()))
        return _Part(rows["job"][0], rows["cell"], rows["pair"])
    except (IndexError, KeyError, ValueError) as error:
        raise InputError(f"{path} is no measurement of this colltune: {error!r}", advice) from error


def _joined(parts: list[_Part]) -> Experiment:
    """Cells of equal calls on equal communicators are one, whichever rank wrote them."""
    found: dict[tuple[object, ...], list[Cell]] = {}
    for part in parts:
        for row in part.cells:
            cell = _cell(row, [pair for pair in part.pairs if pair["cell"] == row["id"]])
            size_class = cell.size_most.bit_length()
            found.setdefault((cell.collective, cell.choice, size_class, cell.ranks, cell.nodes, cell.ppn), []).append(
                cell
            )
    job = next((part.job for part in parts if part.job["rank"] == "0"), parts[0].job)
    return Experiment(
        ranks=int(job["ranks"]),
        nodes=int(job["nodes"]),
        share=int(job["share"]),
        elapsed_s=int(job["elapsed_ns"]) * 1e-9,
        lost_pairs=sum(int(part.job["lost_pairs"]) for part in parts),
        cells=tuple(_sum(cells) for _, cells in sorted(found.items(), key=lambda item: repr(item[0]))),
    )


def _sum(cells: list[Cell]) -> Cell:
    first = cells[0]
    return Cell(
        first.collective, first.choice, min(one.size_least for one in cells), max(one.size_most for one in cells),
        first.ranks, first.nodes, first.ppn, sum(one.tuned_calls for one in cells),
        sum(one.default_calls for one in cells), sum(one.communicators for one in cells), sum(one.off for one in cells),
        sum(one.agree_s for one in cells), tuple(pair for one in cells for pair in one.pairs),
    )  # fmt: skip


def _cell(row: dict[str, str], pairs: list[dict[str, str]]) -> Cell:
    number = {name: int(text) for name, text in row.items() if name != "function"}
    return Cell(
        row["function"], number["choice"], number["least"], number["most"], number["size"], number["nodes"],
        number["ppn"], number["tuned_calls"], number["default_calls"], number["communicators"], number["off"],
        number["agree_ns"] * 1e-9, tuple(map(_pair, pairs)),
    )  # fmt: skip


def _pair(row: dict[str, str]) -> Pair:
    def block(side: str) -> BlockTimes:
        return BlockTimes(*(int(row[f"{side}_{name}_ns"]) * 1e-9 for name in ("call", "wall", "sampled", "least")))

    first = row["default_first"] == "1"
    return Pair(int(row["calls"]), int(row["sampled"]), first, block("default"), block("tuned"))
