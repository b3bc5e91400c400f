"""MPI_Alltoallv by a table: in unchanged programs, the applications of examples/, and by name from mpi4py."""

import os
import sys
from math import isqrt
from pathlib import Path

import pytest
from jobs import ON_EITHER, crowded, for_mpi4py

from colltune.alltoallv.interposed import with_alltoallv
from colltune.alltoallv.lookup_table import FILLS, FIRST_CALL, TABLE, AlltoallvRule, Setting, TableEntry, save_table
from colltune.core.errors import InputError
from colltune.mpi.installation import Installation
from commands import run_to_end
from compiled import program, shared


def table(path: Path, *rules: tuple[int, int, str, int], first_call: int = FIRST_CALL) -> Path:
    """A table for 3 to 64 ranks; a rule is its first and last average in bytes, an algorithm and a radix."""
    of_any_fill = [
        AlltoallvRule(low, high, Setting(name, radix), tuple(range(len(FILLS)))) for low, high, name, radix in rules
    ]
    save_table(path, [TableEntry((3, 64), (1, 64), tuple(of_any_fill), first_call)], {})
    return path


@pytest.fixture(scope="module")
def application(mpi: Installation) -> str:
    return program(mpi.mpicc, "alltoallv_application.c")


def ran(mpi: Installation, made: str, where: Path, ranks: int) -> tuple[str, list[int]]:
    command = [str(mpi.mpiexec), "-n", str(ranks), made, "300"]
    environment = {**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
    arguments, variables = with_alltoallv(command, where, environment)
    done = run_to_end(arguments, env=variables, check=True)
    words = done.stdout.split()
    return " ".join(words[:2]), [int(word) for word in words[3:]]


@pytest.mark.parametrize("ranks", [4, 5])
def test_a_program_gets_its_algorithms_from_the_table_alike_on_all_ranks(
    mpi: Installation, application: str, tmp_path: Path, ranks: int
) -> None:
    rules = [(0, 47, "parata", 2), (48, 1535, "hieata", 2), (1536, 99999, "linear", 0)]
    verdict, counts = ran(mpi, application, table(tmp_path / "table.rules", *rules), ranks)
    assert verdict == "wrong=0 alike=1"
    assert sum(counts) == 300
    assert sum(1 for count in counts[1:] if count > 0) >= 2, counts


@pytest.mark.parametrize(("algorithm", "radix"), [("parata", 2), ("linear", 0)])
def test_calls_whose_data_have_gaps_are_the_librarys(
    mpi: Installation, tmp_path: Path, algorithm: str, radix: int
) -> None:
    """By an algorithm that carries what the ranks agree on, and by one that does not."""
    made = program(mpi.mpicc, "alltoallv_gaps.c")
    rules = table(tmp_path / "table.rules", (0, 99999, algorithm, radix))
    arguments, variables = with_alltoallv([str(mpi.mpiexec), "-n", "4", made], rules, dict(os.environ))
    done = run_to_end(arguments, env=variables)
    # Numbers, a type without gaps, gaps at one rank alone, gaps everywhere in MPI_Alltoallw, numbers again.
    assert done.stdout.split() == ["wrong=0", "tuned", "20", "20", "0", "0", "20"], done.stdout + done.stderr


def test_the_table_takes_over_at_the_call_that_it_names(mpi: Installation, application: str, tmp_path: Path) -> None:
    late = table(tmp_path / "table.rules", (0, 99999, "parata", 2), first_call=200)
    verdict, counts = ran(mpi, application, late, 4)
    assert verdict == "wrong=0 alike=1"
    assert sum(counts) == 300
    assert counts[0] >= 199
    assert 0 < sum(counts[1:]) <= 101


def test_a_table_of_other_ranks_or_a_broken_one_leaves_all_to_the_library(
    mpi: Installation, application: str, tmp_path: Path
) -> None:
    beside = table(tmp_path / "table.rules", (0, 99999, "parata", 2))
    beside.write_text(beside.read_text().replace("3..64", "7..7"))
    assert ran(mpi, application, beside, 3) == ("wrong=0 alike=1", [300, 0, 0, 0, 0, 0, 0])


def test_a_table_of_another_mpi_is_refused(mpi: Installation, tmp_path: Path) -> None:
    command = [str(mpi.mpiexec), "-n", "3", "true"]
    save_table(tmp_path / TABLE, [], {"mpi": str(mpi.library), "mpi_build": mpi.build})
    assert with_alltoallv(command, tmp_path, os.environ)
    save_table(tmp_path / TABLE, [], {"mpi": str(mpi.library), "mpi_build": "0" * 64})
    with pytest.raises(InputError, match=f"build {'0' * 40}, here {mpi.build[:40]}"):
        with_alltoallv(command, tmp_path, os.environ)


def test_a_table_of_an_earlier_colltune_is_refused_in_one_line(
    mpi: Installation, application: str, tmp_path: Path
) -> None:
    earlier = table(tmp_path / "table.rules", (0, 99999, "parata", 2))
    command, variables = with_alltoallv([str(mpi.mpiexec), "-n", "3", str(application), "300"], earlier, os.environ)
    earlier.write_text('{"format": 1, "entries": []}\n')
    with pytest.raises(InputError, match="not a look-up table of this colltune") as refused:
        with_alltoallv(command, earlier, os.environ)
    assert "colltune tune alltoallv" in str(refused.value.next_step)
    done = run_to_end(command, env=variables)
    assert done.stdout.startswith("wrong=0 alike=1"), done.stderr
    assert done.stderr.count("tune again with this colltune") == 1


_PROGRAM = Path(__file__).parents[1] / "native" / "alltoallv_python.py"


def _ran(installation: Installation, where: Path, *, preloaded: bool = False, named: str | None = None) -> str:
    pytest.importorskip("mpi4py")
    command = [str(installation.mpiexec), *crowded(installation), "-n", "4", sys.executable, str(_PROGRAM)]
    environment = {
        **os.environ,
        **ON_EITHER,
        **for_mpi4py(installation),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "COLLTUNE_MPIEXEC": named or str(installation.mpiexec),
        "COLLTUNE_ALLTOALLV": str(where),
    }
    if preloaded:
        command, environment = with_alltoallv(command, where, environment)
    done = run_to_end(command, env=environment)
    return done.stdout + done.stderr


def test_a_python_program_gets_what_mpi4py_gives(either: Installation, tmp_path: Path) -> None:
    where = table(tmp_path / "table.rules", (0, 99999, "parata", 2))
    assert _ran(either, where).strip() == "right"


def test_a_preloaded_library_is_used(mpi: Installation, tmp_path: Path) -> None:
    where = table(tmp_path / "table.rules", (0, 99999, "hieata", 2))
    assert _ran(mpi, where, preloaded=True, named="/no/such/mpiexec").strip() == "right"


def test_all_ranks_say_what_is_missing(mpi: Installation, tmp_path: Path) -> None:
    said = _ran(mpi, tmp_path / "none.json", named="/no/such/mpiexec")
    assert "the tuned alltoallv cannot be loaded" in said
    assert "/no/such/mpiexec" in said


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
        done = run_to_end(job, env=environment, check=True)
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


@pytest.mark.parametrize(
    ("name", "times", "ranks", "graph", "vertices"),
    [
        *(("path_finding", "1", *one) for one in ((2, "random", "300"), (3, "rmat", "256"), (4, "random", "300"))),
        *(("k_core", "2", *one) for one in ((2, "random", "500"), (3, "rmat", "256"), (4, "rmat", "1024"))),
    ],
)
def test_paths_and_core_numbers_are_those_of_a_serial_algorithm(
    examples: Examples, name: str, times: str, ranks: int, graph: str, vertices: str
) -> None:
    """The closure of the edges, and taking vertices away."""
    lines = examples.run(ranks, name, graph, vertices, times, "check")
    assert lines[2].endswith("the same"), lines
    assert result(examples.run(1, name, graph, vertices)) == result(lines)


def test_paths_of_a_chain_and_a_grid_are_as_many_as_can_be_counted_by_hand(examples: Examples) -> None:
    chain = examples.run(2, "path_finding", "chain", "60")[0].split()
    assert (int(chain[1]), int(chain[5])) == (
        60 * 59 // 2,
        59,
    )  # every join is longer by one edge; the last finds nothing
    side = isqrt(110)
    corners = (side * (side + 1) // 2) ** 2  # of all rectangles, those of a single vertex included
    assert int(examples.run(2, "path_finding", "grid", "110")[0].split()[1]) == corners - side**2


def test_core_numbers_of_a_chain_and_a_grid_are_known(examples: Examples) -> None:
    chain, grid = (examples.run(3, "k_core", graph, "60", "1", "check") for graph in ("chain", "grid"))
    assert (chain[0].split()[1], chain[2][-4:]) == ("1", "same")
    assert (grid[0].split()[1], grid[2][-4:]) == ("2", "same")


@pytest.mark.parametrize("algorithm", ["parata", "hieata"])
def test_every_algorithm_finds_the_same(examples: Examples, algorithm: str) -> None:
    table = examples.forced(algorithm)
    for name, ranks, *arguments in (
        ("path_finding", 4, "random", "300"),
        ("path_finding", 4, "rmat", "256"),
        ("k_core", 4, "random", "500"),
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
