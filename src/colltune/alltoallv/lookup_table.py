"""The look-up table that native/alltoallv/table.c reads, by ranks, ranks per node, and average block size."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import isqrt
from pathlib import Path

from colltune.alltoallv.setting import COLLECTIVE, LIBRARY, Setting, Shape
from colltune.core.errors import InputError, on_os_error
from colltune.core.grouping import grouped
from colltune.core.sample import Environment
from colltune.emit.rule_text import MOST_CHOICES, format_list, format_rules, parse_lines
from colltune.machine.file_formats import described
from colltune.machine.files import read_text, write_atomically

FIRST_CALL = 2
Bounds = tuple[int, int]  # from and to, both included
TABLE = "alltoallv.rules"
_BASIS = "average"
_MAKE = "Make one here by: colltune tune alltoallv --out tuned/"
_NO_BOUND = (1 << 63) - 1
# Classes of the share of blocks that are not empty, of the rank with the fewest: each up to this, the last to all.
FILLS = (1 / 16, 1 / 4, 1 / 2, 3 / 4, 1.0)
DENSE = (len(FILLS) - 1,)


@dataclass(frozen=True, slots=True)
class AlltoallvRule:
    """``setting`` where the busiest rank sends ``low`` to ``high`` bytes a block on average, and ``fill`` is as named.

    A rank's block for itself counts in neither.
    """

    low: int
    high: int
    setting: Setting
    fill: tuple[int, ...] = DENSE


@dataclass(frozen=True, slots=True)
class TableEntry:
    """Rules for jobs of ``ranks`` with ``ppn`` on the fullest node, both from low to high.

    Calls on a communicator before the ``first_call``-th, counted from 1, are the library's: what is set up for the
    algorithms then should be little beside them.
    """

    ranks: tuple[int, int]
    ppn: tuple[int, int]
    rules: tuple[AlltoallvRule, ...]
    first_call: int = FIRST_CALL


def around(size_bytes: int) -> tuple[int, int]:
    """Averages nearer to ``size_bytes``, a power of two, than to its neighbours; bounds of the library's classes."""
    return size_bytes * 3 // 4, max(size_bytes, size_bytes * 3 // 2 - 1)


def places(shapes: Iterable[Shape]) -> dict[Shape, list[tuple[Bounds, Bounds]]]:
    """Where each of ``shapes`` is the nearest one: bounds of ranks and of ranks on the fullest node.

    The ranks per node decide first, then the nodes, both by their ratio. There is nothing beyond the largest of either,
    and nothing that is far from all.
    Ranks that are not alike on all nodes count as if every node were as full as the fullest.
    """
    of_ppn = grouped(sorted(shapes), lambda shape: shape.ppn)
    found: dict[Shape, list[tuple[Bounds, Bounds]]] = {}
    for ppn, (low_ppn, high_ppn) in _nearest(sorted(of_ppn)).items():
        for nodes, (low, high) in _nearest([shape.nodes for shape in of_ppn[ppn]]).items():
            found[Shape(nodes, ppn)] = [
                ((max(here, (low - 1) * here + 1), high * here), (here, here)) for here in range(low_ppn, high_ppn + 1)
            ]
    return found


