"""A request to stop, which may come at any moment: it interrupts work that may be interrupted, and is never lost."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class StopRequestedError(Exception):
    """Raised inside work that may be interrupted; its results until then are used."""


# The exceptions that interrupt such work: of Ctrl-C, and of a request, which follows the scheduler's signal.
INTERRUPTIONS = (KeyboardInterrupt, StopRequestedError)


class StopRequest:
    """A request to stop; ``made`` once there is one. Long work runs inside ``cuts()``; other work is short and ends.

    ``began``: whether there was such work, so that there is something to make use of.
    """

    def __init__(self) -> None:
        self.made = False
        self.began = False
        self._cutting = False

    def make(self) -> None:
        """Makes the request; may be called by a signal handler. Raises StopRequestedError inside ``cuts()``."""
        self.made = True
        if self._cutting:
            raise StopRequestedError("asked to stop")

    @contextmanager
    def cuts(self) -> Iterator[None]:
        """Allows a request to interrupt the work inside; after a request the work does not begin."""
        self._cutting = self.began = True
        try:
            if self.made:
                raise StopRequestedError("asked to stop")
            yield
        except KeyboardInterrupt:
            self.made = True
            raise
        finally:
            self._cutting = False


def put_back(handlers: Mapping[signal.Signals, Any]) -> None:
    """Handlers of signals as `signal.getsignal` gave them. None, of code in C, cannot be put back: ours stays."""
    for number, handler in handlers.items():
        if handler is not None:
            signal.signal(number, handler)
