"""MPICH's built-in selection trees, cut out of the user's own library."""

import re
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import InputError, on_os_error
from colltune.emit.mpich.tree import Tree, is_leaf, parse_tree, read_leaf
from colltune.machine.files import LARGEST_BYTES, read_file

_START = re.compile(rb'\0(\{\s*"\s*collective\s*=)')


@dataclass(frozen=True)
class DefaultTrees:
    """``general``: algorithms of every collective. ``ch4``: how the device combines network and shared memory.

    ``posix``: algorithms of shared memory inside a node; None where the library's are not known.
    """

    general: Tree
    ch4: Tree
    posix: Tree | None = None


def cut_default_trees(library: Path) -> DefaultTrees:
    """Cuts the trees out of ``library`` (libmpi.so, links are followed).

    They are JSON texts among the library's constant strings. Raises InputError where they cannot be found, or where
    there are several that differ.
    """
    with on_os_error(f"cannot read {library}", "Name the libmpi.so of your MPICH"):
        data = read_file(library, LARGEST_BYTES, link=True)
    trees: dict[str, list[Tree]] = {"general": [], "ch4": [], "posix": []}
    for match in _START.finditer(data):
        start = match.start(1)
        try:
            tree = parse_tree(data[start : data.index(b"\0", start)])
        except (InputError, ValueError, UnicodeDecodeError):
            continue
        kind = _kind(tree)
        if kind and tree not in trees[kind]:
            trees[kind].append(tree)
    if len(trees["general"]) != 1 or len(trees["ch4"]) != 1:
        numbers = f"{len(trees['general'])} general and {len(trees['ch4'])} of the device"
        raise InputError(
            f"{library} holds {numbers} selection trees where one of each is due",
            "colltune needs MPICH 4.0 to 5.0 with the ch4 device",
        )
    posix = trees["posix"][0] if len(trees["posix"]) == 1 else None
    return DefaultTrees(trees["general"][0], trees["ch4"][0], posix)


def _kind(tree: Tree) -> str | None:
    while tree and not is_leaf(tree):
        tree = next(iter(tree.values()))
    if not tree:
        return None
    if next(iter(tree)).startswith("composition="):
        return "ch4"
    return "posix" if read_leaf(tree).name.startswith("MPIDI_POSIX") else "general"
