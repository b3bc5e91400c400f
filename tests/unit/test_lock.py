"""One campaign at a time in a directory; a lock whose owner is gone stops nobody."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.store import lock
from colltune.store.lock import LOCK, Owner, locked
from commands import run_to_end

HOLD = """
import sys
from pathlib import Path
from colltune.store.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
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


def test_a_number_that_was_given_out_again_is_no_owner(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(json.dumps(asdict(replace(Owner.here(), began="1"))))
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
    done = run_to_end(
        [sys.executable, "-m", "colltune", "tune", "bcast", "--out", str(tmp_path)],
        env={"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    first.communicate("")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"process {first.pid}" in done.stderr


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"), locked(tmp_path):
        pytest.fail("the lock was not taken")
