"""Reads a file of rules for coll/tuned as the library does, with the line of each rule."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from colltune.emit.lint.check import Check, FindingsOfFile, shown
from colltune.emit.openmpi.rules_file import MessageRule, reads_version_2

# Numbers as C's "%li" takes them: 0x10 is 16 and 010 is 8. Everything else is skipped, one character at a time.
_TOKEN = re.compile(r"#[^\n]*|(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*))|(?P<word>[^\s#\d]+)")
_LONG_DIGITS = 30  # more than a long has in any base
_VERSION = re.compile(r"rule-file-version-(\d{1,9})\d*")
# The collectives that the library counts, neighbours included.
COLLECTIVE_COUNT = 22


@dataclass(frozen=True, slots=True)
class Row:
    """The line of a file, from 1, and the rule on it."""

    line: int
    rule: MessageRule


@dataclass(frozen=True, slots=True)
class RuleCommunicator:
    line: int
    ranks: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Collective:
    line: int
    number: int
    communicators: tuple[RuleCommunicator, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file, in order; ``findings``: what the reader skipped."""

    collectives: tuple[Collective, ...]
    findings: tuple[Check, ...] = field(default=())


class ReadError(Exception):
    """A file that the library ignores. ``check`` is the finding."""

    def __init__(self, check: Check) -> None:
        super().__init__(check.what)
        self.check = check


@dataclass(frozen=True, slots=True)
class _Number:
    line: int
    value: int
    follows_closely: bool  # only blanks since the number before


def read_rows(data: bytes, name: str, version: str) -> Rows:
    """The rules that Open MPI ``version`` reads from ``data``. Raises ReadError where it ignores the file."""
    text = data.decode("latin-1")
    head = _VERSION.match(text)
    if head is not None and not reads_version_2(version):
        raise ReadError(FindingsOfFile("openmpi", name).found("version-2", 1, version=version))
    reader = _Reader(text, head.end() if head else 0, name, columns=5 if head and int(head.group(1)) > 1 else 4)
    rows = tuple(reader.collective() for _ in range(reader.count("the number of collectives", COLLECTIVE_COUNT)))
    return Rows(rows, tuple(reader.findings()))


class _Reader(FindingsOfFile):
    def __init__(self, text: str, start: int, name: str, columns: int) -> None:
        super().__init__("openmpi", name)
        self._columns = columns
        self._skipped: list[Check] = []
        self._numbers = list(self._tokens(text, start))
        self._at = 0

    def _tokens(self, text: str, start: int) -> Iterator[_Number]:
        line, last, blank = 1, 0, start
        for match in _TOKEN.finditer(text, start):
            line += text.count("\n", last, match.start())
            last = match.start()
            if match["word"]:
                self._skipped.append(self.found("no-number", line, word=shown(match["word"])))
            elif match["number"]:
                digits = match["number"].lstrip("+-")
                if len(digits) > 1 and digits[0] == "0":
                    self._skipped.append(self.found("octal", line, digits=digits, value=_value(match["number"])))
                yield _Number(line, _value(match["number"]), not text[blank : match.start()].strip(" \t\r"))
            blank = match.end()

    def findings(self) -> Iterator[Check]:
        yield from self._skipped
        if self._at < len(self._numbers):
            yield self.found("goes-on", self._numbers[self._at].line, more=len(self._numbers) - self._at)

    def _next(self, what: str) -> _Number:
        if self._at == len(self._numbers):
            line = self._numbers[-1].line if self._numbers else 1
            raise ReadError(self.found("ends", line, due=what))
        found = self._numbers[self._at]
        self._at += 1
        if found.value < 0:
            raise ReadError(self.found("negative", found.line, value=found.value, due=what))
        return found

    def count(self, what: str, most: int) -> int:
        found = self._next(what)
        if found.value > most:
            raise ReadError(self.found("too-many", found.line, value=found.value, what=what, most=most))
        return found.value

    def collective(self) -> Collective:
        number = self._next("the number of a collective")
        if number.value >= COLLECTIVE_COUNT:
            raise ReadError(self.found("no-collective", number.line, value=number.value, last=COLLECTIVE_COUNT - 1))
        count = self._next("how many rank counts follow").value
        return Collective(number.line, number.value, tuple(self._communicator() for _ in range(count)))

    def _communicator(self) -> RuleCommunicator:
        ranks = self._next("a rank count")
        count = self._next("how many message sizes follow").value
        rows = []
        for index in range(count):
            rows.append(self._row())
            if index == 0 and rows[0].rule.size != 0:
                size = rows[0].rule.size
                raise ReadError(self.found("first-size", rows[0].line, ranks=ranks.value, size=size))
        return RuleCommunicator(ranks.line, ranks.value, tuple(rows))

    def _row(self) -> Row:
        names = ("a message size", "an algorithm", "a fan-out", "a segment size")
        columns = [self._next(name) for name in names]
        more = self._numbers[self._at : self._at + 1]
        if self._columns == 5 and more and more[0].follows_closely and more[0].value >= 0:
            columns.append(self._next("the most requests"))
        return Row(columns[0].line, MessageRule(*(column.value for column in columns)))


def _value(text: str) -> int:
    """As strtol, which ends at the largest and the smallest long."""
    digits = text.lstrip("+-").lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") and len(digits) > 1 else 10
    most = (1 << 63) - 1
    value = int(digits, base) if len(digits) < _LONG_DIGITS else most
    return max(-value, ~most) if text.startswith("-") else min(value, most)
