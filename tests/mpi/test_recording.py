"""The terminal recording of the documentation: its commands still print what it shows."""

import os
import re
import shlex
import sys
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from colltune.mpi.installation import Installation
from commands import shell_script
from record_terminal import Screen, draw, frames, load
from terminals import on_terminal

ROOT = Path(__file__).parents[2]
CAST = ROOT / "docs" / "recordings" / "demo.cast"
HEADER, EVENTS = load(CAST)
COMMANDS = [text for _, kind, text in EVENTS if kind == "m"]


def lines(text: str) -> list[str]:
    """What stays on the terminal, numbers masked: they are those of a machine."""
    screen = Screen()
    screen.write(text.replace("\r\n", "\n").replace("\n", "\r\n"))
    return [re.sub(r"\d[\d.,]*", "#", line.rstrip()) for line in screen.lines if line.strip()]


def recorded(command: str) -> str:
    """What ``command`` wrote in the recording."""
    begun = EVENTS.index(next(event for event in EVENTS if event[1:] == ("m", command)))
    written: list[str] = []
    for _, kind, text in EVENTS[begun + 1 :]:
        if kind == "m":
            break
        written.append(text)
    return "".join(written).partition("\n")[2]


def test_the_recording_is_an_asciicast_of_two_minutes_or_less() -> None:
    assert (HEADER["version"], HEADER["width"], HEADER["height"]) == (2, 80, 24)
    times = [at_s for at_s, _, _ in EVENTS]
    assert times == sorted(times)
    assert times[-1] < 150.0
    assert {kind for _, kind, _ in EVENTS} == {"o", "m"}
    assert str(ROOT) not in CAST.read_text(encoding="utf-8")


def test_the_drawing_is_of_the_recording() -> None:
    kept = CAST.with_suffix(".svg").read_text(encoding="utf-8")
    assert kept == draw(EVENTS, str(HEADER["title"]))
    ElementTree.fromstring(kept)
    assert all(len(line) <= 80 for _, shown in frames(EVENTS) for line in shown)


def steps_of_the_record(printed: list[str]) -> list[str]:
    """What stands at the left, up to where this machine is tuned: what it gains is for it to say."""
    ends = "this job", "how sure", "took", "judged", "allgather:"
    of_record = takewhile(lambda line: "this machine, at most" not in line, printed)
    return [line[:9] for line in of_record if line.startswith(ends)]


@pytest.mark.slow
def test_the_commands_print_the_same_first_lines(mpi: Installation, tmp_path: Path) -> None:
    assert COMMANDS[0] == "colltune demo"
    programs = tmp_path / "bin"
    programs.mkdir()
    shell_script(programs / "colltune", f'exec {shlex.quote(sys.executable)} -m colltune "$@"')
    path = {"PATH": f"{programs}:{mpi.mpiexec.parent}:{os.environ['PATH']}"}
    for command in COMMANDS:
        printed = lines(on_terminal([command], place=tmp_path, variables=path, command=("/bin/bash", "-c")))
        shown = lines(recorded(command))
        assert printed[:3] == shown[:3]
        assert steps_of_the_record(printed) == steps_of_the_record(shown)
