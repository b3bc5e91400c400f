"""Records simulated times of the non-uniform all-to-all: benchmarks/data/alltoallv_simulated.csv, one row per setting.

    python benchmarks/make_alltoallv_table.py [--network dragonfly | --smpi | --shapes]

On the fat tree, or on another network into a table of its own. With --smpi alltoallv_simulated_smpi.csv instead, by
SimGrid; with --shapes alltoallv_shapes.csv, the parts of a job of 64 x 16. Goes on where it was stopped: what the file
has is not simulated again. Ten minutes of one core each.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from dataclasses import astuple
from functools import partial
from math import isqrt
from pathlib import Path

from alltoallv_simulators import NETWORKS, Pattern, Timing, compile_cluster, compile_sweep, simulate, simulate_own
from colltune.alltoallv.lookup_table import LIBRARY, Setting, Shape, candidates, radices
from colltune.core.space import counts

TABLE = Path(__file__).parent / "data" / "alltoallv_simulated.csv"
TABLES = {name: TABLE if name == NETWORKS[0] else TABLE.with_stem(f"{TABLE.stem}_{name}") for name in NETWORKS}
SMPI_TABLE = TABLE.with_name("alltoallv_simulated_smpi.csv")
SHAPES_TABLE = TABLE.with_name("alltoallv_shapes.csv")
COLUMNS = (
    *("nodes", "ppn", "algorithm", "radix", "batch", "distribution", "largest_bytes", "time_s", "mean_bytes"),
    *("measured_largest_bytes", "peers", "deviation_bytes", "skewness", "quartile_1_bytes", "quartile_3_bytes"),
)
SIZES = (8, 128, 32, 512, 1024)  # bytes of the largest block, uniformly drawn
TRAINING = tuple(Shape(nodes, 16) for nodes in (16, 32, 48))
HELD_OUT = (Shape(64, 16), Shape(80, 16))
# At 2,048 ranks spread-out takes minutes and 15 GB for one exchange of larger blocks.
LARGEST = Shape(128, 16)
LARGEST_SIZES = (8, 128)
# Of 4,096 ranks one exchange by the library is 17 million messages: only what is chosen is compared with it.
HUGE = Shape(256, 16)
# Parts of a job of 64 x 16: every count of nodes that is tuned, with powers of two of the ranks on each.
PARTS = tuple(Shape(nodes, ppn) for nodes in counts(64) for ppn in (1, 2, 4, 8, 16) if nodes * ppn > 2)
_FEW_RANKS = 128  # up to these every setting that the tuner knows is simulated
SHAPES_OF_BLOCKS = ("uniform", "constant", "power", "skewed", "sparse", "empty")


def exhaustive(shape: Shape) -> list[Setting]:
    """Every setting of the grid. Radices over an eighth of the ranks have nearly as many messages as spread-out has."""
    found = [LIBRARY, *(Setting("linear", 0, batch) for batch in (0, 8, 32))]
    for radix in radices(shape.ranks):
        if radix <= shape.ranks // 8:
            found += [Setting("parata", radix, batch) for batch in (0, 4)]
    for radix in sorted({2, isqrt(shape.ppn), shape.ppn}):
        found += [Setting("hieata", radix, batch) for batch in (0, 1, 4, 16)]
    return found


def wanted() -> Iterator[tuple[Shape, list[tuple[Setting, Pattern]]]]:
    for shape in (TRAINING[1], *HELD_OUT, TRAINING[2]):
        yield shape, [(setting, Pattern("uniform", size)) for size in SIZES for setting in exhaustive(shape)]
    yield LARGEST, [(setting, Pattern("uniform", size)) for size in LARGEST_SIZES for setting in exhaustive(LARGEST)]
    small = TRAINING[0]
    patterns = [Pattern(kind, size) for kind in SHAPES_OF_BLOCKS for size in SIZES]
    yield small, [(setting, pattern) for pattern in patterns for setting in exhaustive(small)]


def wanted_on(network: str) -> Iterator[tuple[Shape, list[tuple[Setting, Pattern]]]]:
    """The same on another network than the fat tree: uniform blocks on fewer counts of ranks."""
    for shape in (*trained_on(network), *held_out(network)):
        yield shape, [(setting, Pattern("uniform", size)) for size in SIZES for setting in exhaustive(shape)]


def trained_on(network: str) -> tuple[Shape, ...]:
    return TRAINING if network == NETWORKS[0] else TRAINING[:2]


def held_out(network: str) -> tuple[Shape, ...]:
    return HELD_OUT if network == NETWORKS[0] else HELD_OUT[:1]


def of_smpi() -> Iterator[tuple[Shape, list[tuple[Setting, Pattern]]]]:
    """Some of the same on SimGrid, to compare; few of 1,024 ranks, which take it minutes."""
    few = [Setting("parata", 2), Setting("parata", 16), Setting("hieata", 16), Setting("hieata", 16, 4)]
    more = [LIBRARY, Setting("linear", 0, 32), Setting("parata", 4), Setting("parata", 8, 1)]
    yield Shape(16, 16), [(setting, Pattern("uniform", size)) for size in (8, 128, 1024) for setting in few]
    yield Shape(16, 16), [(setting, Pattern("uniform", size)) for size in (32, 512) for setting in more]
    large = [Setting("parata", 2), Setting("parata", 4), Setting("parata", 8, 1), Setting("hieata", 16, 1)]
    yield Shape(64, 16), [(setting, Pattern("uniform", size)) for size in (32, 512) for setting in large]


def of_parts() -> Iterator[tuple[Shape, list[tuple[Setting, Pattern]]]]:
    """The cheapest first; without what TABLE has."""
    known = {(timing.shape, timing.setting, timing.pattern) for timing in load_table()}
    for shape in sorted(PARTS, key=lambda shape: shape.ranks):
        settings = candidates(shape) if shape.ranks <= _FEW_RANKS else exhaustive(shape)
        asked = [(setting, Pattern("uniform", size)) for size in SIZES for setting in settings]
        yield shape, [point for point in asked if (shape, *point) not in known]


def load_table(path: Path = TABLE) -> list[Timing]:
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            setting = Setting(row["algorithm"], int(row["radix"]), int(row["batch"]))
            pattern = Pattern(row["distribution"], int(row["largest_bytes"]))
            numbers = [float(row[name]) for name in COLUMNS[7:]]
            found.append(Timing(Shape(int(row["nodes"]), int(row["ppn"])), setting, pattern, *numbers))  # type: ignore[arg-type]
    return found


def append(path: Path, timing: Timing) -> None:
    numbers = [f"{value:.7g}" for value in astuple(timing)[3:]]
    setting, pattern = timing.setting, timing.pattern
    row = [timing.shape.nodes, timing.shape.ppn, setting.algorithm, setting.radix, setting.batch]
    row += [pattern.distribution, pattern.largest, *numbers]
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(",".join(map(str, row)) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record simulated times of the non-uniform all-to-all.")
    parser.add_argument("--smpi", action="store_true", help="the points for the comparison with SimGrid")
    parser.add_argument("--shapes", action="store_true", help="the parts of a job of 64 x 16")
    parser.add_argument("--network", choices=NETWORKS, default=NETWORKS[0])
    given = parser.parse_args()
    smpi, network = given.smpi, given.network
    if smpi:
        table, points = SMPI_TABLE, of_smpi()
    elif given.shapes:
        table, points = SHAPES_TABLE, of_parts()
    else:
        table, points = TABLES[network], wanted() if network == NETWORKS[0] else wanted_on(network)
    known = {(one.shape, one.setting, one.pattern) for one in load_table(table)} if table.exists() else set()
    with tempfile.TemporaryDirectory() as name:
        program = (compile_sweep if smpi else compile_cluster)(Path(name))
        run = simulate if smpi else partial(simulate_own, network=network)
        for shape, asked in points:
            missing = [point for point in asked if (shape, *point) not in known]
            if not missing:
                continue
            for timing in run(program, shape, missing):
                append(table, timing)


if __name__ == "__main__":
    main()
