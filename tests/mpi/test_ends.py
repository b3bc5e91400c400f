"""A signal that ends a command ends what it launched, soon, and the exit code says which it was."""

import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from jobs import Jobs
from slow_default import start
from test_commands_real import RULES, write

from colltune.mpi.installation import Installation
from colltune.store.tuning import load_tuning, save_tuning
from commands import PATIENCE_S, comes_true

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
    silent, hosts = tmp_path / "silent-ssh", tmp_path / "hosts"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    hosts.write_text("localhost:1\nnodeb:1\n")
    (tmp_path / "tuned").mkdir()
    write(tmp_path / "tuned", mpi, [RULES])
    tuning = load_tuning(tmp_path / "tuned")
    save_tuning(tmp_path / "tuned", replace(tuning, environment=replace(tuning.environment, nodes=2, ppn=1)))
    monkeypatch.setenv("HYDRA_LAUNCHER_EXEC", str(silent))
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
    words: dict[str, str], mpi: Installation, agent: Path, tmp_path: Path, line: str, number: signal.Signals
) -> None:
    jobs = Jobs(mpi, agent, tmp_path)
    done = ended_by(number, jobs, *(words.get(word, word) for word in line.split()))
    # Collecting stops in good order: what it measured is its result.
    expected = (0, 128 + number) if line.startswith("study collect") else (128 + number,)
    assert done.returncode in expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("line", GUESTS)
def test_a_program_hears_the_signal_and_its_exit_code_is_handed_on(
    words: dict[str, str], mpi: Installation, agent: Path, tmp_path: Path, line: str, number: signal.Signals
) -> None:
    jobs = Jobs(mpi, agent, tmp_path)
    program = ["sh", "-c", f"trap 'echo heard; kill $!; exit 7' {number.name[3:]}; sleep 60 & wait"]
    done = ended_by(number, jobs, *(words.get(word, word) for word in line.split()), "--", *program)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "heard" in done.stdout


def test_compilers_end_with_the_command(
    words: dict[str, str], mpi: Installation, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLTUNE_CACHE", str(tmp_path / "cache"))
    slow = tmp_path / "slow-compiler"
    slow.write_text("#!/bin/sh\nsleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("MPICH_CC", str(slow))
    done = ended_by(signal.SIGTERM, Jobs(mpi, agent, tmp_path), "plan", "bcast")
    assert done.returncode == 128 + signal.SIGTERM
