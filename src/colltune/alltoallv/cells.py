"""Cells of the look-up table: which patterns share one, and which sizes share a setting.

A cell is what the ranks of a call can know of it together: the busiest rank's average block, and the share of blocks
that are not empty, of the rank that has fewest. Many patterns look alike by these; a rule must fit all of them.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from colltune.alltoallv.lookup_table import FILLS

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
    found = high if kind == _MOST else low + 1
    return 0 if found == ranks - 1 else found


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
    found = peers_among(pattern[1], ranks)
    if found is None or pattern == usual(fill):
        return found is not None
    return (pattern[0], found) != (usual(fill)[0], peers_among(usual(fill)[1], ranks))


def runs(chosen: Mapping[int, Key]) -> list[list[int]]:
    """Neighbouring sizes, each twice the one before, with one setting."""
    found: list[list[int]] = []
    for size in sorted(chosen):
        last: Sequence[int] = found[-1] if found else ()
        if last and size == 2 * last[-1] and chosen[size] == chosen[last[-1]]:
            found[-1].append(size)
        else:
            found.append([size])
    return found
