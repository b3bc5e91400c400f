"""What a signal ends, what a job that was ended or killed leaves, and how it goes on."""

import json
import math
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from jobs import QUIET, Jobs
from one_rule import write_tuning
from slow_default import FAST, FILE, colltune, make_slow_mpi, start

from colltune.core.sample import Sample, Status
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune.store.tuning import load_tuning, save_tuning
from colltune_study.tables.collect import journal_of
from commands import PATIENCE_S, comes_true, shell_script

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What is asked for. A machine that others use needs a few more than the two that a launcher is given.
SOON_S = 5.0
# By what follows `colltune`; HOSTS is a file with a node that never answers, TUNED a tuning.
LAUNCHING = (
    "doctor --hostfile HOSTS",
    "plan bcast --hostfile HOSTS",
    "tune bcast --hostfile HOSTS --out OUT",
    "tune alltoallv --ppn 2 --hostfile HOSTS --out OUT",
    "verify TUNED --hostfile HOSTS",
    "verify --results TUNED --hostfile HOSTS",
    "compare nothing TUNED bcast --hostfile HOSTS",
    "study collect bcast --hostfile HOSTS --out OUT.csv",
    "guidelines --hostfile HOSTS",
    "predict bcast --calibrate --hostfile HOSTS --out OUT",
)
GUESTS = (
    "profile --out OUT",
    "run --measure TUNED",
    "run --prove TUNED",
    "run --profile TUNED",
    "run --auto OUT",
    "run TUNED",
)


@pytest.fixture
def words(mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the words in capitals stand for. All that runs has the directory in its environment."""
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:1\nnodeb:1\n")
    tuning = load_tuning(write_tuning(tmp_path / "tuned", mpi))
    save_tuning(tmp_path / "tuned", replace(tuning, environment=replace(tuning.environment, nodes=2, ppn=1)))
    monkeypatch.setenv("HYDRA_LAUNCHER_EXEC", str(shell_script(tmp_path / "silent-ssh", "exec sleep 600")))
    monkeypatch.setenv("COLLTUNE_TEST_JOB", str(tmp_path))
    return {
        "HOSTS": str(hosts),
        "TUNED": str(tmp_path / "tuned"),
        "OUT": str(tmp_path / "out"),
        "OUT.csv": str(tmp_path / "out.csv"),
    }


def sleeps(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes().startswith(b"sleep\0")
    except OSError:
        return False


def await_sleep(jobs: Jobs, command: subprocess.Popen[str]) -> None:
    """Until what never answers is there."""
    assert comes_true(lambda: command.poll() is not None or any(map(sleeps, jobs.processes()))), "nothing was launched"
    assert command.poll() is None, command.communicate()


def ended_by(number: signal.Signals, jobs: Jobs, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, to which ``number`` is sent while what it waits for sleeps; nothing of it is left.

    A busy machine may hold it longer than it needs, so it has three attempts to end soon.
    """
    for _ in range(3):
        command = start(*arguments, mpiexec=jobs.mpi.mpiexec)
        await_sleep(jobs, command)
        asked_s = time.monotonic()
        command.send_signal(number)
        said, errors = command.communicate(timeout=PATIENCE_S)
        assert jobs.all_end(), jobs.processes()
        took_s = time.monotonic() - asked_s
        if took_s < SOON_S:
            break
    assert took_s < SOON_S
    return subprocess.CompletedProcess(arguments, command.returncode, said, errors)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("line", LAUNCHING)
def test_what_a_command_launched_ends_with_it(
    words: dict[str, str], jobs: Jobs, line: str, number: signal.Signals
) -> None:
    done = ended_by(number, jobs, *(words.get(word, word) for word in line.split()))
    # Collecting stops in good order: what it measured is its result.
    expected = (0, 128 + number) if line.startswith("study collect") else (128 + number,)
    assert done.returncode in expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("line", GUESTS)
def test_a_program_hears_the_signal_and_its_exit_code_is_handed_on(
    words: dict[str, str], jobs: Jobs, line: str, number: signal.Signals
) -> None:
    program = ["sh", "-c", f"trap 'echo heard; kill $!; exit 7' {number.name[3:]}; sleep 60 & wait"]
    done = ended_by(number, jobs, *(words.get(word, word) for word in line.split()), "--", *program)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "heard" in done.stdout


def test_compilers_end_with_the_command(
    words: dict[str, str], mpi: Installation, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPICH_CC", str(shell_script(tmp_path / "slow-compiler", "sleep 600")))
    done = ended_by(signal.SIGTERM, Jobs(mpi, agent, tmp_path), "plan", "bcast")
    assert done.returncode == 128 + signal.SIGTERM


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


KILLS = 10
# What Slurm leaves between a signal and SIGKILL. Alone on a machine it takes a few seconds.
KILL_WAIT_S = 30.0
TUNE = ("tune", "bcast", "allreduce", "--max-size")
# Commands that keep what they measure.
KEEPING = ((*TUNE, "1MiB"), ("tune", "alltoallv", "--ppn", "3"), ("study", "collect", "bcast", "--max-size", "1MiB"))


def start_counted(jobs: Jobs, out: Path, *arguments: str) -> subprocess.Popen[str]:
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
        tuner = start_counted(jobs, out, *TUNE, "64", "--gate", "off", *(["--resume"] if journal.exists() else []))
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
    tuner = start_counted(jobs, out, *TUNE, "64", "--gate", "off", *(["--resume"] if journal.exists() else []))
    said = tuner.communicate(timeout=200)[0]
    assert tuner.returncode == 0, said
    samples = samples_of(journal)
    assert samples[: len(kept)] == kept
    assert set(pairs(samples).values()) == {1}
    assert len(pairs(samples)) > 50
    # Without a kill the same grid is measured, in one launch of the agent: none is missing.
    before = jobs.agents_launched
    whole = start_counted(jobs, tmp_path / "whole", *TUNE, "64", "--gate", "off")
    assert whole.wait(200) == 0
    assert set(pairs(samples)) == set(pairs(samples_of(tmp_path / "whole" / "journal.jsonl")))
    assert jobs.agents_launched == before + 1
    assert jobs.all_end()


def start_to(jobs: Jobs, out: Path, stage: str) -> tuple[subprocess.Popen[str], str]:
    """A tuner that has just begun a stage, and what it said by then."""
    tuner = start_counted(jobs, out, *TUNE, "64KiB")
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


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("command", KEEPING, ids=lambda command: " ".join(command[:2]))
def test_a_signal_in_the_midst_of_measuring_loses_nothing(
    jobs: Jobs, tmp_path: Path, command: tuple[str, ...], number: signal.Signals
) -> None:
    out = tmp_path / "out.csv"
    journal = {"study": journal_of(out)}.get(command[0], out / "journal.jsonl")
    journal = journal.with_name("alltoallv.jsonl") if "alltoallv" in command else journal
    measuring = start_counted(jobs, out, *command)
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
