"""A job that is ended before the proof is over: what was measured is provisional, and proven by --resume.

On an MPICH in which one algorithm of MPI_Bcast is known to be much faster, whatever the machine does beside.
"""

import json
import shlex
import signal
from pathlib import Path

import pytest
from slow_default import FAST, FILE, colltune, make_slow_mpi, start

from colltune.mpi.installation import Installation


@pytest.fixture(scope="module")
def mpiexec(mpi: Installation, agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_mpi(mpi, agent, tmp_path_factory.mktemp("slow"))


def tune_cut_off_in(stage: str, mpiexec: Path, out: Path) -> str:
    process = start(
        "tune", "bcast", "--out", str(out), "--ppn", "2", "--mpiexec", str(mpiexec),
        "--min-size", "256", "--max-size", "256", "--budget", "150s",
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
    assert "how sure" not in said
    assert "at least" not in said.partition("comparing")[2].partition("For example")[0]
    assert "provisional" in verdicts(out)
    assert "kept" not in verdicts(out)

    left = colltune("env", str(out), mpiexec=mpiexec)
    assert left.stdout == ""
    assert "left out" in left.stderr
    assert len(left.stderr.splitlines()) == 1
    asked = colltune("env", str(out), "--provisional", mpiexec=mpiexec)
    assert f"{FILE}={out}/provisional/mpich/" in asked.stdout
    assert asked.stderr == ""
    show = ["sh", "-c", f"echo file: ${FILE}"]
    ran = colltune("run", str(out), "--", *show, mpiexec=mpiexec)
    assert (ran.stdout.strip(), "left out" in ran.stderr) == ("file:", True)
    ran = colltune("run", str(out), "--provisional", "--", *show, mpiexec=mpiexec)
    assert Path(ran.stdout.removeprefix("file:").strip()).is_file()
    report = " ".join(colltune("report", str(out), "--text").stdout.split())
    assert "provisional" in report
    assert "how sure" not in report
    assert "bcast provisional" not in report
    explained = colltune("explain", str(out), "bcast", "--ppn", "2", "--size", "256").stdout
    assert f"{FAST} provisional" in explained
    assert "left out unless --provisional is given" in explained

    command = said.partition("go on with: ")[2]
    words = shlex.split(command)
    assert words[0].endswith("colltune")
    resumed = colltune(*words[1 : words.index("--resume") + 1])
    assert "proven" in resumed.stdout
    assert "provisional" not in resumed.stdout
    assert "kept" in verdicts(out)
    assert "provisional" not in verdicts(out)
    kept = colltune("env", str(out), mpiexec=mpiexec)
    assert f"{FILE}={out}/mpich/" in kept.stdout
    assert kept.stderr == ""
