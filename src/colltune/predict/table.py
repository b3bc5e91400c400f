"""Tables of other clusters: best algorithms (labels), and measured times.

Columns: cluster, collective, algorithm, nodes, ppn, msg_bytes; of labels also channel (the MPI's transport, where one
cluster has several tables); of times also time_us, and is_default, run_id and dtype where they are known.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from colltune.core.errors import InputError
from colltune.core.hardware import NUMBERS, Hardware, hardware_from_dict
from colltune.core.scenario import COLLECTIVES, Scenario
from colltune.machine.files import LARGEST_BYTES, read_file, unpacked

_NEEDED = ("cluster", "collective", "algorithm", "nodes", "ppn", "msg_bytes")


@dataclass(frozen=True, slots=True)
class Label:
    """The algorithm that a tuning table of ``cluster`` holds to be the best."""

    cluster: str
    channel: str
    scenario: Scenario
    algorithm: str


@dataclass(frozen=True, slots=True)
class Timed:
    """What one cluster measured side by side at one scenario, in seconds; ``default_s`` None where unknown."""

    cluster: str
    scenario: Scenario
    times_s: Mapping[str, float]
    default_s: float | None


def read_hardware(path: Path) -> dict[str, Hardware]:
    """Features by cluster, from a CSV as ``colltune doctor --features`` names them. Raises InputError."""
    found = {}
    for number, row in _rows(path, ("cluster",)):
        written: dict[str, Any] = {}
        for name in (*NUMBERS, "fabric"):
            text = row.get(name) or ""
            written[name] = (text if name == "fabric" else _number(text, path, number, name)) if text else None
        found[row["cluster"]] = hardware_from_dict(written)
    return found


def holds_times(path: Path) -> bool:
    """Whether a table is one of times. Raises InputError."""
    return any("time_us" in row for _, row in _rows(path, _NEEDED))


def read_tables(paths: Iterable[Path]) -> tuple[list[Label], list[Timed]]:
    """Labels and times of all files; a file with a column time_us holds times. Raises InputError."""
    labels: list[Label] = []
    timed: list[Timed] = []
    for path in paths:
        rows = list(_rows(path, _NEEDED))
        if rows and "time_us" in rows[0][1]:
            timed += _timed(path, rows)
        else:
            labels += [
                Label(row["cluster"], row.get("channel") or "", _scenario(row, path, number), row["algorithm"])
                for number, row in rows
                if row["collective"] in COLLECTIVES
            ]
    if not labels and not timed:
        raise InputError("the tables hold nothing to learn from", f"A table needs {', '.join(_NEEDED)}")
    return labels, timed


def _timed(path: Path, rows: Sequence[tuple[int, dict[str, str]]]) -> list[Timed]:
    """Of each scenario the runs with the most algorithms; the median over those that measured the same ones."""
    runs: defaultdict[tuple[str, Scenario], dict[tuple[str, str], dict[str, list[float]]]] = defaultdict(dict)
    for number, row in rows:
        if row["collective"] not in COLLECTIVES:
            continue
        time_s = (_number(row["time_us"], path, number, "time_us") or 0.0) * 1e-6
        if time_s <= 0.0:
            continue
        at_scenario = runs[row["cluster"], _scenario(row, path, number)]
        run = at_scenario.setdefault((row.get("run_id") or "", row.get("dtype") or ""), {})
        default = (row.get("is_default") or "").lower() in ("true", "1")
        run.setdefault("" if default else row["algorithm"], []).append(time_s)
    return [_side_by_side(cluster, scenario, list(found.values())) for (cluster, scenario), found in runs.items()]


def _side_by_side(cluster: str, scenario: Scenario, runs: Sequence[Mapping[str, list[float]]]) -> Timed:
    most = max((frozenset(run) - {""} for run in runs), key=len)
    alike = [run for run in runs if frozenset(run) - {""} == most]
    times = {name: median(median(run[name]) for run in alike) for name in sorted(most)}
    defaults = [median(run[""]) for run in alike if "" in run]
    return Timed(cluster, scenario, times, median(defaults) if defaults else None)


def _rows(path: Path, needed: Sequence[str]) -> Iterable[tuple[int, dict[str, str]]]:
    """Line numbers and rows of a CSV, gzipped or not. Raises InputError."""
    try:
        data = read_file(path, LARGEST_BYTES, link=True)
        text = (unpacked(data, LARGEST_BYTES) if path.suffix == ".gz" else data).decode("utf-8")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        missing = [column for column in needed if column not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{path} has no column {', '.join(missing)}", f"It needs {', '.join(needed)}")
        return [(number, row) for number, row in enumerate(reader, start=2)]
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}", "Give a CSV, or a gzipped one") from error


def _scenario(row: Mapping[str, str], path: Path, number: int) -> Scenario:
    nodes, ppn, size = (_number(row[name], path, number, name) for name in ("nodes", "ppn", "msg_bytes"))
    if not all(value is not None and value == int(value) for value in (nodes, ppn, size)):
        raise InputError(f"{path}, line {number}: nodes, ppn and msg_bytes must be whole numbers", "Mend the table")
    try:
        return Scenario(row["collective"], int(nodes or 0), int(ppn or 0), int(size or 0))
    except ValueError as error:
        raise InputError(f"{path}, line {number}: {error}", "Mend the table") from error


def _number(text: str, path: Path, line: int, name: str) -> float | None:
    try:
        number = float(text)
        if not isfinite(number):
            raise ValueError
        return number
    except (TypeError, ValueError):
        raise InputError(f"{path}, line {line}: {name} is {text!r}, no number", "Mend the table") from None
