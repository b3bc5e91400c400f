"""Intel MPI itself, where it is: the numbers of its presets, and that what is exported decides.

It is 129 MB and no part of `make test`. To run this: python -m venv .venv-intelmpi, and there pip install impi-rt and
pip install --no-deps impi-devel of the same version; or name its mpiexec in COLLTUNE_TEST_INTELMPI.
"""

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from colltune.catalog import load
from colltune.core.choice import Choice
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.emit.intelmpi import IntelMpiEmitter
from commands import run_to_end

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parents[1] / "native" / "count_operations.c"
MPIEXEC = Path(os.environ.get("COLLTUNE_TEST_INTELMPI", ROOT / ".venv-intelmpi" / "bin" / "mpiexec"))
# Calls of the operation/bytes on each of 4 ranks for 1,024 bytes (2021.18.1, shared memory): what each name means.
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
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if not MPIEXEC.is_file() or not MPIEXEC.with_name("mpicc").is_file():
        pytest.skip("no Intel MPI with its compiler wrapper")
    environment = {**os.environ, "I_MPI_ROOT": str(MPIEXEC.parents[1]), "I_MPI_FABRICS": "shm"}
    environment["PATH"] = f"{MPIEXEC.parent}:{environment['PATH']}"
    program = tmp_path_factory.mktemp("intel") / "count"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([str(MPIEXEC.with_name("mpicc")), *flags, str(PROGRAM), "-o", str(program)], check=True,
                   env=environment)  # fmt: skip

    def run(ranks: int, words: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
        command = [str(MPIEXEC), "-n", str(ranks), str(program), *words]
        done = run_to_end(command, env={**environment, **variables})
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def counted(run: Run, ranks: int, collective: str, sizes: Sequence[int], **variables: str) -> dict[int, str]:
    lines = run(ranks, [collective, *map(str, sizes)], **variables).stdout.splitlines()
    return {int(line.partition(" ")[0]): line.partition(" ")[2] for line in lines}


def test_every_number_of_the_catalogue_is_taken_and_others_are_not(run: Run) -> None:
    catalogue = load("intelmpi", "2021.18")
    entries = [entry for entry in catalogue.entries.values() if entry.algorithms]
    numbers = {f"I_MPI_ADJUST_{e.name.upper()}": {a.number for a in e.algorithms} for e in entries}
    for index in range(max(map(len, numbers.values()))):
        chosen = {name: str(sorted(some)[min(index, len(some) - 1)]) for name, some in numbers.items()}
        assert "Incorrect algorithm" not in run(2, ["allreduce", "8"], I_MPI_DEBUG="4", **chosen).stdout
    wrong = run(2, ["allreduce", "8"], I_MPI_DEBUG="4", **dict.fromkeys(numbers, "77")).stdout
    assert wrong.count("Incorrect algorithm") == len(numbers)


def test_reductions_run_as_they_are_called(run: Run) -> None:
    catalogue = load("intelmpi", "2021.18")
    for (collective, key), expected in EACH_RANK.items():
        number = catalogue.algorithm(collective, Choice(key)).number
        found = counted(run, 4, collective, [1024], **{f"I_MPI_ADJUST_{collective.upper()}": str(number)})
        assert found == {1024: expected}, (collective, key)


def test_the_exports_decide_at_each_bound_and_beside_it(run: Run, tmp_path: Path) -> None:
    """By bytes of the vector, bound included."""
    rules = (Rule(None, None, 1000, Choice("ring")), Rule(None, None, 3000, Choice("recursive_doubling")),
             Rule(None, None, None, Choice("rabenseifner")))  # fmt: skip
    emitter = IntelMpiEmitter(load("intelmpi", "2021.18"))
    [(name, data)] = emitter.emit([RuleSet("allreduce", SizeBasis.MESSAGE, rules)]).items()
    (tmp_path / name).write_bytes(data)
    lines = [line for line in data.decode().splitlines() if line.startswith("export ")]
    variables = dict(shlex.split(line)[1].split("=", 1) for line in lines)
    sizes = [999, 1000, 1001, 2999, 3000, 3001, 100_000]
    for ranks in (4, 5):
        forced = {n: counted(run, ranks, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE=str(n)) for n in (8, 1, 2)}
        found = counted(run, ranks, "allreduce", sizes, **variables)
        assert len({by_size[1000] for by_size in forced.values()}) == 3
        assert found == {size: forced[8 if size <= 1000 else 1 if size <= 3000 else 2][size] for size in sizes}


def test_ranges_that_leave_something_out_do_not_keep_the_default(run: Run) -> None:
    """Why nothing is exported where a default stays: ranges of ranks, gaps and ends mean nothing to the library."""
    sizes = [1001, 3001]
    ring = counted(run, 4, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE="8")
    assert counted(run, 4, "allreduce", sizes) != ring
    for text in ("8:0-1000", "8:0-1000@4-4", "8:0-5000@5-9"):
        assert counted(run, 4, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE=text) == ring, text
    assert counted(run, 4, "allreduce", sizes, I_MPI_ADJUST_ALLREDUCE="0") != counted(run, 4, "allreduce", sizes)