def _nearest(values: Sequence[int]) -> dict[int, Bounds]:
    """Of ascending ``values``, for each the numbers that are nearer to it than to the others, from the first on.

    None that is over half as many again, or less than two thirds: that is too far to say anything of it.
    """
    middles = [isqrt(low * high) for low, high in pairwise(values)]
    ends = [*(min(middle, low * 3 // 2) for middle, low in zip(middles, values, strict=False)), values[-1]]
    starts = [
        values[0],
        *(max(middle + 1, -(-2 * high // 3)) for middle, high in zip(middles, values[1:], strict=True)),
    ]
    return dict(zip(values, zip(starts, ends, strict=True), strict=True))


# Of an Environment: what a table is bound to, and how a message names it. Its jobs are in its entries.
BOUND_TO = {"mpi": "MPI", "mpi_version": "version", "mpi_build": "build", "machine": "machine", "fabric": "fabric"}
_MADE = "# made: "


def save_table(path: Path, entries: Iterable[TableEntry], made: Mapping[str, object]) -> None:
    """Writes ``entries``; ``made`` says where (see ``BOUND_TO``) and from what.

    Raises InputError where that cannot be done.
    """
    numbers: dict[Setting, int] = {}
    rules = [line for entry in entries for line in _entry_lines(entry, numbers)]
    if len(numbers) > MOST_CHOICES:
        raise InputError(f"{len(numbers)} settings are more than a table takes", "Keep the entries of fewer jobs")
    choices = [
        f"choice {number} - {format_list([f'{name}={value}' for name, value in asdict(setting).items()])}"
        for setting, number in numbers.items()
    ]
    with on_os_error(f"cannot write {path}", "Give another place by --out"):
        write_atomically(path, format_rules([f"{_MADE}{json.dumps(dict(made))}", *choices, *rules]))


def _entry_lines(entry: TableEntry, numbers: dict[Setting, int]) -> Iterator[str]:
    """The last line makes an entry complete: for its jobs, no later one is asked."""
    shape = f"{_format_range(entry.ppn)} {_format_range(entry.ranks)}"
    yield f"rules {COLLECTIVE} {_BASIS} {entry.first_call}"
    for rule in entry.rules:
        number = "-" if rule.setting == LIBRARY else str(numbers.setdefault(rule.setting, len(numbers)))
        yield f"rule {shape} {_format_range((rule.low, rule.high))} {number} {','.join(map(str, rule.fill))}"
    yield f"rule {shape} - -"


def _require_made_here(path: Path, text: str, here: Environment) -> None:
    """Raises InputError where the table says that it is of another MPI or machine; one made by hand may say nothing."""
    try:
        lines = text.splitlines()
        made = json.loads(next((line for line in lines if line.startswith(_MADE)), "{}").removeprefix(_MADE))
        if not isinstance(made, dict):
            raise TypeError("an object is expected")
        differing = [
            f"{word} {made[name]!s:.40}, here {getattr(here, name)!s:.40}"
            for name, word in BOUND_TO.items()
            if name in made and made[name] != getattr(here, name)
        ]
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path} does not say where it was made: {error}", _MAKE) from error
    if differing:
        raise InputError(f"{path} was made elsewhere: {'; '.join(differing)}", _MAKE)


def load_table(path: Path, here: Environment | None = None) -> list[TableEntry]:
    """The entries of a table, which was made ``here`` if it says where. Raises InputError with what is wrong."""
    try:
        text = read_text(path, link=True)
    except OSError as error:
        raise InputError(f"cannot read the look-up table {path}: {error.strerror}", _MAKE) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{described(path)}, and no look-up table", _MAKE) from error
    if here is not None:
        _require_made_here(path, text, here)
    try:
        return _parse(text)
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a look-up table of this colltune: {error}", _MAKE) from error


def _parse(text: str) -> list[TableEntry]:
    settings: list[Setting] = []
    entries: list[TableEntry] = []
    for kind, words, _ in parse_lines(text):
        if kind == "choice":
            values = dict(pair.split("=") for pair in words[2].split(","))
            settings.append(Setting(values.pop("algorithm"), **{name: int(value) for name, value in values.items()}))
        elif kind == "rules" and words[:2] == [COLLECTIVE, _BASIS]:
            entries.append(TableEntry((0, 0), (0, 0), (), int(words[2]) if len(words) > 2 else FIRST_CALL))
        elif kind == "rule":
            ppn, ranks, size = map(_parse_range, words[:3])
            entry = entries[-1]
            if entry.rules and (entry.ranks, entry.ppn) != (ranks, ppn):
                raise ValueError("two shapes of job under one line of rules")
            setting = LIBRARY if words[3] == "-" else settings[int(words[3])]
            fill = tuple(map(int, words[4].split(","))) if len(words) > 4 else tuple(range(len(FILLS)))
            rules = entry.rules if words[2:] == ["-", "-"] else (*entry.rules, AlltoallvRule(*size, setting, fill))
            entries[-1] = replace(entry, ranks=ranks, ppn=ppn, rules=rules)
        else:
            raise ValueError(f"{' '.join([kind, *words])!r} says nothing of {COLLECTIVE}")
    return entries


def _format_range(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]}..{bounds[1]}"


def _parse_range(text: str) -> tuple[int, int]:
    if text == "-":
        return 0, _NO_BOUND
    low, _, high = text.rpartition("..")
    return int(low or 0), int(high)
