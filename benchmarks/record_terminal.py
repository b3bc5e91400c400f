"""The terminal recording of the documentation: records commands on a terminal of 80 x 24, and draws them as one SVG.

    python benchmarks/record_terminal.py [--out docs/recordings/demo] [COMMAND ...]
    python benchmarks/record_terminal.py --draw docs/recordings/demo.cast

Writes OUT.cast (asciicast v2, https://docs.asciinema.org/manual/asciicast/v2/; `asciinema play` shows it) and OUT.svg,
an animation that any browser shows without a script. `colltune` and the MPI are those on PATH. Run it on an idle
machine. tests/mpi/test_recording.py runs the commands of the recording again and compares what they print.
"""

from __future__ import annotations

import argparse
import fcntl
import html
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
COLUMNS, ROWS = 80, 24
COMMANDS = ("colltune demo", "colltune report demo/lumi --text | head -20")
TYPING_S, PAUSE_S = 0.04, 1.5
# A viewer need not wait longer than this for the next line; the recording itself keeps the true times.
LONGEST_WAIT_S = 1.2
_PIECE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+")

Event = tuple[float, str, str]


def on_terminal(
    command: Sequence[str], place: Path | None = None, rows: int = ROWS, **variables: str
) -> tuple[subprocess.Popen[bytes], Iterator[bytes]]:
    """``command`` on a terminal of 80 columns of its own, and what it writes there, piece by piece."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR")
    environment = {**{name: value for name, value in os.environ.items() if name not in hidden}, "TERM": "xterm"}
    process = subprocess.Popen(
        command, cwd=place, env={**environment, **variables}, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)

    def parts() -> Iterator[bytes]:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the terminal is gone with its last process
                break
            if not data:
                break
            yield data
        os.close(ours)

    return process, parts()


def record(commands: Sequence[str], place: Path) -> Iterator[Event]:
    """The events of ``commands``, run in ``place`` one by one: (seconds, "o" for output or "m" for a command, text)."""
    began_s = time.monotonic()

    def now_s() -> float:
        return round(time.monotonic() - began_s, 3)

    for command in commands:
        yield now_s(), "m", command
        yield now_s(), "o", "$ "
        for letter in command:
            time.sleep(TYPING_S)
            yield now_s(), "o", letter
        yield now_s(), "o", "\r\n"
        process, parts = on_terminal(["/bin/bash", "-c", command], place)
        for data in parts:
            # The recording is of no machine in particular.
            yield now_s(), "o", data.decode(errors="replace").replace(str(place), "/home/me")
        process.wait()
        time.sleep(PAUSE_S)
    yield now_s(), "o", "$ "


class Screen:
    """What a terminal shows: enough of one for the lines that colltune draws anew."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self.row = self.column = 0

    def write(self, text: str) -> None:
        for piece in _PIECE.findall(text):
            if piece == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            elif piece == "\r":
                self.column = 0
            elif piece.startswith("\x1b"):
                self._control(piece)
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + piece + line[self.column + len(piece) :]
                self.column += len(piece)

    def _control(self, piece: str) -> None:
        if piece.endswith("A"):
            self.row = max(0, self.row - int(piece[2:-1] or 1))
        elif piece.endswith("K"):
            self.lines[self.row] = ""

    def shown(self) -> tuple[str, ...]:
        """The lines on the screen, cut where a terminal would break them."""
        broken = [line[i : i + COLUMNS] for line in self.lines for i in range(0, max(len(line), 1), COLUMNS)]
        return tuple(line.rstrip() for line in broken[-ROWS:])


def frames(events: Iterable[Event]) -> list[tuple[float, tuple[str, ...]]]:
    """(seconds, lines) of every change of the screen, at most five in a second, with long waits cut short."""
    screen, found, clock_s, last_s = Screen(), [(0.0, ("",))], 0.0, 0.0
    for at_s, kind, text in events:
        if kind != "o":
            continue
        clock_s += min(at_s - last_s, LONGEST_WAIT_S)
        last_s = at_s
        screen.write(text)
        if clock_s - found[-1][0] < 0.2:
            found[-1] = (found[-1][0], screen.shown())
        elif screen.shown() != found[-1][1]:
            found.append((clock_s, screen.shown()))
    return found


def draw(events: Sequence[Event], title: str) -> str:
    """An SVG that shows the frames one after another, and begins anew. Without motion it shows the last one."""
    shown = frames(events)
    whole_s = shown[-1][0] + 5.0
    height, width = 18 * ROWS + 24, 8 * COLUMNS + 40
    style = [
        "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}",
        f"g{{visibility:hidden;animation:{whole_s:.1f}s step-end infinite}}",
        "g:last-of-type{visibility:visible}",
    ]
    drawn = []
    for number, (at_s, lines) in enumerate(shown):
        until_s = shown[number + 1][0] if number + 1 < len(shown) else whole_s
        first, last = 100.0 * at_s / whole_s, 100.0 * until_s / whole_s
        before = "" if number == 0 else "0%{visibility:hidden}"
        after = "" if number + 1 == len(shown) else f"{last:.3f}%{{visibility:hidden}}"
        style.append(f"@keyframes f{number}{{{before}{first:.3f}%{{visibility:visible}}{after}}}")
        rows = "".join(
            f'<text x="20" y="{28 + 18 * row}" textLength="{7.8 * len(line):.0f}">{html.escape(line)}</text>'
            for row, line in enumerate(lines)
            if line
        )
        drawn.append(f'<g style="animation-name:f{number}">{rows}</g>')
    style.append("@media (prefers-reduced-motion:reduce){g{animation:none}}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{html.escape(title)}</title><style>{''.join(style)}</style>"
        f'<rect width="100%" height="100%" rx="6" fill="#1d2330"/>{"".join(drawn)}</svg>\n'
    )


def load(path: Path) -> tuple[dict[str, object], list[Event]]:
    """The header and the events of an asciicast."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads(header), [tuple(json.loads(line)) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "recordings" / "demo")
    parser.add_argument("--draw", type=Path, help="draw this recording again, and record nothing")
    asked = parser.parse_args()
    if asked.draw is None:
        commands = asked.commands or list(COMMANDS)
        with tempfile.TemporaryDirectory() as place:
            events = list(record(commands, Path(place)))
        header = {
            "version": 2, "width": COLUMNS, "height": ROWS, "timestamp": int(time.time()),
            "command": "; ".join(commands), "title": "colltune: the first two minutes", "env": {"TERM": "xterm"},
        }  # fmt: skip
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        cast = asked.out.with_suffix(".cast")
        cast.write_text("".join(json.dumps(one) + "\n" for one in (header, *events)), encoding="utf-8")
    else:
        cast = asked.draw
    header, events = load(cast)
    cast.with_suffix(".svg").write_text(draw(events, str(header["title"])), encoding="utf-8")
    print(
        f"{cast}: {events[-1][0]:.0f} s, {len(events)} events; {cast.with_suffix('.svg').stat().st_size} bytes of SVG"
    )


if __name__ == "__main__":
    main()
