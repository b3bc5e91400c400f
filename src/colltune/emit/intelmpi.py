"""Rules to a table that Intel MPI reads: its own, with the presets of the rules in the place of what it would choose.

The library writes the table that it uses where I_MPI_TUNING_BIN_DUMP says, and reads another one from the file that
I_MPI_TUNING_BIN names. It is a tree, compressed by zlib: the layer of compositions, those inside of a group, of nodes
with several ranks; the collective; upper bounds of ranks per node, of ranks, and of bytes; and the composition with its
algorithms. What a number of I_MPI_ADJUST_X stands for is such a leaf too: the library writes it under that variable.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from struct import Struct, error
from typing import Any

from colltune.catalog import Catalogue
from colltune.core.decision_table import DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, Choice
from colltune.machine.files import MOST_BYTES
from colltune.mpi.installation import Library
from colltune.mpi.libraries import record_of

VARIABLE = "I_MPI_TUNING_BIN"
DUMP = f"{VARIABLE}_DUMP"
FILE = record_of(Library.INTELMPI).files[VARIABLE]
# Offset of the parent; kinds of the layer and of the one inside; key; room for children, and how many; a mark.
_HEAD = Struct("<qiiqiiI4x")
_BRANCH, _LEAF = 0xEEEEEEEE, 0xCCCCCCCC
_LAYERS = 16  # more than there are
_STEP_BYTES = 20  # of each algorithm of a leaf
# The kinds of layers, and of them what holds rules: the compositions of groups of several nodes, or of one.
_PPN, _RANKS, _COMMUNICATOR, _SIZE, _ALGORITHM = 5, 6, 9, 7, 8
_PLACE = (1, 0, 1)
_ANY, _LAST = -1, 2**31 - 1
# Of a collective, from the outside: the kind of each layer, and of the one inside, of which some have a single child.
_Layers = Sequence[tuple[int, int]]
_COLLECTIVE: _Layers = ((4, _PPN), (_PPN, _RANKS), (_RANKS, _COMMUNICATOR), (_COMMUNICATOR, _SIZE), (_SIZE, _ALGORITHM))
_SINGLE = (_COMMUNICATOR, _ALGORITHM)


@dataclass(frozen=True)
class TableLeaf:
    """What runs: a composition, and its algorithms. ``content``: as in the file."""

    steps: int
    content: bytes


@dataclass(frozen=True)
class TableBranch:
    """A layer of the tree at one key of the layer above."""

    kind: int
    inside: int
    key: int
    children: "tuple[TableBranch | TableLeaf, ...]"


BySize = Steps[TableLeaf]
Table = Steps[Steps[BySize]]  # by ranks per node, then by ranks


def read_table(data: bytes) -> TableBranch:
    """The tree in the content of a file. Raises InputError for what is none."""
    try:
        unpacked = zlib.decompressobj().decompress(data, MOST_BYTES)
        tree = _read(unpacked, 0, _LAYERS, [len(unpacked) // _HEAD.size])
        if not isinstance(tree, TableBranch):
            raise ValueError("it has no branch")
    except (zlib.error, error, ValueError) as fault:
        raise InputError(f"this is no table of Intel MPI: {fault}", "Tune again") from None
    return tree


def _read(data: bytes, offset: int, layers: int, left: list[int]) -> TableBranch | TableLeaf:
    """``layers``: how many may stand inside of one another from here; ``left``: how many nodes may still come."""
    left[0] -= 1
    _, kind, inside, key, room, count, mark = _HEAD.unpack_from(data, offset)
    if not layers or left[0] < 0 or not 0 <= count <= room or mark not in (_BRANCH, _LEAF):
        raise ValueError(f"byte {offset} begins no node")
    begin = offset + _HEAD.size
    if mark == _LEAF:
        content = data[begin : begin + _STEP_BYTES * count]
        if len(content) < _STEP_BYTES * count:
            raise ValueError(f"byte {offset} begins a leaf that is cut short")
        return TableLeaf(count, content)
    children = Struct(f"<{count}q").unpack_from(data, begin)
    if any(child < 0 for child in children):
        raise ValueError(f"byte {offset} begins a node with a child before the file")
    return TableBranch(kind, inside, key, tuple(_read(data, child, layers - 1, left) for child in children))


def write_table(tree: TableBranch) -> bytes:
    """The content of a file with ``tree``."""
    data = bytearray()
    _write(tree, -1, data)
    return zlib.compress(bytes(data))


def _write(node: TableBranch | TableLeaf, parent: int, data: bytearray) -> int:
    offset = len(data)
    if isinstance(node, TableLeaf):
        data += _HEAD.pack(parent, _ALGORITHM, 0, 0, node.steps, node.steps, _LEAF) + node.content
        return offset
    count = len(node.children)
    data += _HEAD.pack(parent, node.kind, node.inside, node.key, count, count, _BRANCH) + bytes(8 * count)
    places = [_write(child, offset, data) for child in node.children]
    Struct(f"<{count}q").pack_into(data, offset + _HEAD.size, *places)
    return offset


def collectives_in(tree: TableBranch) -> dict[int, TableBranch]:
    """By their numbers, the collectives whose groups of ranks the library composes."""
    for key in _PLACE:
        tree = _child(tree, key)
    return {child.key: child for child in tree.children if isinstance(child, TableBranch)}


def _child(tree: TableBranch, key: int) -> TableBranch:
    same = next((child for child in tree.children if isinstance(child, TableBranch) and child.key == key), None)
    if same is None:
        raise InputError("this table of Intel MPI has no compositions", "Tune another release of it")
    return same


def _with_collectives(tree: TableBranch, place: Sequence[int], new: Mapping[int, TableBranch]) -> TableBranch:
    if not place:
        return replace(tree, children=tuple(new.get(getattr(child, "key", _ANY), child) for child in tree.children))
    inside = _with_collectives(_child(tree, place[0]), place[1:], new)
    return replace(tree, children=tuple(inside if node == _child(tree, place[0]) else node for node in tree.children))


def steps_of(branch: TableBranch | TableLeaf, layers: _Layers = _COLLECTIVE) -> Any:
    """By ranks per node, ranks and bytes, what runs in a collective: a Table.

    Raises InputError for a table that asks for more than these.
    """
    if isinstance(branch, TableLeaf):
        known = not layers
    else:
        known = bool(layers and branch.children) and branch.inside == layers[0][1]
    if not known:
        raise InputError("a table of Intel MPI has layers that are not known", "Tune another release of it")
    if isinstance(branch, TableLeaf):
        return branch
    inside = [(getattr(child, "key", _ANY), steps_of(child, layers[1:])) for child in branch.children]
    if branch.inside not in _SINGLE:
        return Steps.of([*inside[:-1], (None, inside[-1][1])])
    if len(inside) > 1:
        raise InputError("a table of Intel MPI tells communicators apart", "Tune another release of it")
    return inside[0][1]


def branch_of(key: int, table: Any, layers: _Layers = _COLLECTIVE) -> TableBranch:
    """The inverse of ``steps_of``, for the collective with the number ``key``."""
    (kind, inside), *deeper = layers
    if inside in _SINGLE:
        return TableBranch(kind, inside, key, (branch_of(_ANY, table, deeper) if deeper else table,))
    last = _ANY if len(table.pairs) == 1 else _LAST
    inner = (branch_of(last if bound is None else bound, steps, deeper) for bound, steps in table.pairs)
    return TableBranch(kind, inside, key, tuple(inner))


@dataclass(frozen=True)
class Presets:
    """What the library of a job has: its own table ``tree``, and what its presets stand for.

    ``numbers``: of the collectives, in the table; ``leaves``: of each collective, by the number of the preset.
    """

    tree: TableBranch
    numbers: Mapping[str, int]
    leaves: Mapping[str, Mapping[int, TableLeaf]]

    @classmethod
    def of(cls, own: bytes, named: bytes, bounds: Mapping[str, Mapping[int, int]]) -> "Presets":
        """From two tables that the library wrote; ``bounds``: of each collective, the preset up to a size."""
        tree, numbers, leaves = read_table(own), {}, {}
        for number, collective in collectives_in(read_table(named)).items():
            by_bound = dict(_leaves(collective))
            for name, presets in bounds.items():
                # A bound of the library's own table may be one of these too, but not most of them.
                if len(presets.keys() & by_bound.keys()) > len(presets) // 2:
                    numbers[name] = number
                    leaves[name] = {preset: by_bound[bound] for bound, preset in presets.items() if bound in by_bound}
        return cls(tree, numbers, leaves)


def asked(catalogue: Catalogue) -> tuple[dict[str, str], dict[str, dict[int, int]]]:
    """Variables under which the library's table has every preset of ``catalogue``, each up to a size of its own."""
    variables, bounds = {}, {}
    for place, entry in enumerate(catalogue.entries.values(), start=1):
        numbers = [preset.number for preset in entry.algorithms if preset.candidate and preset.number is not None]
        bounds[entry.name] = {1000 * place + at: number for at, number in enumerate(numbers, start=1)}
        ranges = ";".join(f"{number}:{bound}-{bound}" for bound, number in bounds[entry.name].items())
        if ranges:
            variables[f"{catalogue.prefix}{entry.name.upper()}"] = ranges
    return variables, bounds


