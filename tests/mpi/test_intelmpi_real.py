"""Intel MPI itself, where it is: what its presets are, that a table decides, and the two commands of a user.

It is 129 MB and no part of `make test`. To run this: make .venv-intelmpi/.ready, or name an mpiexec of it in
COLLTUNE_TEST_INTELMPI.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from jobs import colltune

from colltune.bench.backends.intelmpi import find_obstacles
from colltune.catalog import load
from colltune.core.decision_table import DecisionTable
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, Choice, SizeBasis, Status
from colltune.emit.intelmpi import DUMP, FILE, IntelMpiEmitter, Presets, asked, read_table
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import run_to_end, shell_script

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parents[1] / "native" / "count_operations.c"
MPIEXEC = Path(os.environ.get("COLLTUNE_TEST_INTELMPI", ROOT / ".venv-intelmpi" / "bin" / "mpiexec"))
# Calls of the operation/bytes on each of 4 ranks for 1,024 bytes: what each name means (2021.17.2, 2021.18.1).
EACH_RANK = {
    ("allreduce", "recursive_doubling"): "2/2048 2/2048 2/2048 2/2048",
    ("allreduce", "rabenseifner"): "2/768 2/768 2/768 2/768",
    ("allreduce", "ring"): "3/768 3/768 3/768 3/768",
    ("allreduce", "shumilin_ring"): "1/1024 0/0 1/1024 1/1024",
    ("allreduce", "binomial_gather_scatter"): "2/2048 0/0 1/1024 0/0",
    ("reduce", "shumilin"): "1/1024 1/1024 1/1024 0/0",
    ("reduce", "binomial"): "2/2048 0/0 1/1024 0/0",
    ("reduce", "rabenseifner"): "2/768 2/768 2/768 2/768",
    ("reduce_scatter", "recursive_halving"): "2/768 2/768 2/768 2/768",
    ("reduce_scatter", "pairwise"): "3/768 3/768 3/768 3/768",
    ("reduce_scatter", "recursive_doubling"): "3/1280 2/1280 2/1280 3/1280",
}
VERSION = "2021.17"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if not MPIEXEC.is_file() or not MPIEXEC.with_name("mpicc").is_file():
        pytest.skip("no Intel MPI with its compiler wrapper")
    environment = {**os.environ, "I_MPI_ROOT": str(MPIEXEC.parents[1]), "I_MPI_FABRICS": "shm"}
    environment |= {"I_MPI_THREAD_YIELD": "2", "I_MPI_WAIT_MODE": "0"}  # ranks without a core of their own
    environment["PATH"] = f"{MPIEXEC.parent}:{environment['PATH']}"
    program = tmp_path_factory.mktemp("intel") / "count"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([str(MPIEXEC.with_name("mpicc")), *flags, str(PROGRAM), "-o", str(program)], check=True,
                   env=environment)  # fmt: skip

    def run(ranks: int, words: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
        command = [str(MPIEXEC), "-n", str(ranks), str(program), *words]
        return run_to_end(command, env={**environment, **variables}, check=True)

    return run


def counted(run: Run, ranks: int, collective: str, sizes: Sequence[int], **variables: str) -> dict[int, str]:
    lines = run(ranks, [collective, *map(str, sizes)], **variables).stdout.splitlines()
    return {int(line.partition(" ")[0]): line.partition(" ")[2] for line in lines}


def test_every_number_of_the_catalogue_is_taken_and_others_are_not(run: Run) -> None:
    catalogue = load("intelmpi", VERSION)
    entries = [entry for entry in catalogue.entries.values() if entry.algorithms]
    numbers = {f"I_MPI_ADJUST_{e.name.upper()}": {a.number for a in e.algorithms} for e in entries}
    for index in range(max(map(len, numbers.values()))):
        chosen = {name: str(sorted(some)[min(index, len(some) - 1)]) for name, some in numbers.items()}
        assert "Incorrect algorithm" not in run(2, ["allreduce", "8"], I_MPI_DEBUG="4", **chosen).stdout
    wrong = run(2, ["allreduce", "8"], I_MPI_DEBUG="4", **dict.fromkeys(numbers, "77")).stdout
    assert wrong.count("Incorrect algorithm") == len(numbers)


def test_reductions_run_as_they_are_called(run: Run) -> None:
    catalogue = load("intelmpi", VERSION)
    for (collective, key), expected in EACH_RANK.items():
        number = catalogue.algorithm(collective, Choice(key)).number
        found = counted(run, 4, collective, [1024], **{f"I_MPI_ADJUST_{collective.upper()}": str(number)})
        assert found == {1024: expected}, (collective, key)


@pytest.fixture(scope="module")
def emitter(run: Run, tmp_path_factory: pytest.TempPathFactory) -> IntelMpiEmitter:
    place, catalogue = tmp_path_factory.mktemp("tables"), load("intelmpi", VERSION)
    variables, bounds = asked(catalogue)
    run(4, ["allreduce", "8"], I_MPI_TUNING_BIN_DUMP=str(place / "own"))
    run(4, ["allreduce", "8"], I_MPI_TUNING_BIN_DUMP=str(place / "named"), **variables)
    return IntelMpiEmitter(catalogue, Presets.of(*((place / n).read_bytes() for n in ("own", "named")), bounds))


def test_the_library_shows_what_every_preset_stands_for(emitter: IntelMpiEmitter) -> None:
    catalogue = load("intelmpi", VERSION)
    for name in (entry.name for entry in catalogue.entries.values() if entry.algorithms):
        assert all(emitter.has(name, choice) for choice in catalogue.choices(name)[1:]), name


def test_a_table_decides_at_its_bounds_and_leaves_all_else_to_the_library(
    run: Run, emitter: IntelMpiEmitter, tmp_path: Path
) -> None:
    """At the ranks per node, the ranks and the bytes of a rule, and one beside them what runs without it."""
    steps = Steps.of([(999, DEFAULT), (1000, Choice("ring")), (2999, DEFAULT), (3000, Choice("rabenseifner")),
                      (None, DEFAULT)])  # fmt: skip
    rules = DecisionTable.of_shapes("allreduce", SizeBasis.MESSAGE, {(1, 4): steps}).rule_set()
    files = emitter.emit([rules])
    assert emitter.parse(files, "allreduce") == rules
    (tmp_path / FILE).write_bytes(files[FILE])
    variables = emitter.environment(tmp_path)
    sizes = [8, 999, 1000, 1001, 2999, 3000, 3001, 100_000]
    for ranks in (2, 3, 4, 5):
        found = counted(run, ranks, "allreduce", sizes, **variables)
        expected = counted(run, ranks, "allreduce", sizes)
        for number, size in ((8, 1000), (2, 3000)) if ranks == 4 else ():
            forced = counted(run, 4, "allreduce", [size], I_MPI_ADJUST_ALLREDUCE=str(number))
            assert forced[size] != expected[size]
            expected |= forced
        assert found == expected, ranks


def test_the_library_read_the_table(run: Run, emitter: IntelMpiEmitter, tmp_path: Path) -> None:
    data = emitter.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("ring"))])[FILE]
    (tmp_path / FILE).write_bytes(data)
    again = tmp_path / "again"
    said = run(2, ["allreduce", "8"], I_MPI_DEBUG="4", **emitter.environment(tmp_path), **{DUMP: str(again)}).stdout
    assert f'Load tuning file: "{tmp_path / FILE}"' in said
    assert read_table(again.read_bytes()) == read_table(data)


def test_a_variable_goes_before_the_table(run: Run, emitter: IntelMpiEmitter, tmp_path: Path) -> None:
    """So that `run` names it as an obstacle."""
    rules = RuleSet.always("allreduce", SizeBasis.MESSAGE, Choice("rabenseifner"))
    (tmp_path / FILE).write_bytes(emitter.emit([rules])[FILE])
    table = emitter.environment(tmp_path)
    ring = counted(run, 4, "allreduce", [1024], I_MPI_ADJUST_ALLREDUCE="8")
    assert counted(run, 4, "allreduce", [1024], **table) != ring
    assert counted(run, 4, "allreduce", [1024], I_MPI_ADJUST_ALLREDUCE="8", **table) == ring
    assert [text.split()[0] for text in find_obstacles({"I_MPI_ADJUST_ALLREDUCE": "8", **table})] == [
        "I_MPI_ADJUST_ALLREDUCE"
    ]


def test_variables_cannot_leave_a_size_to_the_library(run: Run) -> None:
    """Why rules are a table: ranges of ranks, gaps and ends mean nothing to I_MPI_ADJUST_X."""
    sizes = [1001, 3001]
    ring = counted(run, 4, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE="8")
    assert counted(run, 4, "allreduce", sizes) != ring
    for text in ("8:0-1000", "8:0-1000@4-4", "8:0-5000@5-9"):
        assert counted(run, 4, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE=text) == ring, text
    assert counted(run, 4, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE="0") != counted(run, 4, "allreduce", sizes)


def test_two_commands_tune_a_program_and_run_it(run: Run, tmp_path: Path) -> None:
    del run
    out, program = tmp_path / "tuned", tmp_path / "print"
    crowded = {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_YIELD": "2", "I_MPI_WAIT_MODE": "0"}
    colltune(
        "tune", "allreduce", "bcast", "--mpiexec", str(MPIEXEC), "--ppn", "2", "--sizes", "64,1KiB",
        "--budget", "40s", "--out", str(out), **crowded,
        code=0,
    )  # fmt: skip
    samples = read_journal(out / JOURNAL).samples
    assert {sample.status for sample in samples} == {Status.OK}
    tried = {sample.choice for sample in samples if sample.scenario.collective == "allreduce"}
    assert len(tried) > len(load("intelmpi", VERSION).choices("allreduce")) // 2
    tuning = load_tuning(out)
    assert set(tuning.variables) <= {"I_MPI_TUNING_BIN"}
    shell_script(program, 'echo "table ${I_MPI_TUNING_BIN-none}"')
    ran = colltune("run", str(out), "--", str(MPIEXEC), "-n", "2", str(program), **crowded, code=0)
    named = str(out / "intelmpi" / FILE) if tuning.variables_at(out) else "none"
    assert ran.stdout.count(f"table {named}") == 2
    colltune("verify", "--results", str(out), "--mpiexec", str(MPIEXEC), **crowded, code=0)
