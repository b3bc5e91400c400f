"""Signals: what ends a command ends what it launched, and some commands make use of what they have measured by then."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from colltune.core.stop import StopRequest, put_back
from colltune.machine.command_lines import colltune_command

# Of a scheduler whose time for a job is over, of Ctrl-C, and of a terminal that is closed.
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Slurm kills a job 30 s after it has asked it to end.
_PATIENCE_S = 25


def go_on_command(arguments: Sequence[str]) -> str:
    """The command that goes on where `colltune` with ``arguments`` was cut off."""
    own = list(arguments).index("--") if "--" in arguments else len(arguments)
    resumed = [] if "--resume" in arguments[:own] else ["--resume"]
    return colltune_command(*arguments[:own], *resumed, *arguments[own:])


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal that ends the work inside ends first what it launched; the exit code is 128 + the signal."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        _heed(_ENDING, _end)
        yield
    finally:
        signal.alarm(0)
        put_back(before)


def heed_scheduler(stop: StopRequest) -> None:
    """From now on a signal makes ``stop``, once, if there is work to stop: what is measured by then is made use of.

    SIGINT interrupts the work too, and a second one ends all. What is still to do ends before a scheduler kills it.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        _end(number)

    def ask(number: int) -> None:
        if not stop.began:
            _end(number)
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, end)
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, lambda _alarm, frame: end(number, frame))
        signal.alarm(_PATIENCE_S)
        stop.make()

    _heed(_ENDING, ask)


def _end(number: int) -> NoReturn:
    from colltune.machine.process import end_launches

    end_launches()
    raise SystemExit(128 + number)


def _heed(signals: Sequence[signal.Signals], then: Callable[[int], None]) -> None:
    """``then`` hears of the first of ``signals`` alone, and of none that is ignored, as SIGHUP is under nohup."""
    heeded = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]

    def hear(number: int, _frame: FrameType | None) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)
        then(number)

    for number in heeded:
        signal.signal(number, hear)
