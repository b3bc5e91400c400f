"""What a session of tests leaves behind: processes, in whatever session of their own, and network namespaces."""

import contextlib
import os
import signal
import subprocess
import uuid
from pathlib import Path

from commands import comes_true

MARK = "COLLTUNE_TEST_SESSION"
_NAMESPACES = Path("/run/netns")
# Python's own, which ends with the process that runs the tests.
_TRACKER = b"multiprocessing.resource_tracker"


class Session:
    """Processes are known by the session's name in their environment, or by its directory in their command line.

    What ran before the session is none of its own: a shell or a ``timeout`` whose command line names the directory.
    """

    def __init__(self, directory: Path) -> None:
        self.name = uuid.uuid4().hex
        self._directory = str(directory).encode()
        self._mark = f"{MARK}={self.name}".encode()
        self._before = {os.getpid()}
        self._before.update(self.processes())

    def processes(self) -> dict[int, str]:
        """Their commands, by process."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (place / "cmdline").read_bytes()
                mine = self._mark in (place / "environ").read_bytes().split(b"\0") or self._directory in command
                if command and mine and int(place.name) not in self._before and _TRACKER not in command:
                    found[int(place.name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    @staticmethod
    def namespaces() -> list[str]:
        """Those that tests/mpi/namespaces.py made in this process."""
        return sorted(place.name for place in _NAMESPACES.glob(f"ct{os.getpid()}*"))

    def left_after(self, patience_s: float) -> list[str]:
        """What is there still, a line each; waits for what is about to end."""
        comes_true(lambda: not self.processes() and not self.namespaces(), patience_s)
        lines = [f"process {number}: {command[:200]}" for number, command in sorted(self.processes().items())]
        return [*lines, *(f"network namespace {name}" for name in self.namespaces())]

    def clean(self) -> None:
        for number in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for name in self.namespaces():
            subprocess.run(["ip", "netns", "del", name], check=False)
