"""The look-up table that native/alltoallv/table.c reads, by ranks, ranks per node, and average block size.

A setting is an algorithm and its parameters. A cell is what the ranks of a call can know of it together: the busiest
rank's average block, and the share of blocks that are not empty, of the rank that has fewest. Many patterns look alike
by these; a rule must fit all of them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import isqrt
from pathlib import Path
from typing import TypeVar

from colltune.core.errors import InputError, on_os_error
from colltune.core.sample import DEFAULT, Choice, Environment, grouped
from colltune.core.space import shapes
from colltune.emit.live_rules import MOST_CHOICES, format_list, format_rules, parse_lines
from colltune.machine.file_formats import described
from colltune.machine.files import read_text, write_atomically

COLLECTIVE = "alltoallv"
# Algorithms that send blocks on for other ranks, and so fewer messages than there are blocks.
FORWARDING = frozenset({"parata", "hieata"})
# So near to 2, the root and the number of ranks every radix is worth a look.
_FINE = 2
# On fewer ranks every call is the library's.
FEWEST_RANKS = 3


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """``radix`` of ParAta and HieAta; ``batch`` in flight (0: no limit); blocks over ``direct_above`` go direct."""

    algorithm: str
    radix: int = 0
    batch: int = 0
    direct_above: int = 0

    def __str__(self) -> str:
        shown = [f"r={self.radix}"] * bool(self.radix) + [f"b={self.batch}"] * bool(self.batch)
        return self.algorithm + (f"({','.join(shown)})" if shown else "")


LIBRARY = Setting("library")


def choice_of(setting: Setting) -> Choice:
    """The same as a Choice; the library's own is the default."""
    if setting == LIBRARY:
        return DEFAULT
    named = (("batch", setting.batch), ("radix", setting.radix), ("direct_above", setting.direct_above))
    return Choice(setting.algorithm, tuple((name, value) for name, value in named if value))


def setting_of(choice: Choice) -> Setting:
    """The inverse."""
    if choice == DEFAULT:
        return LIBRARY
    values = {name: int(value) for name, value in choice.parameters}
    return Setting(choice.algorithm, *(values.get(name, 0) for name in ("radix", "batch", "direct_above")))


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """Of a job: ``nodes`` with ``ppn`` ranks each."""

    nodes: int
    ppn: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    def __str__(self) -> str:
        return f"{self.nodes}x{self.ppn}"


def parts_of(nodes: int, ppn: int) -> list[Shape]:
    """The parts of a job that are tuned, itself included: those of all collectives, if they have the ranks for it."""
    return [Shape(*shape) for shape in shapes(nodes, ppn) if shape[0] * shape[1] >= FEWEST_RANKS]


