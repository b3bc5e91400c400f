"""Commands on a real terminal of 80 columns: what they write there, and whether anything of it is cut."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import record_terminal

COLUMNS = record_terminal.COLUMNS
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]")
_COMMAND = re.compile(r"(^|[ /(])colltune [a-z]+ ")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
ROOT = Path(__file__).parents[1]
TUNINGS = ROOT / "tests" / "recorded" / "tunings"
MEASURED, ENDED, PREDICTED = (str(TUNINGS / name) for name in ("measured", "ended", "predicted"))
TABLE = ROOT / "tests" / "recorded" / "pico_lumi_allreduce.csv.gz"
_QUICKLY = ("--plots", "none", "--strategies", "ours")
# Commands that look at files alone. WIDE stands for a tuning of the largest jobs, sizes and times.
OF_FILES: dict[str, list[str]] = {
    "report": ["report", MEASURED, "--text"],
    "report of all": ["report", MEASURED, "--text", "--all"],
    "report of all wide numbers": ["report", "WIDE", "--text", "--all"],
    "report of a job that was ended": ["report", ENDED, "--text"],
    "report of a prediction": ["report", PREDICTED, "--text"],
    "report of wide numbers": ["report", "WIDE", "--text"],
    "explain": ["explain", MEASURED, "bcast", "--size", "64KiB"],
    "explain wide numbers": ["explain", "WIDE", "reduce_scatter_block", "--size", "1023KiB"],
    "diff": ["report", MEASURED, "--diff", ENDED],
    "diff of wide numbers": ["report", MEASURED, "--diff", "WIDE"],
    "plan": ["plan", "reduce_scatter_block", "--from", "WIDE", "--nodes", "16384", "--ppn", "128", "--budget", "99h"],
    "lint": ["lint", MEASURED],
    "export": ["export", MEASURED, "--to", "mpich", "--out", "exported"],
    "env": ["env", MEASURED],
    "features": ["doctor", "--features"],
    "doctor": ["doctor"],
    "help": ["tune", "--help"],
    "an error": ["explain", MEASURED, "scan", "--size", "64KiB"],
    "evaluate": ["study", "evaluate", str(TABLE), "--seeds", "1", "--budget", "20s", *_QUICKLY],
}
# These tell what they measured themselves, which is never the same twice.
TIMED = {"doctor", "evaluate", "features"}
COLLTUNE = (sys.executable, "-c", "from colltune.cli import main; main()")


def on_terminal(
    arguments: Sequence[object],
    *,
    place: Path | None = None,
    codes: Sequence[int] = (0, 1, 2),
    variables: Mapping[str, str] | None = None,
    timeout_s: float = 300.0,
    command: Sequence[str] = COLLTUNE,
) -> str:
    """What ``COMMAND ARGUMENTS``, run in ``place``, writes to a terminal of 80 columns, standard error included.

    Raises AssertionError where it ends with a code that is not one of ``codes``.
    """
    words = [*command, *map(str, arguments)]
    process, parts = record_terminal.on_terminal(words, place, 40, **{"TERM": "xterm-256color", **(variables or {})})
    text = b"".join(parts).decode().replace("\r\n", "\n")
    assert process.wait(timeout=timeout_s) in codes, text[-3000:]
    return text


def in_a_pipe(
    arguments: Sequence[object], *, place: Path | None = None, variables: Mapping[str, str] | None = None
) -> bytes:
    """What the command writes to pipes, standard error behind standard output."""
    environment = {**os.environ, **(variables or {})}
    command = [*COLLTUNE, *map(str, arguments)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False, timeout=300)
    return done.stdout + done.stderr


def bare(text: str) -> str:
    """``text`` without what moves the cursor and what colours."""
    return _ESCAPE.sub("", text)


def lines_too_long(text: str) -> list[str]:
    """Lines that a terminal would break where it likes.

    A command to copy stands on one line, whole; and so does a path or a hash that is longer than half a line by itself.
    """
    found = []
    for line in re.split(r"[\n\r]", bare(text)):
        longest = max(map(len, line.split()), default=0)
        if len(line) > COLUMNS and longest <= COLUMNS // 2 and not _COMMAND.search(line):
            found.append(line)
    return found


def numbers(text: str) -> Counter[str]:
    """Every number in ``text``, and how often it is there."""
    return Counter(_NUMBER.findall(bare(text)))