def _leaves(branch: TableBranch) -> Iterator[tuple[int, TableLeaf]]:
    for child in branch.children:
        if isinstance(child, TableBranch):
            yield from _leaves(child)
        elif branch.kind == _SIZE:
            yield branch.key, child


class IntelMpiEmitter:
    """``presets``: of the library that will read the file."""

    name = "intelmpi"

    def __init__(self, catalogue: Catalogue, presets: Presets) -> None:
        self._catalogue, self._presets = catalogue, presets

    def has(self, collective: str, choice: Choice) -> bool:
        """Whether the library showed what ``choice`` stands for."""
        number = self._catalogue.algorithm(collective, choice).number
        return number in self._presets.leaves.get(collective, {})

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        new = {}
        for rule_set in rule_sets:
            if rule_set.departs:
                number = self._presets.numbers.get(rule_set.collective, _ANY)
                new[number] = branch_of(number, self._joined(rule_set))
        return {FILE: write_table(_with_collectives(self._presets.tree, _PLACE, new))}

    def _joined(self, rule_set: RuleSet) -> Table:
        def leaf(choice: Choice, own: TableLeaf) -> TableLeaf:
            return own if choice == DEFAULT else self._leaf(rule_set.collective, choice)

        rules = DecisionTable.of(rule_set).by_ppn
        return rules.combine(
            self.own(rule_set.collective),
            lambda ranks, its: ranks.combine(its, lambda sizes, own: sizes.combine(own, leaf)),
        )

    def _leaf(self, collective: str, choice: Choice) -> TableLeaf:
        if not self.has(collective, choice):
            raise InputError(f"this Intel MPI does not know {collective} {choice}", "Tune again: the MPI has changed")
        return self._presets.leaves[collective][self._catalogue.algorithm(collective, choice).number or 0]

    def own(self, collective: str) -> Table:
        """What the library chooses by itself. Raises InputError where it does not say."""
        number = self._presets.numbers.get(collective)
        if number is None:
            raise InputError(f"this Intel MPI does not say what it runs as {collective}", "Leave it out")
        table: Table = steps_of(collectives_in(self._presets.tree)[number])
        return table

    def choice_of(self, collective: str, leaf: TableLeaf) -> Choice | None:
        """The choice that stands for ``leaf``; None where no preset does."""
        known = self._presets.leaves.get(collective, {})
        for choice in self._catalogue.choices(collective)[1:]:
            if known.get(self._catalogue.algorithm(collective, choice).number or 0) == leaf:
                return choice
        return None

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        basis = self._catalogue.collective(collective).basis
        number = self._presets.numbers.get(collective)
        if number is None:
            return RuleSet.always(collective, basis)
        if FILE not in files:
            raise InputError(f"there is no {FILE}", "Write the files again")

        def choice(here: TableLeaf, own: TableLeaf) -> Choice:
            chosen = DEFAULT if here == own else self.choice_of(collective, here)
            if chosen is None:
                raise InputError(f"{FILE}: {collective} runs what no preset stands for", "Write the files again")
            return chosen

        there = collectives_in(read_table(files[FILE]))
        if number not in there:
            raise InputError(f"{FILE}: it has no {collective}", "Write the files again")
        by_ppn = steps_of(there[number]).combine(
            self.own(collective), lambda ranks, own: ranks.combine(own, lambda a, b: a.combine(b, choice))
        )
        try:
            return DecisionTable(collective, basis, by_ppn).rule_set()
        except ValueError as fault:
            raise InputError(f"{FILE}: {fault}", "Write the files again") from None

    def environment(self, directory: Path) -> dict[str, str]:
        return {VARIABLE: str(directory / FILE)}
