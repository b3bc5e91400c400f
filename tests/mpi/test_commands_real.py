"""`explain`, `diff`, `run --prove` and `compare` on real MPIs."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from jobs import ON_EITHER, OPENMPI, QUIET
from namespaces import NamespaceCluster
from one_rule import RULES, bench_of, write_tuning

import commands
from colltune import doctor
from colltune.catalog import load
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, TUNABLE, SizeBasis, format_choices
from colltune.deploy.live_selector import with_live
from colltune.mpi.installation import Installation, Library
from colltune.mpi.programs import library_for
from colltune.store.tuning import save_tuning
from compiled import program


@pytest.fixture(scope="module")
def tuned(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tuning(tmp_path_factory.mktemp("tuned"), mpi)


@pytest.fixture(scope="module")
def application(mpi: Installation) -> str:
    return program(mpi.mpicc, "one_sum.c")


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
    write_tuning(tmp_path, mpi, [RuleSet.always("allreduce", SizeBasis.MESSAGE)])
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
    write_tuning(tmp_path, mpi, [RuleSet.always("allreduce", SizeBasis.MESSAGE)])
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


CROWDED = {**OPENMPI, **QUIET, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
Kit = tuple[Installation, str, Path]


@pytest.fixture(scope="module")
def kit(either: Installation, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """An MPI, a program, and the tuning with one rule, for the live selector too."""
    bench, tuned = bench_of(either), tmp_path_factory.mktemp("effect") / "tuned"
    tuning = bench.tuning({"allreduce": bench.expressible(RULES)})
    save_tuning(tuned, with_live(bench, tuning, {"allreduce": RULES}))
    return either, program(either.mpicc, "some_sums.c"), tuned


def run(kit: Kit, flags: list[str], ranks: int, *arguments: str) -> commands.Done:
    mpi, sums, tuned = kit
    return colltune("run", *flags, tuned, "--", mpi.mpiexec, "-n", ranks, sums, *arguments, **CROWDED)


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
    library_for(mpi, cache)
    for path in [path for name in ("libcolltune", "shim", "entry") for path in cache.glob(f"{name}-*")]:
        shutil.copy(path, tmp_path)
    around = {**CROWDED, "COLLTUNE_CACHE": str(tmp_path)}
    done = colltune("run", "--prove", tuned, "--", mpi.mpiexec, "-n", 1, "true", **around)
    assert "its calls were not counted: no program left a count" in done.stderr
    assert not list(tmp_path.glob("count-*"))


# A message in pieces of 16 bytes: many times as slow, on any machine.
SLOW = {
    "mpich": "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0,MPIR_CVAR_BCAST_INTRA_ALGORITHM=pipelined_tree,"
    "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE=16",
    "openmpi": "OMPI_MCA_coll_tuned_use_dynamic_rules=1,OMPI_MCA_coll_tuned_bcast_algorithm=3,"
    "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize=16",
}
# What the library does anyway.
EQUAL = {"mpich": "MPIR_CVAR_BCAST_COMPOSITION=0", "openmpi": "OMPI_MCA_coll_tuned_priority=30"}
SIZES = ("--min-size", "4KiB", "--max-size", "8KiB", "--budget", "60s")


def other_build(installation: Installation) -> Path:
    """Debian's build of the same library."""
    path = Path(f"/usr/bin/mpiexec.{installation.library}")
    if not all(shutil.which(path.with_name(f"{tool}.{installation.library}")) for tool in ("mpiexec", "mpicc")):
        pytest.skip(f"no {path} with its mpicc (apt-get install libmpich-dev libopenmpi-dev openmpi-bin mpich)")
    return path


def compare(*arguments: object, code: int = 0, environment: Mapping[str, str] | None = None) -> str:
    done = commands.colltune(
        "compare", *map(str, arguments), environ={**os.environ, **ON_EITHER, **(environment or {})}
    )
    assert done.returncode == code, done.stdout + done.stderr
    if code == 2:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stdout + done.stderr


