"""`run --prove`: how many calls of a program met a rule, by the library's file and live, on both MPIs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import OPENMPI, QUIET

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.deploy.live_selector import with_live
from colltune.machine.compile import build_library
from colltune.mpi.installation import Installation, Library
from colltune.store.tuning import save_tuning
from commands import run_to_end
from compiled import program

COLLTUNE = [sys.executable, "-c", "from colltune.cli import main; main()"]
ON_EITHER = {**OPENMPI, **QUIET, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
Kit = tuple[Installation, str, Path]


@pytest.fixture(scope="module", params=["mpi", "openmpi"])
def kit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """An MPI, a program, and a tuning with one rule: allreduce of up to 4 KiB on 1 x 2 ranks."""
    mpi: Installation = request.getfixturevalue(request.param)
    place = tmp_path_factory.mktemp("effect")
    bench = open_workbench(MachineOptions(mpiexec=str(mpi.mpiexec), nodes=1, ppn=2), os.environ)
    rules = (Rule(2, 2, 4096, Choice("recursive_doubling")), Rule(2, 2, None, DEFAULT), Rule(2, None, None, DEFAULT))
    rule_set = RuleSet("allreduce", SizeBasis.MESSAGE, (*rules, Rule(None, None, None, DEFAULT)))
    tuning = bench.tuning({"allreduce": bench.expressible(rule_set)})
    save_tuning(place / "tuned", with_live(bench, tuning, {"allreduce": rule_set}))
    return mpi, program(mpi.mpicc, "some_sums.c"), place / "tuned"


def run(kit: Kit, flags: list[str], ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    mpi, sums, tuned = kit
    command = [*COLLTUNE, "run", *flags, str(tuned), "--", str(mpi.mpiexec), "-n", str(ranks), sums, *arguments]
    environment = {**os.environ, **ON_EITHER}
    return run_to_end(command, env=environment)


@pytest.mark.parametrize("way", ["file", "live"])
def test_calls_that_met_a_rule_are_counted(kit: Kit, way: str) -> None:
    done = run(kit, ["--prove", "--via", way], 2, "single")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "colltune: the tuning was in force" in done.stderr
    # Open MPI takes a choice from a communicator that the selector makes after the first call that meets it.
    met = 9 if way == "live" and kit[0].library is Library.OPENMPI else 10
    assert f"{met} of 15 calls of allreduce met a rule" in done.stderr
    assert "2 calls of allreduce were non-blocking" in done.stderr
    assert "Traceback" not in done.stderr
    assert run(kit, ["--prove", "--via", way], 2, "single", "7").returncode == 7


@pytest.mark.parametrize("way", ["file", "live"])
def test_a_program_whose_calls_met_none_is_told_why(kit: Kit, way: str) -> None:
    done = run(kit, ["--prove", "--via", way], 4, "multiple")
    assert (done.returncode, done.stdout) == (3, "done\n"), done.stderr
    assert "0 of 15 calls of allreduce met a rule" in done.stderr
    assert "rules for 1 x 2; this program ran 1 x 4 with MPI_THREAD_MULTIPLE" in done.stderr
    assert "not proven" in done.stderr


def test_a_program_that_counts_nothing_is_told(kit: Kit, cache: Path, tmp_path: Path) -> None:
    mpi, _, tuned = kit
    build_library(mpi.mpicc)
    for path in (*cache.glob("libcolltune-*"), *cache.glob("probe-*")):
        shutil.copy(path, tmp_path)
    done = run_to_end(
        [*COLLTUNE, "run", "--prove", str(tuned), "--", str(mpi.mpiexec), "-n", "1", "true"],
        env={**os.environ, **ON_EITHER, "COLLTUNE_CACHE": str(tmp_path)},
    )
    assert "its calls were not counted: no program left a count" in done.stderr
    assert not list(tmp_path.glob("count-*"))
