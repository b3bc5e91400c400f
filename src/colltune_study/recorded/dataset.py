"""Reads recorded measurements: CSV (also gzipped) or Parquet, one row per (run, scenario, algorithm).

Or what a benchmark printed (see ``benchmark_output``).

Needed columns: collective, algorithm, nodes, ppn, msg_bytes, time_us. Used where present: is_default (the library's own
selection), run_id and dtype (only rows that agree in both were measured side by side), cost_s (what the measurement
took); cluster and gpu (rows that differ in one of them make grids of their own).
"""

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from colltune.core.errors import InputError
from colltune.core.extras import extra
from colltune.core.sample import COLLECTIVES, Choice, Scenario, Value, parse_choice
from colltune.machine.benchmark_output import parse_output
from colltune.machine.file_formats import Format, require_format
from colltune.machine.files import LARGEST_BYTES, read_file, unpacked
from colltune.store.grid import PROBABILITIES, Floats, Grid
from colltune_study.recorded.table_checks import checked

if TYPE_CHECKING:
    import pandas

_NEXT = "Give a CSV, CSV.GZ or Parquet file of measurements"
# The columns of the spread of the repetitions.
_SPREAD = ("min_us", "p10_us", "p25_us", "p75_us", "p90_us", "mean_us")
# Fewer scenarios than this say little about a strategy that learns from some of them.
FEWEST_SCENARIOS = 24
FEWEST_PAIRS = 100
_WIDEST = 20.0  # no repetition is drawn slower than this many medians

# As colltune writes a choice itself; a name without parameters may come from any tool.
_OURS = re.compile(r"[a-z0-9_+.]+\(\w+=\w+(?:,\w+=\w+)*\)")
_LABELLED = re.compile(r"(?P<name>.+?):(?P<parameters>\w+=\w+(?:,\w+=\w+)*)")
_GROUPED = re.compile(r"(?P<name>.+?) \((?P<number>\d{1,18}) procs/leader\)")
_SEGMENTED = re.compile(r"(?P<name>.*segment.*?)_(?P<number>\d{1,18})")


def require_table(path: Path) -> None:
    """Raises InputError where ``path`` is no file."""
    if not path.is_file():
        raise InputError(f"there is no file {path}", _NEXT)


def load_grids(paths: Iterable[Path], fewest_scenarios: int = FEWEST_SCENARIOS) -> list[Grid]:
    """The grids of all files that have enough points, named ``file/collective``, with the folder where names are equal.

    Raises InputError for a file that cannot be read, lacks a column, or where no grid at all has enough points.
    """
    paths = list(paths)
    grids = [grid for path, stem in _stems(paths) for grid in _grids_of(path, stem)]
    enough = [grid for grid in grids if len(grid.scenarios) >= fewest_scenarios and len(grid.recorded) >= FEWEST_PAIRS]
    if not enough:
        names = ", ".join(str(path) for path in paths) or "no file"
        raise InputError(
            f"no collective in {names} has {fewest_scenarios} scenarios with at least two algorithms",
            "Give tables with more measurements",
        )
    return enough


def read_table(path: Path) -> "pandas.DataFrame":
    """The rows of one file that have a time, checked. Raises InputError."""
    pandas = extra("pandas", "reading tables")
    require_table(path)
    try:
        data = read_file(path, LARGEST_BYTES, link=True)
        data = unpacked(data, LARGEST_BYTES) if data.startswith(b"\x1f\x8b") else data
        kind, _ = require_format(path, data, (Format.TABLE, Format.BENCHMARK), "table of measurements", _NEXT)
        if kind is Format.BENCHMARK:
            columns = ["collective", "nodes", "ppn", "msg_bytes", "algorithm", "is_default", "time_us", "run_id"]
            rows = [
                (s.collective, s.nodes, s.ppn, s.size_bytes, name or "default", not name, 1e6 * time_s, str(run))
                for (s, name), times_s in parse_output(data, path).times_s.items()
                for run, time_s in enumerate(times_s)  # the first of each are of one run, the second of another
            ]
            return checked(pandas.DataFrame(rows, columns=columns), path)
        held = io.BytesIO(data)
        parquet = data.startswith(b"PAR1")
        table = pandas.read_parquet(held) if parquet else pandas.read_csv(held, low_memory=False)
    except pandas.errors.EmptyDataError as error:
        raise InputError(f"{path} is empty", "Give a table with measurements") from error
    except (OSError, ValueError, ImportError, NotImplementedError, LookupError, TypeError, ArithmeticError) as error:
        # What a library says of a broken file may be several lines long.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"cannot read {path}: {first}", _NEXT) from error
    return checked(table.reset_index(drop=True), path)


def parse_algorithm(text: str) -> Choice:
    """``"tree(k=2)"``, ``"radix:k=4,b=2"``, ``"ring (8 procs/leader)"`` or ``"segmented_65536"`` -> a choice."""
    if _OURS.fullmatch(text):
        return parse_choice(text)
    parameters: list[tuple[str, Value]] = []
    name = text
    if match := _LABELLED.fullmatch(text):
        name = match["name"]
        for item in match["parameters"].split(","):
            key, _, value = item.partition("=")
            parameters.append((key, int(value) if value.isdecimal() and len(value) < 19 else value))
    elif match := _GROUPED.fullmatch(text):
        name, parameters = match["name"], [("procs_per_leader", int(match["number"]))]
    elif match := _SEGMENTED.fullmatch(text):
        name, parameters = match["name"], [("segment", int(match["number"]))]
    return Choice(re.sub(r"[^a-z0-9_+.]+", "_", name.lower()), tuple(parameters))


