"""Where the commands print, for people and for other programs: one JSON document, with its schema's name and version.

The schemas are in docs/reference/json.md. A number that is not known, or has no bound, is null.
"""

import codecs
import io
import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from colltune.core.sample import Choice

_PLAIN = "colltune-plain"
# What stands for a character that the terminal's encoding does not have.
_SUBSTITUTES = {"█": "#", "░": "-", "…": "..."}
# What moves the cursor, colours, rings or turns the direction of writing: a file of somebody else may hold it.
_CONTROLS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\udc80-\\udc9f]"
)


def echo(text: str, *, err: bool = False, indent: int | None = None) -> None:
    """Prints ``text``, to standard error with ``err``: on a terminal in lines that fit it, broken between words.

    ``indent``: of what follows the first line; None: two columns more than the first.

    A command for the reader to copy is printed by ``typer.echo``, in one line.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        text = folded(text, width, indent)
    print(text, file=stream)


def folded(text: str, width: int, indent: int | None = None) -> str:
    """``text`` in lines of at most ``width`` characters, broken between words; ``indent`` as of `echo`."""
    return "\n".join(_folded(line, width, indent) for line in text.split("\n"))


def _folded(line: str, width: int, indent: int | None) -> str:
    if len(line) <= width:
        return line
    before = " " * (len(line) - len(line.lstrip()) + 2 if indent is None else indent)
    return textwrap.fill(
        line, width, subsequent_indent=before, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )


def visible(text: str) -> str:
    """``text`` without a character that controls a terminal: ``"\\x1b"`` is written as four. Lines and tabs stay."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


class Visible(io.TextIOWrapper):
    """A stream on which nothing that is printed controls the terminal. Rich writes colours to the one ``beneath``."""

    def __init__(self, beneath: io.TextIOWrapper) -> None:
        super().__init__(
            beneath.buffer, beneath.encoding, _PLAIN, line_buffering=beneath.line_buffering, write_through=True
        )
        self.beneath = beneath

    def close(self) -> None:
        """Leaves the stream open, which is not ours."""
        self.flush()

    def write(self, text: str, /) -> int:
        super().write(visible(text))
        return len(text)


def degrade_output() -> None:
    """From now on nothing that is printed fails for its characters, or controls the terminal, whatever its encoding.

    What an encoding lacks is printed as a plain character. Bytes of file names that are no text are printed unchanged.
    """
    codecs.register_error(_PLAIN, _substitute)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            # Both write through, into one buffer, so that what is printed keeps its order.
            stream.reconfigure(errors=_PLAIN, write_through=True)
            setattr(sys, name, Visible(stream))


def _substitute(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler of one character that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # how Python keeps a byte of a file name that it cannot decode
        return bytes([number - 0xDC00]), error.start + 1
    return _SUBSTITUTES.get(character, "?"), error.start + 1


SCHEMA = 2


def print_json(command: str, value: object) -> None:
    """Prints ``value``, a mapping or a dataclass, as the document of ``command``."""
    print(json.dumps({"command": command, "schema": SCHEMA, **plain(value)}, indent=1, allow_nan=False))


def plain(value: Any) -> Any:
    """``value`` as JSON holds it: dataclasses by their fields, choices as they are written everywhere."""
    if isinstance(value, Choice | Path):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
