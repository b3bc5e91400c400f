"""Processes of a job that outlive its launcher, on this machine.

A launcher gives the shells that it starts for other nodes a session of their own, so that no signal to its group
reaches them, and what is started through them may not notice that the launcher is gone. They are known by a variable
that the launch has in its environment.
"""

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

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
    found, changing = [], False
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            variables = (place / "environ").read_bytes()
            if any(variable.startswith(mark) for variable in variables.split(b"\0")):
                found.append(int(place.name))
            changing = changing or (not variables and _lives(place))
    return found, changing


def _lives(place: Path) -> bool:
    """Whether it is a process of somebody, and no zombie."""
    state, *_, flags = (place / "stat").read_text().rpartition(")")[2].split()[:7]
    return state not in "ZX" and not int(flags) & _KERNEL_THREAD
