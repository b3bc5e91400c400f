"""JSON objects with the line of every key, which Python's own reader does not keep.

As strict as the JSON standard. MPICH's reader accepts some deviations (comments, a trailing comma), but not reliably.
"""

import json
import re
from dataclasses import dataclass

# MPICH's reader rejects text that is nested deeper (32 levels, of which one is its own).
DEEPEST = 31
_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_SCALAR = r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null"
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(rf"(?P<mark>[{{}}\[\]:,])|(?P<string>{_STRING})|(?P<scalar>{_SCALAR})")


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """One key of an object, the line it stands on (from 1), and its value."""

    key: str
    line: int
    value: "JsonValue"

    @property
    def name(self) -> str:
        """The key as MPICH reads it: without spaces."""
        return self.key.replace(" ", "")


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A value. ``entries``: of an object, in the order of the file, with repeated keys; None for any other value.

    ``text``: of a string; None for any other value.
    """

    line: int
    entries: tuple[JsonEntry, ...] | None
    text: str | None = None


class NotJsonError(Exception):
    """Text that is not JSON. ``line`` is the first line at fault."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def read_json(data: bytes) -> JsonValue:
    """The value that ``data`` holds. Raises NotJsonError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJsonError("holds bytes that are no UTF-8 text", data.count(b"\n", 0, error.start) + 1) from None
    if not text.strip(" \t\r\n\0"):
        raise NotJsonError("is empty", 1)
    reader = _Reader(text)
    node = reader.value(1)
    if reader.peek()[0]:
        raise reader.fault("goes on after its end", reader.peek()[1])
    return node


class _Reader:
    """Reads one token ahead. Lines are counted as tokens are taken, so that the whole is linear."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1
        self._ahead: tuple[str, str] | None = None

    def peek(self) -> tuple[str, str]:
        """(kind, text) of the next token; both empty at the end."""
        if self._ahead is None:
            space = _SPACE.match(self._text, self._position)
            assert space is not None
            self._line += space.group().count("\n")
            self._position = space.end()
            if self._position == len(self._text):
                self._ahead = ("", "")
            else:
                match = _TOKEN.match(self._text, self._position)
                if match is None:
                    raise self.fault("is not JSON", self._text[self._position : self._position + 20])
                self._position = match.end()
                self._ahead = (str(match.lastgroup), match.group())
        return self._ahead

    def take(self, *expected: str) -> tuple[str, str]:
        """Takes the next token, which must be one of these marks or kinds; any token where none is given."""
        kind, text = self.peek()
        if not kind:
            raise self.fault("is cut off: it ends in the middle", "")
        if expected and kind not in expected and text not in expected:
            raise self.fault(f"has no {' or '.join(expected)} where one is due", text)
        self._ahead = None
        return kind, text

    def value(self, depth: int) -> JsonValue:
        if depth > DEEPEST:
            raise NotJsonError(f"is nested more than {DEEPEST} levels deep, where MPICH gives up", self._line)
        kind, text = self.take()
        line = self._line
        if text == "{":
            return JsonValue(line, tuple(self._members(depth)))
        if text == "[":
            if self.peek()[1] != "]":
                self.value(depth + 1)
                while self.peek()[1] == ",":
                    self.take()
                    self.value(depth + 1)
            self.take("]")
        elif kind == "mark":
            raise self.fault("has no value where one is due", text)
        return JsonValue(line, None, json.loads(text) if kind == "string" else None)

    def _members(self, depth: int) -> list[JsonEntry]:
        members: list[JsonEntry] = []
        if self.peek()[1] == "}":
            self.take()
            return members
        while True:
            _, text = self.take("string")
            line = self._line
            self.take(":")
            members.append(JsonEntry(json.loads(text), line, self.value(depth + 1)))
            if self.take(",", "}")[1] == "}":
                return members

    def fault(self, what: str, at: str) -> NotJsonError:
        return NotJsonError(f"{what}, at {at[:40]!a}" if at else what, self._line)
