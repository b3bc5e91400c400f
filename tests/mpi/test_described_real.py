"""An MPI that its user describes by a file alone: a made-up one, which is MPICH with variables of another form.

And what holds for every MPI by launches: tuners that are killed, disks that fill.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from jobs import colltune

from colltune.core.sample import Status
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import comes_true, shell_script
from compiled import program, shared

MARK = "Made-up MPI, build "
DESCRIPTION = f"""
[mpi]
title = "Made-up MPI"
mark = "{MARK}"
version = "3.1"

[needs]
MADEUP_TAKES_VARIABLES = "yes"

[form]
variable = "MADEUP_{{COLLECTIVE}}"
rule = "{{value}}={{low}}..{{high}}/{{ranks_low}}..{{ranks_high}}"
separator = ","

[collectives.bcast]
basis = "message"
algorithms = [{{ key = "linear", value = "flat" }}, {{ key = "wrong" }}, {{ key = "ends" }}]

[collectives.allreduce]
basis = "message"
algorithms = [{{ key = "linear", value = "flat" }}]
"""


@pytest.fixture
def madeup(mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mpiexec of the made-up MPI, which COLLTUNE_MPI describes."""
    theirs, place = mpi.libmpi.parent, tmp_path / "madeup"
    (place / "bin").mkdir(parents=True)
    (place / "lib").mkdir()
    for file in theirs.iterdir():
        if not file.name.startswith("libmpi."):
            (place / "lib" / file.name).symlink_to(file)
    (place / "lib" / "libmpi.so").symlink_to(mpi.libmpi.name)
    (place / "lib" / mpi.libmpi.name).write_bytes(mpi.libmpi.read_bytes() + MARK.encode())
    layer = shared("madeup_mpi.c", compiler=mpi.mpicc)
    for name, words in (
        ("mpicc", f'exec {mpi.mpicc} "$@" -L{place}/lib -Wl,-rpath,{place}/lib'),
        (
            "mpiexec",
            f'[ "$1" = --version ] && exec {mpi.mpiexec} "$@"; exec {mpi.mpiexec} -genv LD_PRELOAD {layer} "$@"',
        ),
    ):
        shell_script(place / "bin" / name, words)
    described = tmp_path / "madeup.toml"
    described.write_text(DESCRIPTION)
    monkeypatch.setenv("COLLTUNE_MPI", str(described))
    return place / "bin" / "mpiexec"


def test_two_commands_tune_a_program_and_run_it(madeup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "tuned"
    colltune("lint", tmp_path / "madeup.toml", code=0)
    words = ["--mpiexec", madeup, "--ppn", "2", "--sizes", "64,512", "--budget", "60s", "--out", out]
    done = colltune("tune", "bcast", *words, code=0)
    assert "Made-up MPI 3.1" in done.stdout or "described 3.1" in done.stdout
    status = {(s.choice.algorithm, s.status) for s in read_journal(out / JOURNAL).samples}
    assert ("linear", Status.OK) in status
    assert {found for name, found in status if name == "ends"} <= {Status.CRASHED}
    assert not {found for name, found in status if name == "wrong"} & {Status.OK}
    tuning = load_tuning(out)
    assert tuning.variables["MADEUP_TAKES_VARIABLES"] == "yes"
    assert "flat=" in tuning.variables["MADEUP_BCAST"]
    assert "wrong" not in tuning.variables["MADEUP_BCAST"]

    job = [madeup, "-n", "2", program(madeup.with_name("mpicc"), "switchback_loop.c"), "10", "64"]
    ran = colltune("run", out, "--", *job, MADEUP_SHOW="1", code=0)
    assert "madeup flat: bcast 10," in ran.stderr
    colltune("verify", "--results", out, "--mpiexec", madeup, code=0)

    monkeypatch.delenv("COLLTUNE_MPI")
    refused = colltune("run", out, "--", *job, code=2)
    assert "COLLTUNE_MPI" in refused.stderr


@pytest.fixture(params=["madeup", "intelmpi"])
def by_launches(request: pytest.FixtureRequest) -> Path:
    """The mpiexec of an MPI that is measured by launches."""
    found: Path | Installation = request.getfixturevalue(request.param)
    return found if isinstance(found, Path) else found.mpiexec


def test_a_killed_tuner_goes_on_and_the_next_removes_what_it_left(
    by_launches: Path, tmp_path: Path, cache: Path
) -> None:
    out, left = tmp_path / "tuned", lambda: set(cache.glob("launch-*")) | set(cache.glob("tables-*"))
    words = ["tune", "bcast", "--mpiexec", str(by_launches), "--ppn", "2", "--sizes", "64,512", "--out", str(out)]
    words += ["--gate", "off"]
    before = left()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-m", "colltune", *words], env=environment) as tuner:
        assert comes_true(lambda: any(path.name.startswith("launch-") for path in left() - before))
        tuner.kill()
    kept = read_journal(out / JOURNAL).samples
    for path in left() - before:
        os.utime(path, (0, 0))
    colltune(*words, "--resume", code=0)
    samples = read_journal(out / JOURNAL).samples
    assert samples[: len(kept)] == kept
    assert set(Counter((one.scenario, one.choice) for one in samples if one.status is Status.OK).values()) == {1}
    assert left() <= before
