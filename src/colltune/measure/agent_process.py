"""The agent as a process: lines in, lines out, and an end that is noticed."""

import contextlib
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO

from colltune.core.errors import LaunchError, on_os_error
from colltune.machine.process import RunningProgram

_ENDED = None
_GRACE_S = 2.0


class AgentProcess:
    """One launch of the agent under an MPI launcher."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], start_timeout_s: float) -> None:
        self.command = list(command)
        self._stderr_tail: deque[str] = deque(maxlen=40)
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.last_lines: list[str] = []  # what it said at its end, after `close`
        with on_os_error(f"cannot run {command[0]}", "Check --mpiexec", LaunchError):
            self._launch = RunningProgram(command, environment, stdin=subprocess.PIPE)
        self._process = self._launch.process
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input: IO[str] = self._process.stdin
        self._readers = [
            threading.Thread(target=self._read_answers, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        try:
            self.ready = self._await_ready(start_timeout_s)
        except BaseException:  # also a signal's: nobody else knows of this job yet
            self.kill()
            raise

    def _read_answers(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(_ENDED)

    def _read_errors(self, stream: IO[str]) -> None:
        for line in stream:
            self._stderr_tail.append(line.rstrip("\n"))

    def _await_ready(self, timeout_s: float) -> dict[str, str]:
        deadline = time.monotonic() + timeout_s
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                line = self.read(remaining)
            except TimeoutError:
                break
            if line is _ENDED:
                code = self.close()
                raise LaunchError(
                    f"the MPI job ended before it was ready (exit code {code}): {' '.join(self.command)}"
                    + (f"; it said: {self.stderr_text(3)}" if self.stderr_text(3) else ""),
                    "Try this command by hand; `colltune doctor` shows what was found",
                )
            if line.startswith("ready "):
                return parse_fields(line)
        raise LaunchError(
            f"the MPI job was not ready after {timeout_s:.0f} s: {' '.join(self.command)}",
            "Try this command by hand; `colltune doctor` shows what was found",
        )

    def send(self, line: str) -> bool:
        """Whether the agent could still be written to."""
        if self._input.closed:  # it was killed
            return False
        try:
            self._input.write(line + "\n")
            self._input.flush()
        except OSError:
            return False
        return True

    def read(self, timeout_s: float) -> str | None:
        """The next line; None once the job has ended. Raises TimeoutError where nothing comes in time."""
        try:
            line = self._lines.get(timeout=max(timeout_s, 1e-3))
        except queue.Empty:
            raise TimeoutError from None
        if line is _ENDED:
            self._lines.put(_ENDED)
        return line

    def stderr_text(self, lines: int = 8) -> str:
        """The last lines of what the job wrote to its standard error, in one."""
        return " | ".join(list(self._stderr_tail)[-lines:])

    def close(self, timeout_s: float = 10.0) -> int:
        """Ends the job in good order: its input ends, so it finalises. The exit code; kills what does not end."""
        self.send("quit")
        with contextlib.suppress(OSError):
            self._input.close()
        code = self._launch.wait(timeout_s)
        if code is None:
            self.kill()
            code = self._process.wait()
        for reader in self._readers:
            reader.join(timeout=2.0)
        while not self._lines.empty() and (line := self._lines.get()) is not _ENDED:
            self.last_lines.append(line)
        self._lines.put(_ENDED)
        return code

    def kill(self) -> None:
        """Ends the job at once: first the launcher is asked, so that it can end its ranks on other nodes."""
        self._launch.end(_GRACE_S)
        with contextlib.suppress(OSError):
            self._input.close()


def parse_fields(line: str) -> dict[str, str]:
    """``"done id=3 wall_us=7"`` -> its fields, the first word under the key ``""``."""
    first, *rest = line.split(" ")
    fields = {"": first}
    for word in rest:
        key, _, value = word.partition("=")
        fields[key] = value
    return fields