def test_a_slower_setting_is_found_also_where_the_job_has_it(either: Installation) -> None:
    slow, where = SLOW[either.library], ("--mpiexec", either.mpiexec, "--ppn", 2)
    own = dict(part.split("=") for part in slow.split(","))
    said = compare("nothing", slow, "bcast", *SIZES, *where, code=1, environment=own)
    assert "2 slower" in said
    assert "is left out while this measures" in said


def test_what_is_slower_is_a(either: Installation) -> None:
    said = compare(SLOW[either.library], "nothing", "bcast", *SIZES, "--mpiexec", either.mpiexec, "--ppn", 2)
    assert "2 faster, 0 same, 0 open, 0 slower" in said


def test_an_equal_setting_is_not_claimed(either: Installation) -> None:
    said = compare("nothing", EQUAL[either.library], "bcast", *SIZES, "--mpiexec", either.mpiexec, "--ppn", 2)
    assert "0 faster" in said
    assert "0 slower" in said


def test_two_builds_are_compared_each_with_its_own_agent(either: Installation) -> None:
    other = other_build(either)
    builds = ("--mpiexec-a", either.mpiexec, "--mpiexec-b", other, "--ppn", 2)
    # Debian's MPICH 4.0 has no algorithm by which a broadcast could be made so slow.
    if either.library == "mpich":
        said, verdict = compare(SLOW["mpich"], "nothing", "bcast", *SIZES, *builds), "2 faster"
    else:
        said, verdict = compare("nothing", SLOW["openmpi"], "bcast", *SIZES, *builds, code=1), "2 slower"
    for text in (f"{either.library} {either.version}, 2 ranks", str(other), verdict):
        assert text in " ".join(said.split())


def test_a_path_that_leads_to_the_other_build_is_refused(openmpi: Installation) -> None:
    other = other_build(openmpi)
    leading = {"LD_LIBRARY_PATH": str(openmpi.libmpi.parent)}
    builds = ("--mpiexec-a", openmpi.mpiexec, "--mpiexec-b", other)
    said = compare("nothing", "nothing", "barrier", *builds, "--ppn", 2, code=2, environment=leading)
    assert f"programs for {other} load {openmpi.libmpi}" in said


def test_what_would_have_no_effect_or_cannot_be_compiled_is_refused(mpi: Installation) -> None:
    where = ("--mpiexec", mpi.mpiexec, "--ppn", 2)
    assert "MPIR_CVAR_BCSAT_COMPOSITION" in compare("nothing", "MPIR_CVAR_BCSAT_COMPOSITION=1", *where, code=2)
    assert "does not know OMPI_MCA_pml" in compare("nothing", "OMPI_MCA_pml=ob1", *where, code=2)
    nowhere = {"MPICH_CC": "/nowhere/cc"}
    assert "/nowhere/cc" in compare("nothing", "nothing", *where, code=2, environment=nowhere)


def test_a_value_that_the_library_cannot_read_ends_in_one_line(mpi: Installation) -> None:
    bogus = "MPIR_CVAR_BCAST_INTRA_ALGORITHM=fastest"
    said = compare("nothing", bogus, "bcast", *SIZES, "--mpiexec", mpi.mpiexec, "--ppn", 2, code=2)
    assert "ended before" in said


def test_a_file_is_linted_before_a_job_reads_it(mpi: Installation, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"collective=bcast": {}')
    said = compare("nothing", tmp_path / "mine.json", "--mpiexec", mpi.mpiexec, "--ppn", 2, code=2)
    assert "mine.json" in said
    assert "Nothing was run" in said


def test_settings_are_compared_across_nodes(either: Installation, four_nodes: NamespaceCluster) -> None:
    where = ("--mpiexec", either.mpiexec, "--hostfile", four_nodes.host_file(2), "--budget", "100s")
    sizes = ("bcast", "--min-size", "4KiB", "--max-size", "4KiB")
    done = four_nodes.colltune("compare", "nothing", SLOW[either.library], *sizes, *where, code=1)
    assert "4 x 2" in done.stdout
    assert "1 slower" in done.stdout
