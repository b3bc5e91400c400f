"""What commands show on a terminal of 80 columns, without colours, and in a pipe: no word and no number is cut."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUNINGS = Path(__file__).parents[1] / "recorded" / "tunings"
MEASURED, ENDED, PREDICTED = (str(TUNINGS / name) for name in ("measured", "ended", "predicted"))
COMMANDS = {
    "report": ["report", MEASURED, "--text"],
    "report of a job that was ended": ["report", ENDED, "--text"],
    "report of a prediction": ["report", PREDICTED, "--text"],
    "explain": ["explain", MEASURED, "bcast", "--size", "64KiB"],
    "diff": ["diff", MEASURED, ENDED],
    "lint": ["lint", MEASURED],
    "features": ["features"],
    "doctor": ["doctor"],
    "help": ["tune", "--help"],
    "an error": ["explain", MEASURED, "scan", "--size", "64KiB"],
}
# Commands to copy, paths and hashes stand on a line of their own, whole: what is longer than a line by itself.
_COLUMNS = 80


def on_terminal(arguments: list[str], **variables: str) -> str:
    """What the command writes to a terminal of 80 columns, standard error included."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(_COLUMNS), "LINES": "40", **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "colltune", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says so where the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(timeout=60) in (0, 1, 2)
    return written.decode().replace("\r\n", "\n")


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_of_80_columns_cuts_no_word_and_no_number(name: str) -> None:
    text = on_terminal(COMMANDS[name])
    assert text.strip()
    for line in bare(text).splitlines():
        longest = max(map(len, line.split()), default=0)
        assert len(line) <= _COLUMNS or longest > _COLUMNS // 2, line


def test_no_color_is_heeded() -> None:
    text = on_terminal(COMMANDS["report"], NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])m", text)


def test_a_pipe_gets_plain_text() -> None:
    done = subprocess.run([sys.executable, "-m", "colltune", *COMMANDS["report"]], capture_output=True, check=True)
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout
