"""Settings and builds of the real MPIs are compared: what is slower is found, what is equal is not claimed."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from jobs import ON_EITHER
from namespaces import NamespaceCluster, namespace_cluster, why_not

from colltune.mpi.installation import Installation
from commands import colltune, run_to_end

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
    done = colltune("compare", *map(str, arguments), environ={**os.environ, **ON_EITHER, **(environment or {})})
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


@pytest.fixture(scope="module")
def four_nodes(tmp_path_factory: pytest.TempPathFactory) -> NamespaceCluster:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with namespace_cluster(tmp_path_factory.mktemp("nodes"), 4, realtime=False) as cluster:
        yield cluster


def test_settings_are_compared_across_nodes(
    either: Installation, four_nodes: NamespaceCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in four_nodes.environment.items():
        monkeypatch.setenv(name, value)
    where = ("--mpiexec", either.mpiexec, "--hostfile", four_nodes.host_file(2), "--budget", "100s")
    command = four_nodes.inside(sys.executable, "-m", "colltune", "compare", "nothing", SLOW[either.library])
    sizes = ("bcast", "--min-size", "4KiB", "--max-size", "4KiB", *map(str, where))
    done = run_to_end([*command, *sizes])
    assert done.returncode == 1, done.stdout + done.stderr
    assert "4 x 2" in done.stdout
    assert "1 slower" in done.stdout
