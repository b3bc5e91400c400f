"""The errors that colltune raises.

Libraries raise; only ``colltune.cli`` turns an error into a line on the terminal and an exit code.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class ColltuneError(Exception):
    """Root of every error that colltune raises on purpose.

    ``what`` says what is wrong, where, and with which value; ``next_step`` says what to do about it.
    """

    exit_code = 2

    def __init__(self, what: str, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.what}. {self.next_step}" if self.next_step else self.what


class InputError(ColltuneError):
    """Something that the user gave cannot be used: an option, a file, a name."""


class EnvironmentMismatchError(ColltuneError):
    """Measurements of different machines, MPI builds or jobs would be mixed."""


class LaunchError(ColltuneError):
    """The MPI job could not be started, or ended before it answered."""


class MeasurementError(ColltuneError):
    """The measuring side broke its contract: an answer that cannot be read, or none at all."""


@contextmanager
def on_os_error(what: str, next_step: str, kind: type[ColltuneError] = InputError) -> Iterator[None]:
    """Turns an OSError of its block into ``kind``, which says ``what``, with the system's reason, and ``next_step``."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}", next_step) from error
