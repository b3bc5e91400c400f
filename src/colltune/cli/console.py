"""Where the commands print."""

from __future__ import annotations

import codecs
import io
import sys

from rich.console import Console

_FILE_WIDTH = 140
_PLAIN = "colltune-plain"
# What stands for a character that the terminal's encoding does not have.
_SUBSTITUTES = {"█": "#", "░": "-", "…": "..."}


def make_console() -> Console:
    """The terminal; a wide page where the output goes to a file, which nobody wants cut to 80 columns."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _FILE_WIDTH)


def degrade_output() -> None:
    """From now on nothing that is printed fails for its characters, whatever the encoding of the terminal.

    What an encoding lacks is printed as a plain character. Bytes of file names that are no text are printed unchanged.
    """
    codecs.register_error(_PLAIN, _substitute)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)


def _substitute(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler of one character that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # how Python keeps a byte of a file name that it cannot decode
        return bytes([number - 0xDC00]), error.start + 1
    return _SUBSTITUTES.get(character, "?"), error.start + 1
