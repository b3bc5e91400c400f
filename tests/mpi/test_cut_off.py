"""A job that is ended before the proof is over: what was measured is provisional, and proven by --resume.

On an MPICH in which one algorithm of MPI_Bcast is known to be much faster, whatever the machine does beside.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import QUIET, Jobs

from colltune.core.choice import Choice
from colltune.mpi.installation import Installation

pytestmark = pytest.mark.mpi
NATIVE = Path(__file__).parents[1] / "native"
FAST = "scatter_ring_allgather"
FILE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"


@pytest.fixture(scope="module")
def mpiexec(mpi: Installation, agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher of an MPI whose default is slow."""
    place = tmp_path_factory.mktemp("slow")
    settings = dict(Jobs(mpi, agent, place).resolver()("bcast", Choice(FAST)))
    fast = settings["MPIR_CVAR_BCAST_INTRA_ALGORITHM"]
    library = place / "slow_default.so"
    build = [str(mpi.mpicc), "-O1", "-shared", "-fPIC", str(NATIVE / "slow_default.c"), "-o", str(library)]
    subprocess.run(build, check=True, timeout=60)
    for name, command in {
        "mpiexec": f'exec {mpi.mpiexec} -genv LD_PRELOAD {library} -genv CT_FAST {fast} "$@"',
        "mpicc": f'exec {mpi.mpicc} "$@"',  # an mpiexec is known by the compiler beside it
    }.items():
        (place / name).write_text(f"#!/bin/sh\n{command}\n")
        (place / name).chmod(0o755)
    return place / "mpiexec"


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "colltune", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def colltune(*arguments: str) -> subprocess.CompletedProcess[str]:
    process = start(*arguments)
    said, errors = process.communicate(timeout=240)
    assert process.returncode == 0, said + errors
    return subprocess.CompletedProcess(arguments, 0, said, errors)


def tune_cut_off_in(stage: str, mpiexec: Path, out: Path) -> str:
    process = start(
        "tune", "bcast", "--out", str(out), "--ppn", "2", "--mpiexec", str(mpiexec),
        "--min-size", "128", "--max-size", "256", "--budget", "40s",
    )  # fmt: skip
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line.strip().startswith(stage):
            process.send_signal(signal.SIGTERM)
            break
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0, said + rest + errors
    assert stage in said, said + rest
    return said + rest


def verdicts(out: Path) -> set[str]:
    return {entry["verdict"] for entry in json.loads((out / "tuning.json").read_text())["summary"]["gate"]}


def test_what_a_job_that_was_ended_leaves_is_provisional_until_it_is_resumed(mpiexec: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    said = " ".join(tune_cut_off_in("comparing", mpiexec, out).split())
    assert "provisional" in said
    assert "decisions proven" not in said
    assert "at least" not in said.partition("comparing")[2].partition("For example")[0]
    assert "provisional" in verdicts(out)
    assert "kept" not in verdicts(out)

    left = colltune("env", str(out))
    assert left.stdout == ""
    assert "left out" in left.stderr
    assert len(left.stderr.splitlines()) == 1
    asked = colltune("env", str(out), "--provisional")
    assert f"{FILE}={out}/provisional/mpich/" in asked.stdout
    assert asked.stderr == ""
    show = ["sh", "-c", f"echo file: ${FILE}"]
    ran = colltune("run", str(out), "--", *show)
    assert (ran.stdout.strip(), "left out" in ran.stderr) == ("file:", True)
    ran = colltune("run", str(out), "--provisional", "--", *show)
    assert Path(ran.stdout.removeprefix("file:").strip()).is_file()
    report = " ".join(colltune("report", str(out), "--text").stdout.split())
    assert "provisional" in report
    assert "again and again" not in report
    assert "bcast provisional" not in report
    explained = colltune("explain", str(out), "bcast", "--ppn", "2", "--size", "256").stdout
    assert f"{FAST} provisional" in explained
    assert "left out unless --provisional is given" in explained

    command = said.partition("go on with: ")[2]
    words = shlex.split(command)
    assert words[0] == "colltune"
    resumed = colltune(*words[1 : words.index("--resume") + 1])
    assert "proven" in resumed.stdout
    assert "provisional" not in resumed.stdout
    assert "kept" in verdicts(out)
    assert "provisional" not in verdicts(out)
    kept = colltune("env", str(out))
    assert f"{FILE}={out}/mpich/" in kept.stdout
    assert kept.stderr == ""
