"""Processes of ours and of the user, and how they are stopped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from colltune.core.stop import StopRequest, StopRequestedError
from colltune.machine.process import RunningProgram, run_launch
from colltune.measure.agent_process import AgentProcess
from commands import comes_true

# Starts a process in its own session and one in a further session, as a launcher does, and says their numbers.
_TREE = """
import subprocess, sys, time
inside = subprocess.Popen(["sleep", "600"])
outside = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(inside.pid, outside.pid, flush=True)
if sys.argv[1] == "fail":
    sys.exit(3)
time.sleep(600)
"""


def lives(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def tree(fate: str) -> list[str]:
    return [sys.executable, "-c", _TREE, fate]


def test_a_program_is_answered_as_subprocess_does() -> None:
    done = run_launch(["sh", "-c", "cat; echo two >&2; exit 3"], os.environ, 60.0, "one\n")
    assert (done.stdout, done.stderr, done.returncode) == ("one\n", "two\n", 3)


def test_without_text_the_standard_input_is_empty() -> None:
    assert run_launch(["cat"], os.environ, 60.0).stdout == ""


def test_what_runs_on_is_ended_with_all_that_it_started_and_what_it_wrote_is_kept() -> None:
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        run_launch(tree("stay"), os.environ, 2.0)
    assert "timed out after 2.0 seconds" in str(raised.value)
    numbers = [int(word) for word in raised.value.stdout.split()]
    assert len(numbers) == 2
    assert comes_true(lambda: not any(map(lives, numbers)))


def test_a_program_that_takes_too_long_is_asked_to_end_first() -> None:
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        run_launch(["sh", "-c", "trap 'echo asked; exit' TERM; echo on; while :; do sleep 0.1; done"], os.environ, 1.5)
    assert raised.value.stdout == "on\nasked\n"


def test_what_a_program_that_failed_left_in_other_sessions_is_ended() -> None:
    launch = RunningProgram(tree("fail"), os.environ)
    assert launch.process.stdout is not None
    numbers = [int(word) for word in launch.process.stdout.readline().split()]
    with launch.process:
        assert launch.wait(60.0) == 3
    assert comes_true(lambda: not any(map(lives, numbers)))


def test_what_does_not_heed_the_request_to_end_is_made_to() -> None:
    launch = RunningProgram(["sh", "-c", "trap '' TERM; echo on; while :; do sleep 1; done"], os.environ)
    assert launch.process.stdout is not None
    assert launch.process.stdout.readline() == "on\n"
    assert launch.wait(0.0) is None
    with launch.process:
        launch.end(0.2)
    assert launch.process.returncode == -9


@pytest.mark.parametrize("guest", [True, False])
def test_a_program_of_the_users_finds_its_environment_as_it_was(guest: bool) -> None:
    given = {"PATH": os.environ["PATH"], "MINE": "1"}
    launch = RunningProgram([sys.executable, "-c", "import os; print(sorted(os.environ))"], given, guest=guest)
    out, _ = launch.finish(None, 60.0)
    assert ("COLLTUNE_LAUNCH" in out) is not guest
    assert "'MINE'" in out


def _started() -> AgentProcess:
    return AgentProcess(["sh", "-c", "echo ready ranks=1; cat"], dict(os.environ), start_timeout_s=30.0)


def test_what_was_killed_can_still_be_closed() -> None:
    process = _started()
    process.kill()
    assert not process.send("measure 1")
    assert process.close() != 0


def test_it_is_written_to_until_it_is_closed() -> None:
    process = _started()
    assert process.send("measure 1")
    assert process.read(30.0) == "measure 1"
    assert process.close() == 0
    assert not process.send("measure 2")


def test_a_request_cuts_off_what_may_be_cut_off() -> None:
    stop = StopRequest()
    with pytest.raises(StopRequestedError), stop.cuts():
        stop.make()
    assert stop.made


def test_a_request_between_two_stages_waits_for_the_next() -> None:
    stop = StopRequest()
    with stop.cuts():
        pass
    stop.make()
    with pytest.raises(StopRequestedError), stop.cuts():
        pytest.fail("begun in spite of the request")


def test_control_c_is_a_request_too() -> None:
    stop = StopRequest()
    with pytest.raises(KeyboardInterrupt), stop.cuts():
        raise KeyboardInterrupt
    assert stop.made


def test_nobody_asked() -> None:
    stop = StopRequest()
    with stop.cuts():
        pass
    assert not stop.made
