"""Reads a file of rules for coll/tuned as the library does, with the line of each rule."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from colltune.emit.lint.check import Check, FindingsOfFile, shown

# Numbers as C's "%li" takes them: 0x10 is 16 and 010 is 8. Everything else is skipped, one character at a time.
NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_TOKEN = re.compile(rf"#[^\n]*|(?P<number>{NUMBER.pattern})|(?P<word>(?:[^\s#\d+-]|[+-](?!\d))+)")
_LONG_DIGITS = 30  # more than a long has in any base
_VERSION = re.compile(r"rule-file-version-(\d{1,9})\d*")
# The collectives that the library counts, neighbours included.
COLLECTIVE_COUNT = 22
INT = (1 << 31) - 1  # the library keeps rank counts, algorithms and fan-outs in an int, whatever the file says
# A count that lines contradict: its line, what it says, how many lines follow, and of what (0 for the outermost).
WrongCount = tuple[int, int, int, int]


class MessageRule(NamedTuple):
    """From ``size`` on: the columns of a line."""

    size: int
    algorithm: int
    fanout: int = 0
    segment_size: int = 0
    max_requests: int = 0

    @property
    def columns(self) -> tuple[int, int, int, int]:
        return (self.algorithm, self.fanout, self.segment_size, self.max_requests)


@dataclass(frozen=True, slots=True)
class Row:
    """The line of a file, from 1, and the rule on it."""

    line: int
    rule: MessageRule
    last: int  # the line of its last column; ``line`` too where each column has a line of its own


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
    """A file that the library ignores, or reads in another way than its lines say. ``checks``: why."""

    def __init__(self, *checks: Check) -> None:
        super().__init__(checks[0].what)
        self.checks = checks


@dataclass(frozen=True, slots=True)
class _Number:
    line: int
    value: int
    follows_closely: bool  # only blanks since the number before


def reads_version_2(version: str) -> bool:
    """Whether this release reads the column of most requests: 4.1.8, and 5.0.7 and later; "5.0" is the newest 5.0."""
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
    return len(numbers) < 3 or numbers >= (5, 0, 7) or (4, 1, 8) <= numbers < (5, 0)


def read_rows(data: bytes, name: str, version: str) -> Rows:
    """The rules that Open MPI ``version`` reads from ``data``. Raises ReadError where it ignores the file."""
    text = data.decode("latin-1")
    head = _VERSION.match(text)
    if head is not None and not reads_version_2(version):
        raise ReadError(FindingsOfFile("openmpi", name).finding("version-2", 1, version=version))
    reader = _Reader(text, head.end() if head else 0, name, columns=5 if head and int(head.group(1)) > 1 else 4)
    try:
        rows = tuple(reader.collective() for _ in range(reader.count("the number of collectives", COLLECTIVE_COUNT)))
    except ReadError:
        reader.compare_lines()
        raise
    wraps = (row.last > row.line for collective in rows for ranks in collective.communicators for row in ranks.rows)
    if reader.goes_on or any(wraps):
        reader.compare_lines()
    return Rows(rows, tuple(reader.findings()))


def wrong_counts(lines: Iterable[tuple[int, Sequence[int], bool]], depth: int) -> list[WrongCount] | None:
    """The counts that the lines of a file contradict, where each rule has a line; None where lines do not tell.

    The library ignores ends of lines; whoever wrote the file did not. ``lines``: number, numbers, and whether it is a
    rule. Each of ``depth`` levels has a name and a count, so before a rule stand the pairs of those that begin with it.
    """
    counts: list[list[int]] = []
    opened: list[list[int]] = []  # by level
    before: list[tuple[int, int]] = []
    for line, numbers, is_rule in lines:
        if not is_rule:
            before += [(line, number) for number in numbers]
            continue
        new = before[1::2] if opened else [*before[:1], *before[2::2]]
        level = depth + 1 - len(new)
        if len(before) != 2 * len(new) - (not opened) or level < bool(opened) or (level and not opened):
            return None
        opened = opened[:level]
        for place, (at, given) in enumerate(new, level):
            for above in opened[-1:]:
                above[2] += 1
            opened.append([at, given, 0, place])
        counts += opened[level:]
        opened[-1][2] += 1
        before = []
    wrong = [(at, given, counted, place) for at, given, counted, place in counts if given != counted]
    # Whoever miscounts does so at one level; more than that is of lines that are others than they seem.
    unlike = len({place for _, _, _, place in wrong}) > 1 or any(given < 1 for _, given, _, _ in counts)
    return None if before or unlike else wrong


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
                self._skipped.append(self.finding("no-number", line, word=shown(match["word"])))
            elif match["number"]:
                digits = match["number"].lstrip("+-")
                if len(digits) > 1 and digits[0] == "0":
                    self._skipped.append(self.finding("octal", line, digits=digits, value=c_value(match["number"])))
                yield _Number(line, c_value(match["number"]), not text[blank : match.start()].strip(" \t\r"))
                blank = match.end()

    @property
    def goes_on(self) -> bool:
        return self._at < len(self._numbers)

    def compare_lines(self) -> None:
        """Raises ReadError with the counts, or the rules, that are others than the lines say, where lines say it."""
        by_line: dict[int, list[int]] = {}
        for number in self._numbers:
            by_line.setdefault(number.line, []).append(number.value)
        lines = [(line, numbers, 3 <= len(numbers) <= 5) for line, numbers in by_line.items()]
        if (wrong := wrong_counts(lines, 2)) is None:
            return
        whats = ("collectives", "rank counts", "message sizes")
        checks = [
            self.finding("count" if given <= INT else "too-large", at, given=given, counted=counted, what=whats[place])
            for at, given, counted, place in wrong
        ]
        odd = [(at, len(numbers)) for at, numbers, rule in lines if rule and not 4 <= len(numbers) <= self._columns]
        checks += [self.finding("columns", at, count=count, columns=self._columns) for at, count in odd[:1]]
        if checks:
            raise ReadError(*checks)

    def findings(self) -> Iterator[Check]:
        yield from self._skipped
        if self.goes_on:
            yield self.finding("goes-on", self._numbers[self._at].line, more=len(self._numbers) - self._at)

    def _next(self, what: str) -> _Number:
        if self._at == len(self._numbers):
            line = self._numbers[-1].line if self._numbers else 1
            raise ReadError(self.finding("ends", line, due=what))
        number = self._numbers[self._at]
        self._at += 1
        if number.value < 0:
            raise ReadError(self.finding("negative", number.line, value=number.value, due=what))
        return number

    def count(self, what: str, most: int) -> int:
        number = self._next(what)
        if number.value > most:
            raise ReadError(self.finding("too-many", number.line, value=number.value, what=what, most=most))
        return number.value

    def _count_of(self, what: str) -> int:
        number = self._next(f"how many {what} follow")
        if number.value > INT:
            raise ReadError(self.finding("too-large", number.line, given=number.value, what=what))
        return number.value

    def collective(self) -> Collective:
        number = self._next("the number of a collective")
        if number.value >= COLLECTIVE_COUNT:
            raise ReadError(self.finding("no-collective", number.line, value=number.value, last=COLLECTIVE_COUNT - 1))
        count = self._count_of("rank counts")
        return Collective(number.line, number.value, tuple(self._communicator() for _ in range(count)))

    def _communicator(self) -> RuleCommunicator:
        ranks = self._next("a rank count")
        self._require_int(ranks)
        count = self._count_of("message sizes")
        rows = []
        for index in range(count):
            rows.append(self._row())
            if index == 0 and rows[0].rule.size != 0:
                size = rows[0].rule.size
                raise ReadError(self.finding("first-size", rows[0].line, ranks=ranks.value, size=size))
        return RuleCommunicator(ranks.line, ranks.value, tuple(rows))

    def _row(self) -> Row:
        names = ("a message size", "an algorithm", "a fan-out", "a segment size")
        columns = [self._next(name) for name in names]
        more = self._numbers[self._at : self._at + 1]
        if self._columns == 5 and more and more[0].follows_closely and more[0].value >= 0:
            columns.append(self._next("the most requests"))
        for column in columns[1:3]:
            self._require_int(column)
        alone = len({column.line for column in columns}) == len(columns)
        last = columns[0 if alone else -1].line
        return Row(columns[0].line, MessageRule(*(column.value for column in columns)), last)

    def _require_int(self, number: _Number) -> None:
        if number.value > INT:
            self._skipped.append(self.finding("wraps", number.line, value=number.value, kept=number.value & 0xFFFFFFFF))


def c_value(text: str) -> int:
    """As strtol, which ends at the largest and the smallest long."""
    digits = text.lstrip("+-").lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") and len(digits) > 1 else 10
    most = (1 << 63) - 1
    value = int(digits, base) if len(digits) < _LONG_DIGITS else most
    return max(-value, ~most) if text.startswith("-") else min(value, most)