def radices(ranks: int) -> list[int]:
    """Powers of two up to half of ``ranks``, and the root, near which time over radix often has its minimum."""
    if ranks < 4:
        return [2] if ranks > 2 else []
    values = {isqrt(ranks), 2}
    power = 2
    while power <= max(2, ranks // 2):
        values.add(power)
        power *= 2
    return sorted(radix for radix in values if 2 <= radix < ranks - 1)


def neighbours(setting: Setting, shape: Shape) -> list[Setting]:
    """The settings next to this one, between it and the other ``candidates``: where a search for the best goes on.

    Radices are one apart near 2, near the root of the ranks that forward and near their number, half way to the next
    power of two elsewhere; batches of whole nodes, from 1 to their number, are one apart and half way.
    """
    if setting.algorithm not in FORWARDING:
        return []
    of_nodes = setting.algorithm == "hieata"
    ranks = shape.ppn if of_nodes else shape.ranks
    most = ranks if of_nodes else ranks - 2  # with ranks - 1 nothing is forwarded
    radix, batch = setting.radix, setting.batch
    near = any(abs(radix - mark) <= _FINE for mark in (2, isqrt(ranks), ranks))
    values = {radix * 3 // 4, min(radix * 3 // 2, most)} | ({radix - 1, radix + 1} if near else set())
    moved = [Setting(setting.algorithm, other, batch) for other in sorted(values - {radix}) if 2 <= other <= most]
    if of_nodes:
        others = {batch - 1, batch + 1, batch * 3 // 4, batch * 3 // 2} if batch else {shape.nodes // 2}
        inside = sorted(other for other in others - {batch} if 1 <= other < shape.nodes)
        moved += [Setting(setting.algorithm, radix, other) for other in inside]
    return moved


def candidates(shape: Shape) -> list[Setting]:
    """Every setting that the tuner looks at first, the library's own before all."""
    ranks = shape.ranks
    choices = [LIBRARY]
    choices += [Setting("linear", 0, batch) for batch in (0, 8, 32) if batch < ranks - 1]
    for radix in radices(ranks):
        choices += [Setting("parata", radix, batch) for batch in sorted({0, 1, min(4, radix - 1)})]
    if shape.nodes > 1 and shape.ppn > 1:
        for radix in sorted({2, isqrt(shape.ppn), shape.ppn} - {0, 1}):
            for batch in sorted({0, 1, 4, 16}):
                if batch < shape.nodes - 1:
                    choices.append(Setting("hieata", radix, batch))
    return list(dict.fromkeys(choices))


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
    bounds: dict[Shape, list[tuple[Bounds, Bounds]]] = {}
    for ppn, (low_ppn, high_ppn) in _nearest(sorted(of_ppn)).items():
        for nodes, (low, high) in _nearest([shape.nodes for shape in of_ppn[ppn]]).items():
            bounds[Shape(nodes, ppn)] = [
                ((max(here, (low - 1) * here + 1), high * here), (here, here)) for here in range(low_ppn, high_ppn + 1)
            ]
    return bounds


def _nearest(values: Sequence[int]) -> dict[int, Bounds]:
    """Of ascending ``values``, for each the numbers that are nearer to it than to the others, from the first on.

    None that is over half as many again, or less than two thirds: that is too far to say anything of it.
    """
    middles = [isqrt(low * high) for low, high in pairwise(values)]
    ends = [*(min(middle, low * 3 // 2) for middle, low in zip(middles, values, strict=False)), *values[-1:]]
    starts = [
        *values[:1],
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


_EVEN, _UNEVEN = "constant", ("skewed", "power")
_MOST, _FEWEST = "most", "few"

Key = TypeVar("Key")


def fill_class(share: float) -> int:
    """The class of FILLS of a share of blocks that are not empty, as native/alltoallv/table.h has it."""
    return next(at for at, most in enumerate(FILLS) if share <= most)


def peers_among(peers: str, ranks: int) -> int | None:
    """How many of the other ranks ``peers`` means among ``ranks``, 0 for all of them.

    A number means itself; "most2" and "few2" are the most and the fewest that class 2 of FILLS allows, None where it
    allows no number of so many ranks. Raises ValueError for other text.
    """
    if peers.isdecimal():
        return int(peers)
    kind = _MOST if peers.startswith(_MOST) else _FEWEST
    number = peers.removeprefix(kind)
    if kind + number != peers or not number.isdecimal() or int(number) >= len(FILLS):
        raise ValueError(f"not a number of peers: {peers}")
    low, high = (int(share * (ranks - 1)) for share in (0.0, *FILLS)[int(number) : int(number) + 2])
    if low == high:
        return None
    others = high if kind == _MOST else low + 1
    return 0 if others == ranks - 1 else others


def usual(fill: int) -> tuple[str, str]:
    """The pattern of a class of FILLS that a setting is first proven on: distribution and peers.

    Blocks of one size: of all patterns with the same bytes of the busiest rank it has the most bytes to forward.
    """
    return (_EVEN, "0" if fill == len(FILLS) - 1 else f"{_MOST}{fill}")


def alike(fill: int) -> list[tuple[str, str]]:
    """What looks the same and gains least from forwarding: as few messages as the class allows, few ranks with much."""
    return [(name, f"{_FEWEST}{fill}") for name in (_EVEN, *_UNEVEN)]


def exists(pattern: tuple[str, str], fill: int, ranks: int) -> bool:
    """Whether ``ranks`` can have ``pattern``, and it is not the usual one of its class under another name."""
    peers = peers_among(pattern[1], ranks)
    if peers is None or pattern == usual(fill):
        return peers is not None
    return (pattern[0], peers) != (usual(fill)[0], peers_among(usual(fill)[1], ranks))


def runs(chosen: Mapping[int, Key]) -> list[list[int]]:
    """Neighbouring sizes, each twice the one before, with one setting."""
    neighbours: list[list[int]] = []
    for size in sorted(chosen):
        last: Sequence[int] = neighbours[-1] if neighbours else ()
        if last and size == 2 * last[-1] and chosen[size] == chosen[last[-1]]:
            neighbours[-1].append(size)
        else:
            neighbours.append([size])
    return neighbours
