"""Programs that start others: each gets a session of its own, so that it is ended with all that it started.

A launcher gives the shells that it starts for other nodes a session of their own, so that no signal to its group
reaches them, and what is started through them may not notice that the launcher is gone. They are known by a variable
that the launch has in its environment.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO
from weakref import WeakSet

_MARK = "COLLTUNE_LAUNCH"
_OF_THIS_PROCESS = uuid.uuid4().hex
# Looks at the machine's processes, and the pause between two: a process that becomes another program has no environment
# for a moment, and one may start another while it is looked for.
_LOOKS, _PAUSE_S = 20, 0.02
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of Linux


def marked(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with a variable by which the processes of one launch are known."""
    return {**environment, _MARK: f"{_OF_THIS_PROCESS}-{uuid.uuid4().hex}"}


def end_rest(environment: Mapping[str, str] | None = None) -> None:
    """Ends at once what is left of the launch with this ``marked`` environment; its launcher has ended.

    None: of all launches of this process.
    """
    mark = f"{_MARK}={_OF_THIS_PROCESS if environment is None else environment[_MARK]}".encode()
    for _ in range(_LOOKS):
        left, changing = _processes(mark)
        if not left and not changing:
            return
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _processes(mark: bytes) -> tuple[list[int], bool]:
    """Those with a variable that begins with ``mark``; whether another one is just becoming another program."""
    processes, changing = [], False
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            variables = (place / "environ").read_bytes()
            if any(variable.startswith(mark) for variable in variables.split(b"\0")):
                processes.append(int(place.name))
            changing = changing or (not variables and _lives(place))
    return processes, changing


def _lives(place: Path) -> bool:
    """Whether it is a process of somebody, and no zombie."""
    state, *_, flags = (place / "stat").read_text().rpartition(")")[2].split()[:7]
    return state not in "ZX" and not int(flags) & _KERNEL_THREAD


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
