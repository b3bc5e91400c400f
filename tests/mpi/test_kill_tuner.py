"""The tuner is killed at any moment: what was measured stays measured, and a scheduler's signal still yields files."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from jobs import QUIET, Jobs

from colltune.core.sample import Sample, Status
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune_study.tables.collect import journal_of

KILLS = 10
# What Slurm leaves between a signal and SIGKILL. Alone on a machine it takes a few seconds.
KILL_WAIT_S = 30.0
TUNE = ("tune", "bcast", "allreduce", "--max-size")
# Commands that keep what they measure.
KEEPING = ((*TUNE, "1MiB"), ("tune", "alltoallv", "--ppn", "3"), ("study", "collect", "bcast", "--max-size", "1MiB"))


@pytest.fixture
def jobs(mpi: Installation, agent: Path, tmp_path: Path) -> Jobs:
    return Jobs(mpi, agent, tmp_path)


def start(jobs: Jobs, out: Path, *arguments: str) -> subprocess.Popen[str]:
    """`colltune` with its own interpreter, under the launcher that counts."""
    command = [sys.executable, "-c", "from colltune.cli import main; main()", *arguments, "--out", str(out)]
    command += [] if "--ppn" in arguments else ["--ppn", "2"]
    environment = {**os.environ, **QUIET, "COLLTUNE_TEST_JOB": str(jobs.directory), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--mpiexec", str(jobs.mpiexec)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def await_samples(tuner: subprocess.Popen[str], journal: Path, more_than: int, limit_s: float = 200.0) -> None:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if tuner.poll() is not None:
            break
        if journal.exists() and journal.read_bytes().count(b'"sample"') > more_than:
            return
        time.sleep(0.005)
    if tuner.poll() == 0:
        return  # it is done
    tuner.kill()
    pytest.fail(f"no sample within {limit_s} s: {tuner.communicate()[0]}")


def samples_of(journal: Path) -> list[Sample]:
    return list(read_journal(journal).samples)


def pairs(samples: list[Sample]) -> Counter[tuple[object, object]]:
    return Counter((sample.scenario, sample.choice) for sample in samples if sample.status is Status.OK)


def test_ten_kills_lose_no_finished_sample_and_nothing_is_measured_twice(jobs: Jobs, tmp_path: Path) -> None:
    out, draw = tmp_path / "tuned", random.Random(1)
    journal = out / "journal.jsonl"
    kept: list[Sample] = []
    kills = 0
    for attempt in range(4 * KILLS):
        if kills == KILLS:
            break
        tuner = start(jobs, out, *TUNE, "64", "--gate", "off", *(["--resume"] if journal.exists() else []))
        if attempt % 3 != 2:  # else at any moment, also before the first sample
            await_samples(tuner, journal, len(kept))
        time.sleep(draw.uniform(0.0, 0.05) if attempt % 3 != 2 else draw.uniform(0.0, 2.0))
        tuner.send_signal(signal.SIGKILL)
        said = tuner.communicate()[0]
        if tuner.returncode == 0:
            # A fast machine was done before it was killed: there is a campaign to kill only from the start again.
            shutil.rmtree(out)
            kept = []
            continue
        assert tuner.returncode == -signal.SIGKILL, said
        kills += 1
        if not journal.exists():
            continue
        found = samples_of(journal)
        assert found[: len(kept)] == kept
        kept = found
    assert kills == KILLS
    tuner = start(jobs, out, *TUNE, "64", "--gate", "off", *(["--resume"] if journal.exists() else []))
    said = tuner.communicate(timeout=200)[0]
    assert tuner.returncode == 0, said
    samples = samples_of(journal)
    assert samples[: len(kept)] == kept
    assert set(pairs(samples).values()) == {1}
    assert len(pairs(samples)) > 50
    # Without a kill the same grid is measured, in one launch of the agent: none is missing.
    before = jobs.agents_launched
    whole = start(jobs, tmp_path / "whole", *TUNE, "64", "--gate", "off")
    assert whole.wait(200) == 0
    assert set(pairs(samples)) == set(pairs(samples_of(tmp_path / "whole" / "journal.jsonl")))
    assert jobs.agents_launched == before + 1
    assert jobs.all_end()


def start_to(jobs: Jobs, out: Path, stage: str) -> tuple[subprocess.Popen[str], str]:
    """A tuner that has just begun a stage, and what it said by then."""
    tuner = start(jobs, out, *TUNE, "64KiB")
    assert tuner.stdout is not None
    said = ""
    for line in tuner.stdout:
        said += line
        if line.strip().startswith(stage):
            break
    return tuner, said


@pytest.mark.parametrize("stage", ["measuring", "proving", "comparing", "replaying"])
def test_a_schedulers_signal_leaves_a_usable_tuning_in_time(jobs: Jobs, tmp_path: Path, stage: str) -> None:
    """Usable always, and in time where the machine does not stand still: there are three attempts at that."""
    took_s = math.inf
    for attempt in range(3):
        out = tmp_path / f"tuned{attempt}"
        tuner, said = start_to(jobs, out, stage)
        asked_s = time.monotonic()
        tuner.send_signal(signal.SIGTERM)
        said += tuner.communicate(timeout=200)[0]
        assert tuner.returncode == 0, said
        assert stage in said or "The library's own choice stands everywhere" in said
        assert list((out / "mpich").glob("*.json")), said
        assert json.loads((out / "tuning.json").read_text())["summary"]["interrupted"] is (stage in said), said
        took_s = min(took_s, time.monotonic() - asked_s)
        if took_s < KILL_WAIT_S:
            break
    assert took_s < KILL_WAIT_S, said
    assert jobs.all_end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("command", KEEPING, ids=lambda command: " ".join(command[:2]))
def test_a_signal_in_the_midst_of_measuring_loses_nothing(
    jobs: Jobs, tmp_path: Path, command: tuple[str, ...], number: signal.Signals
) -> None:
    out = tmp_path / "out.csv"
    journal = {"study": journal_of(out)}.get(command[0], out / "journal.jsonl")
    journal = journal.with_name("alltoallv.jsonl") if "alltoallv" in command else journal
    measuring = start(jobs, out, *command)
    await_samples(measuring, journal, 0)
    kept = samples_of(journal)
    measuring.send_signal(number)
    said = measuring.communicate(timeout=200)[0]
    assert samples_of(journal)[: len(kept)] == kept != []
    assert measuring.returncode in (0, 128 + number), said
    assert "Traceback" not in said
    assert jobs.all_end()
    if command[0] == "tune":  # what it has it hands over
        assert measuring.returncode == 0, said
        assert "stopped from outside" in said or "The job was ended before the proof was over" in said
