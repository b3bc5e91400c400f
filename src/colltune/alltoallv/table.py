"""The look-up table that native/alltoallv/table.c reads: JSON, by ranks, ranks per node, and average block size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colltune.alltoallv.setting import LIBRARY, Setting
from colltune.core.errors import InputError
from colltune.machine.files import write_atomically

FORMAT = 1
FIRST_CALL = 2
# Classes of the share of blocks that are not empty, of the rank with the fewest: each up to this, the last to all.
FILLS = (1 / 16, 1 / 4, 1 / 2, 3 / 4, 1.0)
DENSE = (len(FILLS) - 1,)


@dataclass(frozen=True, slots=True)
class Rule:
    """``setting`` where the busiest rank sends ``low`` to ``high`` bytes a block on average, and ``fill`` is as named.

    A rank's block for itself counts in neither.
    """

    low: int
    high: int
    setting: Setting
    fill: tuple[int, ...] = DENSE


@dataclass(frozen=True, slots=True)
class Entry:
    """Rules for jobs of ``ranks`` with ``ppn`` on the fullest node, both from low to high.

    Calls on a communicator before the ``first_call``-th, counted from 1, are the library's: what is set up for the
    algorithms then should be little beside them.
    """

    ranks: tuple[int, int]
    ppn: tuple[int, int]
    rules: tuple[Rule, ...]
    first_call: int = FIRST_CALL


def around(size_bytes: int) -> tuple[int, int]:
    """Averages nearer to ``size_bytes``, a power of two, than to its neighbours; bounds of the library's classes."""
    return size_bytes * 3 // 4, max(size_bytes, size_bytes * 3 // 2 - 1)


def save_table(path: Path, entries: Iterable[Entry], made: Mapping[str, Any]) -> None:
    """Writes ``entries``; ``made`` says from what, for people. Raises InputError where that cannot be done."""
    content = {"format": FORMAT, "made": dict(made), "entries": [_entry(entry) for entry in entries]}
    try:
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another place by --out") from error


def _entry(entry: Entry) -> dict[str, Any]:
    rules = [
        {
            "average_bytes": [rule.low, rule.high],
            "fill": list(rule.fill),
            "algorithm": rule.setting.algorithm,
            "radix": rule.setting.radix,
            "batch": rule.setting.batch,
            "direct_above": rule.setting.direct_above,
        }
        for rule in entry.rules
    ]
    shape = {"ranks": list(entry.ranks), "ppn": list(entry.ppn)}
    return {**shape, "first_call": entry.first_call, "rules": rules}


def load_table(path: Path) -> list[Entry]:
    """The entries of a table. Raises InputError with what is wrong."""
    advice = "Make one by: colltune tune alltoallv --out tuned/"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the look-up table {path}: {error}", advice) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is no look-up table of format {FORMAT}", advice)
    try:
        return [
            Entry(
                _pair(entry["ranks"]),
                _pair(entry["ppn"]),
                tuple(_rule(rule) for rule in entry["rules"]),
                int(entry.get("first_call", FIRST_CALL)),
            )
            for entry in content["entries"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} has a faulty entry: {error!r}", advice) from error


def _pair(values: Any) -> tuple[int, int]:
    low, high = values
    return int(low), int(high)


def _rule(rule: Mapping[str, Any]) -> Rule:
    numbers = (int(rule.get(name, 0)) for name in ("radix", "batch", "direct_above"))
    low, high = _pair(rule["average_bytes"])
    return Rule(low, high, Setting(rule["algorithm"], *numbers), tuple(rule.get("fill", range(len(FILLS)))))


def find(entries: Iterable[Entry], ranks: int, ppn: int, average_bytes: int, fill: int = DENSE[0]) -> Setting:
    """What the C library chooses: of entries, and of rules, the first that fits; else the library's own."""
    for entry in entries:
        if entry.ranks[0] <= ranks <= entry.ranks[1] and entry.ppn[0] <= ppn <= entry.ppn[1]:
            for rule in entry.rules:
                if rule.low <= average_bytes <= rule.high and fill in rule.fill:
                    return rule.setting
            return LIBRARY
    return LIBRARY
