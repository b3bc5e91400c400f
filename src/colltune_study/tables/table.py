"""Tables of measurements: one row per (run, scenario, algorithm), as Parquet or CSV.

The columns are those of a row, in their order; docs/evaluate.md says what each means. ``cost_s`` is ours: what the
measurement took, set-up and repetitions included. A pair that has no time (it was
inapplicable, wrong, or ended the job) has no row. Writing CSV needs no further library, Parquet needs pyarrow.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from colltune.core.errors import InputError, on_os_error
from colltune.core.extras import extra
from colltune.core.sample import DEFAULT, PER_BLOCK, Environment, Sample, Status, format_choice
from colltune.machine.files import write_atomically

Value = str | int | float | bool
_FORMATS = (".parquet", ".csv", ".csv.gz")


def rows_of(samples: Iterable[Sample], environment: Environment, cluster: str) -> list[dict[str, Value]]:
    """The rows of all samples with times, in their order. ``run_id``: the launch and the time of its first sample."""
    began: dict[int, float] = {}
    rows = []
    for sample in samples:
        if sample.status is Status.OK:
            began.setdefault(sample.launch, sample.started_s)
            rows.append(_row(sample, environment, cluster, began[sample.launch]))
    return rows


def _row(sample: Sample, environment: Environment, cluster: str, began_s: float) -> dict[str, Value]:
    scenario, times_us = sample.scenario, np.array(sample.times_s) * 1e6
    began = datetime.fromtimestamp(began_s, UTC).strftime("%Y%m%dT%H%M%S")
    p10, p25, p50, p75, p90 = (float(value) for value in np.quantile(times_us, [0.1, 0.25, 0.5, 0.75, 0.9]))
    return {
        "dataset": "colltune",
        "cluster": cluster,
        "mpi": environment.mpi,
        "mpi_version": environment.mpi_version,
        "collective": scenario.collective,
        "algorithm": format_choice(sample.choice),
        "family": "library",
        "is_default": sample.choice == DEFAULT,
        "nodes": scenario.nodes,
        "ppn": scenario.ppn,
        "nprocs": scenario.ranks,
        "msg_bytes": scenario.size_bytes,
        "buf_bytes": scenario.size_bytes * (scenario.ranks if scenario.collective in PER_BLOCK else 1),
        "dtype": scenario.datatype,
        "time_us": p50,
        "mean_us": float(times_us.mean()),
        "std_us": float(times_us.std(ddof=1)) if len(times_us) > 1 else 0.0,
        "min_us": float(times_us.min()),
        "p10_us": p10,
        "p25_us": p25,
        "p75_us": p75,
        "p90_us": p90,
        "n_reps": len(times_us),
        "gpu": False,
        "run_id": f"{began}/{sample.launch}",
        "notes": sample.detail,
        "cost_s": float(sample.cost_s),
    }


def require_format(path: Path) -> None:
    """Raises InputError for a file name without a known ending, and where the library for its format is missing."""
    if not path.name.endswith(_FORMATS):
        raise InputError(f"cannot tell the format of {path}", f"Let its name end in {', '.join(_FORMATS)}")
    if path.name.endswith(".parquet"):
        _pyarrow()


def save_rows(path: Path, rows: Sequence[Mapping[str, Value]]) -> None:
    """Writes a table, of one row at least, in one step: a concurrent reader sees the old one or the new one.

    Raises InputError.
    """
    require_format(path)
    parquet = path.name.endswith(".parquet")
    data = _parquet_bytes(rows) if parquet else _csv_bytes(rows, packed=path.name.endswith(".gz"))
    with on_os_error(f"cannot write {path}", "Give another file by --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


def _csv_bytes(rows: Sequence[Mapping[str, Value]], packed: bool) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    data = text.getvalue().encode()
    # No time stamp, so that equal rows give equal files.
    return gzip.compress(data, mtime=0) if packed else data


def _parquet_bytes(rows: Sequence[Mapping[str, Value]]) -> bytes:
    arrow, parquet = _pyarrow()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    written = io.BytesIO()
    parquet.write_table(arrow.table(columns), written, compression="zstd")
    return written.getvalue()


def _pyarrow() -> tuple[Any, Any]:
    parquet = extra("pyarrow.parquet", "Parquet", "or write a .csv.gz")
    return extra("pyarrow", "Parquet"), parquet
