"""The signal by which a scheduler says that a job's time is over."""

from __future__ import annotations

import signal

from colltune.core.stop import StopRequest


def heed_scheduler() -> StopRequest:
    """From now on SIGTERM asks to stop, once: what is measured by then is still made use of."""
    stop = StopRequest()

    def ask(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stop.make()

    signal.signal(signal.SIGTERM, ask)
    return stop
