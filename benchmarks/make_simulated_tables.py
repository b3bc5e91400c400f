"""Makes the tables of simulated clusters in benchmarks/data: exhaustive, without noise, the same each time.

    python benchmarks/make_simulated_tables.py [NAME...] [--out benchmarks/data]

Needs SimGrid (apt-get install libsimgrid-dev). What was simulated before is taken from the cache.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.sample import Scenario
from colltune.core.space import Space
from colltune.measure.contract import Effort
from colltune_study.simulated.simulated_cluster import open_simulation
from colltune_study.simulated.smpi import STEPS
from colltune_study.tables.collect import CollectOptions, collect, simulated_subject
from harness import options_of

COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter")
COLUMNS = (
    *("cluster", "mpi", "mpi_version", "collective", "algorithm", "family", "is_default"),
    *("nodes", "ppn", "nprocs", "msg_bytes", "buf_bytes", "dtype", "time_us", "notes"),
)


@dataclass(frozen=True)
class Table:
    cluster: str
    node_counts: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24, 32)
    ppn_counts: tuple[int, ...] = (1, 4)
    exponents: tuple[int, ...] = tuple(range(0, 21, 2))
    steps: int = STEPS
    odd_exponents: tuple[int, ...] = tuple(range(1, 21, 4))  # of the gaps that have a size between


TABLES = {
    "simulated_dragonfly": Table("dragonfly:64x4"),
    "simulated_fattree": Table("fattree:64x4"),
    "simulated_torus": Table("torus:64x4"),
    # For `make bench-delivery`: 40 shapes of a large job. Few sizes, because a call of 1,024 ranks takes seconds.
    "simulated_dragonfly_64x16": Table(
        "dragonfly:64x16",
        (2, 3, 4, 6, 8, 12, 16, 24, 32, 64),
        (1, 2, 8, 16),
        exponents=(3, 8, 11, 14, 17, 20),
        odd_exponents=(),
        steps=8,
    ),
    # For `make bench-scale`.
    "simulated_dragonfly_1024": Table(
        "dragonfly:1024x1",
        (2, 4, 8, 16, 32, 64, 128, 256, 1024),
        (1,),
        exponents=(0, 2, 8, 12, 16, 20),
        odd_exponents=(),
        steps=8,
    ),
}


def kept(size: int, table: Table) -> bool:
    """Some powers of two, and some sizes between two others."""
    exponent = size.bit_length() - 1
    return exponent in (table.exponents if size == 1 << exponent else table.odd_exponents)


def make(name: str, table: Table, folder: Path) -> None:
    started = time.monotonic()
    simulation = open_simulation(table.cluster, os.environ, table.steps)
    subject = simulated_subject(simulation)

    def space(collective: str, scenarios: Sequence[Scenario]) -> Space:
        return subject.space(collective, [s for s in scenarios if kept(s.size_bytes, table)])

    options = CollectOptions(
        COLLECTIVES, node_counts=table.node_counts, ppn_counts=table.ppn_counts, effort=Effort(fewest=1)
    )
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / f"{name}.parquet"
        done = collect(replace(subject, space=space), options, out)
        folder.mkdir(parents=True, exist_ok=True)
        save_small(out, folder / out.name)
    simulation.close()
    print(f"{name}: {done.rows} rows, {done.failed} without a time, {time.monotonic() - started:.0f} s", flush=True)


def save_small(source: Path, target: Path) -> None:
    """The columns that say something: there is one repetition, and no noise."""
    import pyarrow
    from pyarrow import parquet

    table = parquet.read_table(source, columns=list(COLUMNS))
    place = table.schema.get_field_index("time_us")
    table = table.set_column(place, "time_us", table["time_us"].cast(pyarrow.float32()))
    parquet.write_table(table, target, compression="zstd", compression_level=19, use_byte_stream_split=["time_us"])


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/data"))
    options = parser.parse_args()
    for name in options.names or TABLES:
        make(name, TABLES[name], options.out)


if __name__ == "__main__":
    main()
