"""Reads recorded measurements: CSV (also gzipped) or Parquet, one row per (run, scenario, algorithm).

Needed columns: collective, algorithm, nodes, ppn, msg_bytes, time_us. Used where present: cluster, is_default (the
library's own selection), run_id and dtype (only rows that agree in both were measured side by side).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from colltune.core.choice import Choice, Value
from colltune.core.errors import InputError
from colltune.core.scenario import COLLECTIVES, Scenario
from colltune.evaluate.grid import Grid

if TYPE_CHECKING:
    import pandas

NEEDED = ("collective", "algorithm", "nodes", "ppn", "msg_bytes", "time_us")
# Fewer scenarios than this say little about a strategy that learns from some of them.
FEWEST_SCENARIOS = 24
FEWEST_PAIRS = 100

_LABELLED = re.compile(r"(?P<name>.+?):(?P<parameters>\w+=\w+(?:,\w+=\w+)*)")
_GROUPED = re.compile(r"(?P<name>.+?) \((?P<number>\d+) procs/leader\)")
_SEGMENTED = re.compile(r"(?P<name>.*segment.*?)_(?P<number>\d+)")


def load_grids(paths: Iterable[Path], fewest_scenarios: int = FEWEST_SCENARIOS) -> list[Grid]:
    """The grids of all files that have enough points, named ``file/collective``.

    Raises InputError for a file that cannot be read, lacks a column, or where no grid at all has enough points.
    """
    paths = list(paths)
    grids = [grid for path in paths for grid in _grids_of(path)]
    enough = [grid for grid in grids if len(grid.scenarios) >= fewest_scenarios and grid.pairs >= FEWEST_PAIRS]
    if not enough:
        names = ", ".join(str(path) for path in paths) or "no file"
        raise InputError(
            f"no collective in {names} has {fewest_scenarios} scenarios with at least two algorithms",
            "Give tables with more measurements",
        )
    return enough


def read_table(path: Path) -> pandas.DataFrame:
    """The rows of one file with a time above zero. Raises InputError."""
    import pandas

    try:
        table = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path, low_memory=False)
    except (OSError, ValueError, pandas.errors.ParserError) as error:
        raise InputError(
            f"cannot read {path}: {error}", "Give a CSV, CSV.GZ or Parquet file of measurements"
        ) from error
    missing = [column for column in NEEDED if column not in table]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}", f"A table needs {', '.join(NEEDED)}")
    table = table[np.isfinite(table["time_us"]) & (table["time_us"] > 0)].copy()
    for column, value in (("is_default", False), ("run_id", "all"), ("dtype", "byte")):
        if column not in table:
            table[column] = value
    table["run_id"] = table["run_id"].astype(str)
    table["dtype"] = table["dtype"].astype(str)
    return table


def parse_algorithm(text: str) -> Choice:
    """``"radix:k=4,b=2"``, ``"ring (8 procs/leader)"`` or ``"segmented_65536"`` -> an algorithm and its parameters."""
    parameters: list[tuple[str, Value]] = []
    name = text
    if match := _LABELLED.fullmatch(text):
        name = match["name"]
        for item in match["parameters"].split(","):
            key, _, value = item.partition("=")
            parameters.append((key, int(value) if value.isdigit() else value))
    elif match := _GROUPED.fullmatch(text):
        name, parameters = match["name"], [("procs_per_leader", int(match["number"]))]
    elif match := _SEGMENTED.fullmatch(text):
        name, parameters = match["name"], [("segment", int(match["number"]))]
    return Choice(re.sub(r"[^a-z0-9_+.]+", "_", name.lower()), tuple(parameters))


def _grids_of(path: Path) -> list[Grid]:
    table = read_table(path)
    stem = path.name.split(".")[0]
    return [
        grid
        for collective, rows in table.groupby("collective", sort=True)
        if collective in COLLECTIVES and (grid := _grid(f"{stem}/{collective}", str(collective), rows)) is not None
    ]


def _grid(name: str, collective: str, rows: pandas.DataFrame) -> Grid | None:
    """The grid of one collective; None where no scenario has two algorithms to choose from."""
    recorded: dict[Scenario, dict[tuple[str, str], _Run]] = {}
    columns = ["nodes", "ppn", "msg_bytes", "run_id", "dtype", "algorithm", "is_default", "time_us"]
    for nodes, ppn, size, run_id, dtype, algorithm, is_default, time_us in rows[columns].itertuples(index=False):
        at_scenario = recorded.setdefault(Scenario(collective, int(nodes), int(ppn), int(size)), {})
        run = at_scenario.setdefault((run_id, dtype), _Run())
        (run.default_s if is_default else run.times_s[str(algorithm)]).append(float(time_us) * 1e-6)
    cells = {scenario: _side_by_side(runs) for scenario, runs in sorted(recorded.items())}
    cells = {scenario: cell for scenario, cell in cells.items() if len(cell[0]) >= 2}
    if not cells:
        return None
    names = sorted({algorithm for times, _ in cells.values() for algorithm in times})
    time_s = np.array([[times.get(algorithm, np.nan) for algorithm in names] for times, _ in cells.values()])
    choices = _distinct([parse_algorithm(algorithm) for algorithm in names], names)
    return Grid(name, collective, tuple(cells), choices, time_s, np.array([default for _, default in cells.values()]))


@dataclass
class _Run:
    """What one run recorded at one scenario, in seconds."""

    times_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    default_s: list[float] = field(default_factory=list)


def _distinct(choices: Sequence[Choice], names: Sequence[str]) -> tuple[Choice, ...]:
    if len(set(choices)) == len(choices):
        return tuple(choices)
    return tuple(Choice(re.sub(r"[^a-z0-9_+.]+", "_", f"{name.lower()}.{i}")) for i, name in enumerate(names))


def _side_by_side(runs: Mapping[tuple[str, str], _Run]) -> tuple[dict[str, float], float]:
    """Seconds per algorithm and of the default (NaN: none), from the runs that recorded the most algorithms.

    Several runs with equally many: the median over them, if they are the same algorithms; else the first such run.
    """
    most = max(len(run.times_s) for run in runs.values())
    first = next(run for _, run in sorted(runs.items()) if len(run.times_s) == most)
    alike = [run for run in runs.values() if run.times_s.keys() == first.times_s.keys()]
    default = [median(run.default_s) for run in alike if run.default_s]
    times = {name: median([median(run.times_s[name]) for run in alike]) for name in first.times_s}
    return times, median(default) if default else float("nan")
