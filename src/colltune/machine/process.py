"""Programs that start others: each gets a session of its own, so that it is ended with all that it started."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO
from weakref import WeakSet

from colltune.machine.leftovers import end_rest, marked

_GRACE_S = 5.0
# So long it may take until the kernel has ended what was killed, and its output is read.
_KILLED_S = 5.0
# What a launcher has to end its ranks in where a signal ends us.
_HASTE_S = 2.0
_PR_SET_PDEATHSIG = 1
_launches: "WeakSet[RunningProgram]" = WeakSet()


class RunningProgram:
    """A program that runs, by ``process``; its streams are text. Raises OSError where it cannot be started.

    Ending it ends nothing else. A mark in its environment tells what it starts in further sessions, as a launcher does
    for other nodes, which is ended too. ``guest``: a program of the user's, whose environment takes no mark. Where this
    process is killed, it is asked to end by the kernel.
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
            preexec_fn=partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGTERM),
        )
        _launches.add(self)

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

    def finish(self, text: str | None, limit_s: float | None) -> tuple[str, str]:
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
            raise subprocess.TimeoutExpired(self.process.args, error.timeout, out, err) from error
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

    def _lives(self) -> bool:
        """Leaves its exit code to who waits for it, and takes no lock of theirs."""
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False


def end_launches() -> None:
    """Ends all programs that still run with all that they started, at once; for a handler of signals, at any moment."""
    running = [launch for launch in _launches if launch.process.returncode is None]
    for launch in running:
        launch._signal(signal.SIGTERM)
    until_s = time.monotonic() + _HASTE_S
    while time.monotonic() < until_s and any(launch._lives() for launch in running):
        time.sleep(0.02)
    for launch in running:
        launch._signal(signal.SIGKILL)
    end_rest()


def run_launch(
    command: Sequence[str], environment: Mapping[str, str], limit_s: float | None = None, text: str | None = None
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
