"""The signal by which a scheduler says that a job's time is over."""

import signal
from collections.abc import Sequence

from colltune.core.stop import StopRequest
from colltune.machine.command_lines import colltune_command


def go_on_command(arguments: Sequence[str]) -> str:
    """The command that goes on where `colltune` with ``arguments`` was cut off."""
    resumed = [] if "--resume" in arguments else ["--resume"]
    return colltune_command(*arguments, *resumed)


def heed_scheduler(stop: StopRequest) -> None:
    """From now on SIGTERM makes ``stop``, once: what is measured by then is still made use of.

    So does SIGHUP, which a closed terminal sends, where nobody has it ignored (nohup).
    """
    heeded = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]

    def ask(_number: int, _frame: object) -> None:
        for one in heeded:
            signal.signal(one, signal.SIG_IGN)
        stop.make()

    for one in heeded:
        signal.signal(one, ask)
