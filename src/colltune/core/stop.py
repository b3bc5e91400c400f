"""A wish to stop that may come at any moment: cuts off what may be cut off, and is never lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StopRequestedError(Exception):
    """Raised in the midst of work that may be cut off: what is known by then is used."""


# What ends such work: the scheduler's signal, or a person's Ctrl-C.
INTERRUPTIONS = (KeyboardInterrupt, StopRequestedError)


class StopRequest:
    """Whether somebody asked to stop. Long work runs inside ``cuts()``; what is between is short, and finishes."""

    def __init__(self) -> None:
        self.made = False
        self._cutting = False

    def make(self) -> None:
        """Asks. Fit for a signal handler: raises StopRequestedError where the main thread is inside ``cuts()``."""
        self.made = True
        if self._cutting:
            raise StopRequestedError("asked to stop")

    @contextmanager
    def cuts(self) -> Iterator[None]:
        """Work that StopRequestedError ends at any moment; it does not begin where the request was made already."""
        self._cutting = True
        try:
            if self.made:
                raise StopRequestedError("asked to stop")
            yield
        except KeyboardInterrupt:
            self.made = True
            raise
        finally:
            self._cutting = False


__all__ = ["INTERRUPTIONS", "StopRequest", "StopRequestedError"]
