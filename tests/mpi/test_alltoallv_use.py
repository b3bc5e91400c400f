"""Unchanged programs with MPI_Alltoallv by a table, and the selection protocol on a real MPI."""

import os
from pathlib import Path

import pytest

from colltune.alltoallv.interposed import with_alltoallv
from colltune.alltoallv.lookup_table import FILLS, FIRST_CALL, TABLE, AlltoallvRule, Setting, TableEntry, save_table
from colltune.core.errors import InputError
from colltune.mpi.installation import Installation
from commands import run_to_end
from compiled import program


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
    done = run_to_end(arguments, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
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
