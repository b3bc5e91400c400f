"""What a session of tests leaves is told apart from what ran before it."""

import os
import subprocess
import sys
from pathlib import Path

from commands import comes_true
from leftovers import MARK, Session

_WAIT = [sys.executable, "-c", "input()"]


def test_what_was_begun_in_the_session_and_runs_on_is_left(tmp_path: Path) -> None:
    session = Session(tmp_path)
    marked = {**os.environ, MARK: session.name}
    with (
        subprocess.Popen(_WAIT, stdin=subprocess.PIPE, env=marked) as by_mark,
        subprocess.Popen([*_WAIT, str(tmp_path)], stdin=subprocess.PIPE) as by_directory,
    ):
        # A process that was just begun may not have its own command yet.
        assert comes_true(lambda: set(session.processes()) == {by_mark.pid, by_directory.pid})
        session.clean()
    assert session.left_after(0.0) == []


def test_a_timeout_around_the_tests_is_not_left_by_them(tmp_path: Path) -> None:
    command = ["timeout", "600", *_WAIT, f"--basetemp={tmp_path}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as around:
        # A process that becomes another program has no command line for a moment, and would be missed as one before.
        assert comes_true(lambda: runs_under(around.pid, sys.executable))
        session = Session(tmp_path)
        assert session.left_after(0.0) == []
        around.communicate(b"\n")


def runs_under(process: int, program: str) -> bool:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    return any(command.startswith(os.fsencode(program) + b"\0") for command in commands)
