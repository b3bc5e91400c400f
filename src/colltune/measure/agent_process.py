"""The agent as a process: lines in, lines out, and an end that is noticed."""

import contextlib
import fcntl
import os
import select
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
# Bytes that the agent can say before it has to wait for a reader that is thinking.
_UNHEARD_BYTES = 1 << 20


class AgentProcess:
    """One launch of the agent under an MPI launcher.

    Its answers are read by who asks for them, without a thread between: where ranks keep all processors busy, each
    thread that is woken waits for one.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], start_timeout_s: float) -> None:
        self.command = list(command)
        self._stderr_tail: deque[str] = deque(maxlen=40)
        self._lines: deque[str] = deque()  # whole ones that nobody asked for yet
        self._begun = b""  # a line that has no end yet
        self._silent = False  # the job has closed its output
        self.last_lines: list[str] = []  # what it said at its end, after `close`
        with on_os_error(f"cannot run {command[0]}", "Check --mpiexec", LaunchError):
            self._launch = RunningProgram(command, environment, stdin=subprocess.PIPE)
        self._process = self._launch.process
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input: IO[str] = self._process.stdin
        self._output = self._process.stdout.fileno()
        with contextlib.suppress(OSError):  # more than this user may have
            fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _UNHEARD_BYTES)
        self._errors = threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True)
        self._errors.start()
        try:
            self.ready = self._await_ready(start_timeout_s)
        except BaseException:  # also a signal's: nobody else knows of this job yet
            self.kill()
            raise

    def _hear(self, timeout_s: float) -> None:
        """Takes what the job has said, or says within this time."""
        waiting = select.poll()
        waiting.register(self._output, select.POLLIN)
        if not waiting.poll(1e3 * timeout_s):
            return
        heard = os.read(self._output, _UNHEARD_BYTES)
        self._silent = not heard
        *lines, self._begun = (self._begun + (heard or b"\n")).split(b"\n")
        self._lines.extend(line.decode(errors="replace") for line in lines if line or heard)

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
        until_s = time.monotonic() + max(timeout_s, 1e-3)
        while not self._lines and not self._silent:
            if (left_s := until_s - time.monotonic()) <= 0.0:
                raise TimeoutError
            self._hear(left_s)
        return self._lines.popleft() if self._lines else _ENDED

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
        self._errors.join(timeout=_GRACE_S)
        until_s = time.monotonic() + _GRACE_S
        while not self._silent and (left_s := until_s - time.monotonic()) > 0.0:
            self._hear(left_s)
        self.last_lines += self._lines
        self._lines.clear()
        self._silent = True
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
