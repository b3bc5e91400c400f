"""Checks a table of measurements. An error names the column, the row and the value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES

if TYPE_CHECKING:
    import pandas

NEEDED = ("collective", "algorithm", "nodes", "ppn", "msg_bytes", "time_us")
# Bytes per second to one rank, faster than any link or memory: above it the times are not in microseconds.
_IMPOSSIBLE_BYTES_PER_S = 5e12
_LARGE_BYTES = 65536
# Seconds, shorter than a call of an empty function.
_IMPOSSIBLE_S = 1e-8
_MOST = 2**62  # of a whole number
_TRUE, _FALSE = frozenset({"true", "1", "1.0", "yes"}), frozenset({"false", "0", "0.0", "no", ""})


def checked(table: pandas.DataFrame, path: Path) -> pandas.DataFrame:
    """The rows with a time, with all used columns converted to their types. Raises InputError."""
    _require_columns(table, path)
    if not len(table):
        raise InputError(f"{path} has no rows", "Give a table with measurements")
    table = table.copy()
    table["collective"] = _texts(table["collective"]).str.lower().str.removeprefix("mpi_")
    for column, least in (("nodes", 1), ("ppn", 1), ("msg_bytes", 0)):
        table[column] = _whole_numbers(table[column], column, least, path)
    table["algorithm"] = _texts(table["algorithm"])
    table["time_us"] = _times(table["time_us"], path)
    table["is_default"] = _flags(table["is_default"], path) if "is_default" in table else False
    if "cost_s" in table:
        table["cost_s"] = _numbers(table["cost_s"], "cost_s", path).where(lambda cost: cost > 0)
    for column, value in (("run_id", "all"), ("dtype", "byte")):
        table[column] = _texts(table[column]) if column in table else value
    table = table[table["time_us"].notna()]
    if not len(table):
        raise InputError(f"{path}: no row has a time_us", "Give a table with measurements")
    if not table["collective"].isin(COLLECTIVES).any():
        found = ", ".join(sorted(table["collective"].unique())[:3])
        raise InputError(f"{path}: unknown collectives: {found}", f"There are {', '.join(COLLECTIVES)}")
    _require_microseconds(table, path)
    return table


def _texts(column: pandas.Series) -> pandas.Series:
    """The column as text, empty where there is no value."""
    return column.astype(object).where(column.notna(), "").astype(str)


def _require_columns(table: pandas.DataFrame, path: Path) -> None:
    missing = [column for column in NEEDED if column not in table]
    if not missing:
        return
    others = [str(column) for column in table.columns if str(column).startswith(("time", "latency"))]
    if missing == ["time_us"] and others:
        raise InputError(
            f"{path} has no column time_us, but {others[0]}", "Convert it to microseconds and call it time_us"
        )
    raise InputError(f"{path} has no column {', '.join(missing)}", f"A table needs {', '.join(NEEDED)}")


def _numbers(column: pandas.Series, name: str, path: Path) -> pandas.Series:
    import pandas

    try:
        numbers = pandas.to_numeric(column, errors="coerce")
    except OverflowError:
        raise InputError(f"{path}: {name} holds a number that is too large", "Correct the row or remove it") from None
    wrong = column[numbers.isna() & column.notna() & (column.astype(str).str.strip() != "")]
    _require_none(wrong, path, f"{name} is {{!r}}, which is not a number", "Write plain numbers")
    return numbers


def _whole_numbers(column: pandas.Series, name: str, least: int, path: Path) -> pandas.Series:
    numbers = _numbers(column, name, path)
    wrong = numbers[~(numbers >= least) | (numbers % 1 != 0) | (numbers > _MOST)]
    what = f"{name} is {{:g}}, and must be a whole number from {least} to 2^62"
    _require_none(wrong, path, what, "Correct the row or remove it")
    return numbers.astype("int64")


def _times(column: pandas.Series, path: Path) -> pandas.Series:
    """Microseconds; empty where nothing was measured."""
    times = _numbers(column, "time_us", path)
    wrong = times[(times <= 0) | np.isinf(times)]
    advice = "Leave the time of a failed measurement empty"
    _require_none(wrong, path, "time_us is {:g}, and must be above zero", advice)
    return times.astype("float64")


def _flags(column: pandas.Series, path: Path) -> pandas.Series:
    texts = _texts(column).str.strip().str.lower()
    wrong = column[~texts.isin(_TRUE | _FALSE)]
    _require_none(wrong, path, "is_default is {!r}", "Write True for the library's own choice")
    return texts.isin(_TRUE)


def _require_microseconds(table: pandas.DataFrame, path: Path) -> None:
    middle_us = float(table["time_us"].median())
    if middle_us * 1e-6 < _IMPOSSIBLE_S:
        raise InputError(
            f"{path}: half of the times are below {middle_us:.3g} us, which is too fast: are they in seconds?",
            "Convert them to microseconds",
        )
    large = table[table["msg_bytes"] >= _LARGE_BYTES]
    if len(large):
        speed = float((large["msg_bytes"] / (large["time_us"] * 1e-6)).median())
        if speed > _IMPOSSIBLE_BYTES_PER_S:
            raise InputError(
                f"{path}: large messages would move at {speed:.2g} bytes per second: are the times in milliseconds?",
                "Convert them to microseconds",
            )


def _require_none(wrong: pandas.Series, path: Path, what: str, next_step: str) -> None:
    """Raises InputError for the first of ``wrong``, rows counted from 1; ``what`` leaves open its value."""
    if len(wrong):
        raise InputError(f"{path}, row {int(wrong.index[0]) + 1}: {what.format(wrong.iloc[0])}", next_step)
