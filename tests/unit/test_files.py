"""Files that take the place of others, processes of ours and of the user, and the cache of compiled programs."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.stop import StopRequest, StopRequestedError
from colltune.machine.compile import build, cache_directory, is_own
from colltune.machine.files import write_atomically
from colltune.machine.process import RunningProgram, run_launch
from colltune.measure.agent_process import AgentProcess
from colltune.mpi.installation import Installation
from colltune.store import lock
from colltune.store.lock import LOCK, Owner, locked
from commands import colltune, comes_true


def test_a_file_takes_the_place_of_another_and_who_has_that_open_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    write_atomically(path, b"old, and long enough to be overwritten")
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old, and long enough to be overwritten"
    assert path.read_bytes() == b"new"
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "taken", b"new")
    assert {one.name for one in tmp_path.iterdir()} == {"taken", "tuning.json"}  # nothing is left behind


HOLD = """
import sys
from pathlib import Path
from colltune.store.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-c", HOLD, str(directory)], subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_one_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    first = holder(tmp_path)
    with pytest.raises(InputError, match=f"is being tuned by process {first.pid} on "), locked(tmp_path):
        pass
    first.communicate("")
    assert not list(tmp_path.iterdir())
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
    assert not list(tmp_path.iterdir())


def test_a_process_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    first = holder(tmp_path)
    first.kill()
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)  # ended, and not yet collected
    with locked(tmp_path):
        pass
    first.communicate()
    (tmp_path / LOCK).write_text(json.dumps(asdict(replace(Owner.here(), began="1"))))  # its number was given out again
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("age_s", [0.0, 1000.0])
def test_an_owner_elsewhere_is_known_by_its_touch(tmp_path: Path, age_s: float) -> None:
    path = tmp_path / LOCK
    path.write_text(json.dumps(asdict(replace(Owner.here(), host="node17", system="another"))))
    when_s = path.stat().st_mtime - age_s
    os.utime(path, (when_s, when_s))
    if age_s:
        with locked(tmp_path):
            assert json.loads(path.read_text())["host"] == Owner.here().host
        return
    with pytest.raises(InputError, match="on node17"), locked(tmp_path):
        pass


def test_without_hard_links_the_file_is_made_in_one_step_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_paths: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(lock.os, "link", refuse)
    with locked(tmp_path), pytest.raises(InputError, match="is being tuned"), locked(tmp_path):
        pass


def test_tune_says_it_in_one_line_before_it_looks_for_an_mpi(tmp_path: Path) -> None:
    first = holder(tmp_path)
    done = colltune("tune", "bcast", "--out", str(tmp_path), environ={"PATH": ""}, code=2)
    first.communicate("")
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"process {first.pid}" in done.stderr


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"), locked(tmp_path):
        pytest.fail("the lock was not taken")


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
ANOTHER = 12345


def test_a_new_cache_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = cache_directory({"HOME": str(tmp_path)})
    finally:
        os.umask(before)
    assert made == tmp_path / ".cache/colltune"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_cache_that_others_may_write_is_not_used(mode: int, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(InputError, match="may be written by others"):
        cache_directory({"COLLTUNE_CACHE": str(tmp_path / "cache")})


@root_only
@pytest.mark.parametrize("place", ["COLLTUNE_CACHE", "HOME"])
def test_the_cache_of_another_user_is_not_used(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one in the temporary directory that has our name, where there is no home."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs = tmp_path / f"colltune-{os.geteuid()}"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, ANOTHER, ANOTHER)
    (tmp_path / "file").touch()
    environment = {"COLLTUNE_CACHE": str(theirs)} if place == "COLLTUNE_CACHE" else {"HOME": str(tmp_path / "file")}
    with pytest.raises(InputError, match="is another user's"):
        cache_directory(environment)


def test_a_link_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "eve").mkdir()
    (tmp_path / f"colltune-{os.geteuid()}").symlink_to("eve")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="no place for a cache"):
        cache_directory({"HOME": str(tmp_path / "file")})
    assert list((tmp_path / "eve").iterdir()) == []


@pytest.mark.parametrize("way", ["link", "writable", pytest.param("owner", marks=root_only)])
def test_a_program_that_is_not_our_own_is_compiled_again(mpi: Installation, way: str, tmp_path: Path) -> None:
    made = build(mpi.mpicc, "conformance", tmp_path)
    program = made.read_bytes()
    if way == "link":
        made.rename(tmp_path / "eve")
        made.symlink_to("eve")
    else:
        made.write_bytes(b"#!/bin/sh\n")
        made.chmod(0o722) if way == "writable" else os.chown(made, ANOTHER, ANOTHER)
    assert build(mpi.mpicc, "conformance", tmp_path) == made
    assert is_own(made)
    assert made.read_bytes() == program


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


def test_a_program_is_answered_as_subprocess_does() -> None:
    done = run_launch(["sh", "-c", "cat; echo two >&2; exit 3"], os.environ, 60.0, "one\n")
    assert (done.stdout, done.stderr, done.returncode) == ("one\n", "two\n", 3)
    assert run_launch(["cat"], os.environ, 60.0).stdout == ""


def test_what_runs_on_is_ended_with_all_that_it_started_and_what_it_wrote_is_kept() -> None:
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        run_launch([sys.executable, "-c", _TREE, "stay"], os.environ, 2.0)
    assert "timed out after 2.0 seconds" in str(raised.value)
    numbers = [int(word) for word in raised.value.stdout.split()]
    assert len(numbers) == 2
    assert comes_true(lambda: not any(map(lives, numbers)))


def test_a_program_that_takes_too_long_is_asked_to_end_first() -> None:
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        run_launch(["sh", "-c", "trap 'echo asked; exit' TERM; echo on; while :; do sleep 0.1; done"], os.environ, 1.5)
    assert raised.value.stdout == "on\nasked\n"


def test_what_a_program_that_failed_left_in_other_sessions_is_ended() -> None:
    launch = RunningProgram([sys.executable, "-c", _TREE, "fail"], os.environ)
    numbers = [int(word) for word in launch.process.stdout.readline().split()]
    with launch.process:
        assert launch.wait(60.0) == 3
    assert comes_true(lambda: not any(map(lives, numbers)))


def test_what_does_not_heed_the_request_to_end_is_made_to() -> None:
    launch = RunningProgram(["sh", "-c", "trap '' TERM; echo on; while :; do sleep 1; done"], os.environ)
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


def test_an_agent_is_written_to_until_it_is_closed_or_killed() -> None:
    process, killed = _started(), _started()
    assert process.send("measure 1")
    assert process.read(30.0) == "measure 1"
    assert process.close() == 0
    assert not process.send("measure 2")
    killed.kill()
    assert not killed.send("measure 1")
    assert killed.close() != 0


def test_a_request_cuts_off_what_may_be_cut_off_now_or_at_the_next_stage() -> None:
    stop, control_c = StopRequest(), StopRequest()
    with stop.cuts():
        pass
    assert not stop.made
    with pytest.raises(StopRequestedError), stop.cuts():
        stop.make()
    assert stop.made
    with pytest.raises(StopRequestedError), stop.cuts():
        pytest.fail("begun in spite of the request")
    with pytest.raises(KeyboardInterrupt), control_c.cuts():
        raise KeyboardInterrupt
    assert control_c.made