def _stems(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """The name of each file in the names of its grids: its stem, with its folder where stems are equal."""
    different = list({path.resolve(): path for path in paths}.values())
    stems = [path.name.split(".")[0] for path in different]
    return [
        (path, stem if stems.count(stem) == 1 else f"{path.resolve().parent.name}/{stem}")
        for path, stem in zip(different, stems, strict=True)
    ]


def _grids_of(path: Path, stem: str = "") -> list[Grid]:
    table = read_table(path)
    # Times of different machines never share a grid.
    apart = [column for column in ("cluster", "gpu") if column in table and table[column].nunique() > 1]
    grids = []
    for key, rows in table.groupby(["collective", *apart], sort=True):
        collective, *origin = (str(part) for part in key)
        name = "/".join([stem or path.name.split(".")[0], *origin, collective])
        if collective in COLLECTIVES and (grid := _grid(name, collective, rows)) is not None:
            grids.append(grid)
    return grids


def _grid(name: str, collective: str, rows: "pandas.DataFrame") -> Grid | None:
    """The grid of one collective; None where no scenario has two algorithms to choose from."""
    recorded: dict[Scenario, dict[tuple[str, str], _Run]] = {}
    columns = ["nodes", "ppn", "msg_bytes", "run_id", "dtype", "algorithm", "is_default", "time_us"]
    more = rows.reindex(columns=["cost_s", *_SPREAD]).astype(float).itertuples(index=False)
    for row, (cost_s, minimum, p10, p25, p75, p90, mean) in zip(
        rows[columns].itertuples(index=False), more, strict=True
    ):
        nodes, ppn, size, run_id, dtype, algorithm, is_default, time_us = row
        at_scenario = recorded.setdefault(Scenario(collective, int(nodes), int(ppn), int(size)), {})
        run = at_scenario.setdefault((run_id, dtype), _Run())
        (run.default_s if is_default else run.times_s[str(algorithm)]).append(float(time_us) * 1e-6)
        if not is_default:
            run.costs_s[str(algorithm)].append(cost_s)
            run.spread[str(algorithm)] = quantiles(minimum, p10, p25, float(time_us), p75, p90, mean)
    cells = {scenario: _side_by_side(runs) for scenario, runs in sorted(recorded.items())}
    cells = {scenario: cell for scenario, cell in cells.items() if len(cell.time_s) >= 2}
    if not cells:
        return None
    names = sorted({algorithm for cell in cells.values() for algorithm in cell.time_s})
    choices = _distinct([parse_algorithm(algorithm) for algorithm in names], names)
    time_s = np.array([[cell.time_s.get(algorithm, np.nan) for algorithm in names] for cell in cells.values()])
    cost_s = np.array([[cell.cost_s.get(algorithm, np.nan) for algorithm in names] for cell in cells.values()])
    default_s = np.array([cell.default_s for cell in cells.values()])
    unknown = np.full(len(PROBABILITIES), np.nan)
    spread = np.array([[cell.spread.get(algorithm, unknown) for algorithm in names] for cell in cells.values()])
    known = None if np.isnan(spread).all() else spread
    return Grid(name, collective, tuple(cells), choices, time_s, default_s, cost_s, known)


@dataclass
class _Run:
    """What one run recorded at one scenario, in seconds."""

    times_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    costs_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    spread: dict[str, Floats] = field(default_factory=dict)
    default_s: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class _Cell:
    """One scenario: seconds of each algorithm, what each measurement took (NaN: not known), and of the default.

    ``spread``: of the repetitions of each algorithm, see ``quantiles``.
    """

    time_s: dict[str, float]
    cost_s: dict[str, float]
    default_s: float
    spread: dict[str, Floats]


def quantiles(minimum: float, p10: float, p25: float, median: float, p75: float, p90: float, mean: float) -> Floats:
    """(7,): over the median, at PROBABILITIES; NaN where any is missing."""
    known = np.maximum.accumulate(np.array([minimum, p10, p25, median, p75, p90]) / median)
    below = float((np.diff(PROBABILITIES[:6]) * 0.5 * (known[1:] + known[:-1])).sum())
    highest = 2.0 * (mean / median - below) / (1.0 - PROBABILITIES[5]) - known[5]
    return np.append(known, np.clip(highest, known[5], max(_WIDEST, known[5])))


def _distinct(choices: Sequence[Choice], names: Sequence[str]) -> tuple[Choice, ...]:
    if len(set(choices)) == len(choices):
        return tuple(choices)
    return tuple(Choice(re.sub(r"[^a-z0-9_+.]+", "_", f"{name.lower()}.{i}")) for i, name in enumerate(names))


def _side_by_side(runs: Mapping[tuple[str, str], _Run]) -> _Cell:
    """What is known of one scenario, from the runs that recorded the most algorithms.

    Several runs with equally many: the median over them, if they are the same algorithms; else the first such run. The
    spread of the repetitions is that of the first.
    """
    most = max(len(run.times_s) for run in runs.values())
    first = next(run for _, run in sorted(runs.items()) if len(run.times_s) == most)
    alike = [run for run in runs.values() if run.times_s.keys() == first.times_s.keys()]
    default = [median(run.default_s) for run in alike if run.default_s]
    return _Cell(
        {name: median([median(run.times_s[name]) for run in alike]) for name in first.times_s},
        {name: median([median(run.costs_s[name]) for run in alike]) for name in first.times_s},
        median(default) if default else float("nan"),
        first.spread,
    )
