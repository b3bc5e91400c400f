"""Programs that disturb a measurement, which this process starts and ends: spinners, a compiler, a memory copier."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOADS = ("calm", "spin1", "spin2", "spin4", "bursts")
_SPIN = "while True: pass"
_SOURCE = "".join(
    f"int f{n}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {n}; return s; }}\n" for n in range(1500)
)
_COPIED_BYTES, _BURST_S = 64 << 20, (0.2, 1.5)


@contextmanager
def beside(load: str) -> Iterator[None]:
    """While it is open, ``load`` runs: nothing, that many spinning processes, or bursts of work with pauses."""
    count = int(load.removeprefix("spin")) if load.startswith("spin") else 0
    commands = [[sys.executable, "-c", _SPIN]] * count
    commands += [[sys.executable, __file__, str(number)] for number in (1, 2)] if load == "bursts" else []
    started = [subprocess.Popen(command, start_new_session=True) for command in commands]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)  # the session is its own: with it goes its compiler
            process.wait()


def bursts(seed: int) -> None:
    """Compiles or copies for a while, rests for a while, until it is ended."""
    draw = random.Random(seed)
    block, copy = bytearray(_COPIED_BYTES), bytearray(_COPIED_BYTES)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "work.c"
        source.write_text(_SOURCE)
        while True:
            until_s = time.monotonic() + draw.uniform(*_BURST_S)
            compiles = draw.random() < 0.5
            while time.monotonic() < until_s:
                if compiles:
                    subprocess.run(["cc", "-O2", "-c", str(source), "-o", os.devnull], check=True)
                else:
                    copy[:] = block
            time.sleep(draw.uniform(*_BURST_S))


if __name__ == "__main__":
    bursts(int(sys.argv[1]))
