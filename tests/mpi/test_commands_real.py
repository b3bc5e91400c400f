"""`explain`, `diff` and `run --prove` with a tuning for the MPICH that is here."""

import os
from pathlib import Path

import pytest
from jobs import QUIET

import commands
from colltune import doctor
from colltune.catalog import load
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, NONBLOCKING, TUNABLE, Choice, Environment, SizeBasis, format_choices
from colltune.emit.contract import variables_for
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.mpi.installation import Installation
from colltune.store.tuning import Tuning, save_tuning
from compiled import program

RULES = RuleSet(
    "allreduce",
    SizeBasis.MESSAGE,
    (
        Rule(2, 2, 4096, Choice("recursive_doubling")),
        Rule(2, 2, None, DEFAULT),
        Rule(2, None, None, DEFAULT),
        Rule(None, None, None, DEFAULT),
    ),
)


@pytest.fixture(scope="module")
def tuned(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tuned")
    write(directory, mpi, [RULES])
    return directory


@pytest.fixture(scope="module")
def application(mpi: Installation) -> str:
    return program(mpi.mpicc, "one_sum.c")


def write(directory: Path, mpi: Installation, rule_sets: list[RuleSet]) -> None:
    emitter = MpichEmitter.from_library(mpi.libmpi, mpi.version)
    written = emitter.emit(rule_sets)
    files = {f"mpich/{name}": data for name, data in written.items()}
    facts = {"mpiexec": str(mpi.mpiexec), "libmpi": str(mpi.libmpi)}
    environment = Environment("mpich", mpi.version, mpi.build, "this machine", 1, 2, "single", facts)
    variables = variables_for(emitter, Path("{directory}/mpich"), written)
    save_tuning(directory, Tuning(environment, {r.collective: r for r in rule_sets}, files, variables))


def colltune(*arguments: object, **variables: str) -> commands.Done:
    return commands.colltune(*map(str, arguments), environ={**os.environ, **QUIET, **variables})


def line(text: str, label: str) -> str:
    return next(row for row in text.splitlines() if row.split()[:1] == [label]).strip()


def test_explain_names_what_runs_and_what_the_library_would_run(tuned: Path) -> None:
    text = colltune("explain", tuned, "allreduce", "--size", "4KiB").stdout
    assert line(text, "runs").endswith("MPIR_Allreduce_intra_recursive_doubling")
    assert "composition_gamma" in line(text, "default")
    beyond = colltune("explain", tuned, "allreduce", "--size", "8KiB").stdout
    assert line(beyond, "runs").removeprefix("runs").strip() == line(beyond, "default").removeprefix("default").strip()


def test_the_default_is_that_of_the_shape(tuned: Path) -> None:
    two_nodes = colltune("explain", tuned, "allreduce", "--size", "4KiB", "--nodes", "2").stdout
    assert "composition_gamma" not in line(two_nodes, "default")


def test_diff_finds_the_one_rule(mpi: Installation, tuned: Path, tmp_path: Path) -> None:
    write(tmp_path, mpi, [RuleSet.always("allreduce", SizeBasis.MESSAGE)])
    done = colltune("report", tuned, "--diff", tmp_path)
    assert done.returncode == 1
    row = done.stdout.splitlines()[-1].split()
    assert row == ["allreduce", "1", "to", "2", "2", "up", "to", "4", "KiB", "recursive_doubling", "default"]
    assert colltune("report", tuned, "--diff", tuned).returncode == 0


def test_run_proves_that_the_files_were_loaded(mpi: Installation, tuned: Path, application: str) -> None:
    done = colltune("run", "--prove", tuned, "--", mpi.mpiexec, "-n", "2", application)
    assert (done.returncode, done.stdout) == (0, "sum 1\nsum 1\n")
    evidence = "MPICH says that it loaded" if int(mpi.version.split(".")[0]) >= 5 else "the kernel saw"
    assert f"in force: {evidence}" in done.stderr


def test_a_tuning_without_a_rule_sets_nothing(mpi: Installation, tmp_path: Path, application: str) -> None:
    write(tmp_path, mpi, [RuleSet.always("allreduce", SizeBasis.MESSAGE)])
    assert colltune("env", tmp_path).stdout == ""
    done = colltune("run", "--prove", tmp_path, "--", mpi.mpiexec, "-n", "2", application)
    assert (done.returncode, done.stdout) == (0, "sum 1\nsum 1\n")
    assert "no rule" in done.stderr
    told = colltune("run", tmp_path, "--", "env").stdout
    assert "TUNING_JSON_FILE" not in told


def test_run_keeps_the_exit_code_of_a_proven_job(mpi: Installation, tuned: Path, application: str) -> None:
    done = colltune("run", tuned, "--prove", "--", mpi.mpiexec, "-n", "2", application, "fail")
    assert done.returncode == 6
    assert "in force" in done.stderr


def test_a_job_that_drops_the_setting_is_not_proven(mpi: Installation, tuned: Path, application: str) -> None:
    variable = "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"
    script = f"unset {variable}; exec {mpi.mpiexec} -n 2 {application}"
    done = colltune("run", "--prove", tuned, "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (3, "sum 1\nsum 1\n")
    assert "not proven" in done.stderr


def test_a_setting_that_passes_the_files_by_is_no_proof(mpi: Installation, tuned: Path, application: str) -> None:
    command = ["run", "--prove", tuned, "--", mpi.mpiexec, "-n", "2", application]
    done = colltune(*command, MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM="reduce_scatter_allgather")
    assert done.returncode == 3
    assert "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=reduce_scatter_allgather" in done.stderr


def test_the_diagnosis_is_the_same_in_python_and_on_the_command_line(mpi: Installation) -> None:
    found = doctor(mpiexec=str(mpi.mpiexec), ppn=2)
    assert (found.installation, found.ranks) == (mpi, 2)
    assert DEFAULT in found.choices["bcast"]
    assert set(found.choices) | set(found.nothing_to_tune) == set(TUNABLE)
    catalogue = load("mpich", mpi.version)
    said = colltune("doctor", "--all", "--mpiexec", mpi.mpiexec, "--ppn", 2).stdout
    for collective in TUNABLE:
        expected = found.nothing_to_tune.get(collective) or format_choices(found.choices[collective])
        in_file = collective in found.nothing_to_tune or catalogue.collective(collective).in_file
        way = "" if in_file else " (by colltune run --via live)"
        assert f"{collective:<14} {expected}{way}\n" in said
    assert f"2 ranks on {found.hosts}" in said
    assert not found.nonblocking.keys() & set(NONBLOCKING)  # these can be tuned
    assert found.nonblocking["ialltoallv"]  # MPICH has a variable for each of them
    assert found.neighbourhood["ineighbor_alltoallv"]
    assert "cannot be steered" not in said
    assert f"{'persistent':<14} {found.persistent}\n" in said
