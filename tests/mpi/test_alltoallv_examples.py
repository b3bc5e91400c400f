"""The applications of examples/ that exchange unequal blocks: right, and the same whichever algorithm carries them."""

import os
import sys
from math import isqrt
from pathlib import Path

import pytest

from colltune.alltoallv.lookup_table import FILLS, AlltoallvRule, Setting, TableEntry, save_table
from colltune.mpi.installation import Installation
from commands import run_to_end
from compiled import program, shared

_ROOT = Path(__file__).parents[2]


class Examples:
    """The programs, compiled, and what they print of their result."""

    def __init__(self, mpi: Installation, directory: Path) -> None:
        self.mpi, self.directory = mpi, directory
        self.says_last = shared("alltoallv_last.c", compiler=mpi.mpicc)

    def run(self, ranks: int, name: str, *arguments: str, table: Path | None = None) -> list[str]:
        made = program(self.mpi.mpicc, _ROOT / "examples" / f"{name}.c", "-O2")
        job = [str(self.mpi.mpiexec), "-n", str(ranks), made, *arguments]
        environment = {**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "COLLTUNE_ALLTOALLV_NODE": "2"}
        if table is not None:
            job = [sys.executable, "-m", "colltune", "run", "--alltoallv", str(table), "--", *job]
            environment["LD_PRELOAD"] = str(self.says_last)
        done = run_to_end(job, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    def forced(self, algorithm: str, radix: int = 2) -> Path:
        """A table that leaves no call with the library."""
        rule = AlltoallvRule(0, 1 << 40, Setting(algorithm, radix, direct_above=4096), tuple(range(len(FILLS))))
        path = self.directory / f"{algorithm}.rules"
        save_table(path, [TableEntry((3, 64), (1, 64), (rule,))], {})
        return path


@pytest.fixture(scope="module")
def examples(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Examples:
    return Examples(mpi, tmp_path_factory.mktemp("examples"))


def result(lines: list[str]) -> str:
    """What a program found, without how long it took."""
    return lines[0]


@pytest.mark.parametrize(("ranks", "graph", "vertices"), [(2, "random", 300), (3, "rmat", 256), (4, "random", 300)])
def test_paths_are_those_of_the_serial_closure(examples: Examples, ranks: int, graph: str, vertices: int) -> None:
    lines = examples.run(ranks, "path_finding", graph, str(vertices), "1", "check")
    assert lines[2].endswith("the same"), lines
    assert result(examples.run(1, "path_finding", graph, str(vertices))) == result(lines)


def test_paths_of_a_chain_and_a_grid_are_as_many_as_can_be_counted_by_hand(examples: Examples) -> None:
    chain = examples.run(2, "path_finding", "chain", "60")[0].split()
    assert (int(chain[1]), int(chain[5])) == (
        60 * 59 // 2,
        59,
    )  # every join is longer by one edge; the last finds nothing
    side = isqrt(110)
    corners = (side * (side + 1) // 2) ** 2  # of all rectangles, those of a single vertex included
    assert int(examples.run(2, "path_finding", "grid", "110")[0].split()[1]) == corners - side**2


@pytest.mark.parametrize("algorithm", ["parata", "hieata"])
def test_every_algorithm_finds_the_same(examples: Examples, algorithm: str) -> None:
    table = examples.forced(algorithm)
    for name, ranks, *arguments in (
        ("path_finding", 4, "random", "300"),
        ("path_finding", 4, "rmat", "256"),
        ("sample_sort", 4, "2000", "skewed", "3"),
        ("fft_transpose", 5, "16", "2"),
    ):
        plain = examples.run(ranks, name, *arguments)
        tuned = examples.run(ranks, name, *arguments, table=table)
        assert tuned[-1] == f"last {algorithm}"
        if name != "fft_transpose":  # that one prints times alone, and fails if its data do not come back
            assert result(tuned) == result(plain)


@pytest.mark.parametrize("kind", ["uniform", "skewed"])
def test_keys_are_sorted_and_complete(examples: Examples, kind: str) -> None:
    for ranks in (1, 3):
        assert examples.run(ranks, "sample_sort", "1000", kind)[0].endswith("sorted")
