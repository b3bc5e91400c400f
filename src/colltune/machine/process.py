"""Programs that start others: each gets a session of its own, so that it is ended with all that it started."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from colltune.machine.leftovers import end_rest, marked

_GRACE_S = 5.0
# So long it may take until the kernel has ended what was killed, and its output is read.
_KILLED_S = 5.0


class RunningProgram:
    """A program that runs, by ``process``; its streams are text. Raises OSError where it cannot be started.

    Ending it ends nothing else. A mark in its environment tells what it starts in further sessions, as a launcher does
    for other nodes, which is ended too. ``guest``: a program of the user's, whose environment takes no mark.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[str] = subprocess.PIPE,
        stderr: int | IO[str] = subprocess.PIPE,
        directory: Path | None = None,
        guest: bool = False,
    ) -> None:
        self._guest = guest
        self._environment = environment if guest else marked(environment)
        self.process = subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=self._environment,
            cwd=directory,
            encoding="utf-8",
            errors="replace",
            bufsize=1,
            start_new_session=True,
        )

    def wait(self, limit_s: float | None = None) -> int | None:
        """The exit code, or None where it still runs after ``limit_s``. Ends what it left behind where it failed."""
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        if code != 0:
            self._end_rest()
        return code

    def end(self, grace_s: float = _GRACE_S) -> None:
        """Ends it with all that it started: first it is asked, so that it can end its ranks on other nodes."""
        if grace_s > 0.0:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """Ends it at once, and what it left in its session and in others."""
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILLED_S)
        self._end_rest()

    def finish(self, text: str | None, limit_s: float) -> tuple[str, str]:
        """What it writes to both streams when given ``text``. Raises subprocess.TimeoutExpired, and ends it then."""
        try:
            out, err = self.process.communicate(text, timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.communicate(timeout=_GRACE_S)
            self.kill()
            out, err = "", ""
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = self.process.communicate(timeout=_KILLED_S)
            raise subprocess.TimeoutExpired(self.process.args, limit_s, out, err) from error
        except BaseException:  # also a signal's: nobody else knows of it
            self.end()
            raise
        self.wait()
        return out, err

    def _end_rest(self) -> None:
        if not self._guest:
            end_rest(self._environment)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def run_launch(
    command: Sequence[str], environment: Mapping[str, str], limit_s: float, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, as subprocess.run does; its standard input has ``text``, or nothing.

    Raises OSError where it cannot be started, and subprocess.TimeoutExpired, with what it wrote, where it runs on after
    ``limit_s`` seconds; then it has been ended with all that it started.
    """
    stdin = subprocess.DEVNULL if text is None else subprocess.PIPE
    launch = RunningProgram(command, environment, stdin=stdin)
    with launch.process:
        out, err = launch.finish(text, limit_s)
    return subprocess.CompletedProcess(list(command), launch.process.returncode, out, err)
