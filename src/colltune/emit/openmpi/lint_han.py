"""Reads and checks a file of rules for Open MPI's coll/han, of any origin, as the library reads it (5.0.11 was asked).

Collective, level, communicator size, message size: each has a count before what it holds. Numbers are looked for, and
what stands before one is passed over; a name is the next word, whatever it is. Ends of lines mean nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from colltune.catalog.read import read_toml
from colltune.emit.lint.check import Check, FindingsOfFile, in_order, shown
from colltune.emit.openmpi.reader import COLLECTIVE_COUNT, INT, NUMBER, ReadError, c_value, wrong_counts
from colltune.machine.file_formats import HAN_COMPONENTS

_HAN = read_toml("han_rules")
_NAMES, LEVELS = tuple(_HAN["collectives"].split()), tuple(_HAN["levels"].split())
ALL_RANKS = LEVELS.index("global_communicator")
_LARGEST = (1 << 64) - 1
_SIZE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class HanRow:
    """From ``size`` on, ``component`` decides."""

    line: int
    size: int
    component: str


@dataclass(frozen=True, slots=True)
class HanRanks:
    line: int
    ranks: int
    rows: tuple[HanRow, ...]


@dataclass(frozen=True, slots=True)
class HanLevel:
    """The rules of ``collective`` at a level: on the ranks of a node, one rank of each node, or all ranks."""

    line: int
    collective: str
    level: int
    ranks: tuple[HanRanks, ...]


def read_han(data: bytes, name: str) -> tuple[list[HanLevel], list[Check]]:
    """What Open MPI reads from ``data``, and what it passes over. Raises ReadError where it stops."""
    reader = _Reader(data.decode("latin-1"), name)
    try:
        levels = list(reader.file())
    except ReadError:
        reader.compare_lines()
        raise
    if reader.skipped:
        reader.compare_lines()
    return levels, reader.skipped


def lint_han_files(files: Mapping[str, bytes], version: str) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines. Any bytes are taken."""
    return in_order(files, lambda name, data: _lint(name, data, version))


def _lint(name: str, data: bytes, version: str) -> Iterator[Check]:
    of_file = FindingsOfFile("openmpi-han", name)
    if int(version.partition(".")[0]) < 5:
        yield of_file.finding("version", 1, version=version)
        return
    try:
        levels, skipped = read_han(data, name)
    except ReadError as error:
        yield from error.checks
        return
    yield from skipped
    seen: dict[tuple[str, int], int] = {}
    for at in levels:
        path = (at.collective, LEVELS[at.level])
        if at.collective not in _HAN["algorithms"]:
            yield of_file.finding("not-of-han", at.line, path, called=at.collective)
        if (at.collective, at.level) in seen:
            yield of_file.finding("level-twice", at.line, path, before=seen[at.collective, at.level])
        seen[at.collective, at.level] = at.line
        yield from _ascending(of_file, "ranks-descend", path, [(rank.line, rank.ranks) for rank in at.ranks])
        for rank in at.ranks:
            below = (*path, f"{rank.ranks} ranks and more")
            yield from _ascending(of_file, "sizes-descend", below, [(row.line, row.size) for row in rank.rows])
            for row in rank.rows:
                if row.component == "han" and at.level != ALL_RANKS:
                    yield of_file.finding("han-below", row.line, below)


def _ascending(
    of_file: FindingsOfFile, finding: str, path: tuple[str, ...], values: Sequence[tuple[int, int]]
) -> Iterator[Check]:
    for (_, before), (line, value) in pairwise(values):
        if value <= before:
            yield of_file.finding(finding, line, path, value=value, before=before)


class _Reader(FindingsOfFile):
    def __init__(self, text: str, name: str) -> None:
        super().__init__("openmpi-han", name)
        self._text, self._at, self._line = text, 0, 1
        self.skipped: list[Check] = []

    def file(self) -> Iterator[HanLevel]:
        for _ in range(self._count("the number of collectives", least=1)):
            name = self._known("no-collective", self._word("the name of a collective"), _NAMES, COLLECTIVE_COUNT)
            for _ in range(self._count("how many levels follow")):
                level = self._known("no-level", self._word("a level"), LEVELS, len(LEVELS))
                line = self._line
                ranks = [self._ranks(name, first=not at) for at in range(self._count("how many rank counts follow"))]
                yield HanLevel(line, name, LEVELS.index(level), tuple(ranks))
        if rest := re.search(r"^[ \t]*[^#\s]", self._text[self._at :], re.MULTILINE):
            self._take(self._at + rest.end() - 1)
            self.skipped.append(self.finding("goes-on", self._line))

    def compare_lines(self) -> None:
        """Raises ReadError with the counts that are others than the lines say, where lines say it."""
        lines = []
        for number, line in enumerate(self._text.split("\n"), 1):
            if words := line.partition("#")[0].split():
                is_rule = len(words) > 1 and words[0].isdecimal() and words[1] in HAN_COMPONENTS
                lines.append((number, [int(w) if w.isdecimal() and len(w) < 19 else -1 for w in words], is_rule))
        if wrong := wrong_counts(lines, 3):
            whats = ("collectives", "levels", "rank counts", "message sizes")
            raise ReadError(*(self.finding("count", at, given=given, counted=n, what=whats[depth])
                              for at, given, n, depth in wrong))  # fmt: skip

    def _ranks(self, collective: str, *, first: bool) -> HanRanks:
        ranks = self._count("a rank count", least=1, most=None)
        line = self._line
        if first and ranks > 1:
            raise ReadError(self.finding("first-ranks", line, ranks=ranks))
        if ranks > INT:
            self.skipped.append(self.finding("wraps", line, value=ranks, kept=ranks & 0xFFFFFFFF))
        count = self._count("how many message sizes follow")
        return HanRanks(line, ranks & 0xFFFFFFFF, tuple(self._row(collective, first=not at) for at in range(count)))

    def _row(self, collective: str, *, first: bool) -> HanRow:
        size = min(self._number("a message size", _SIZE, int), _LARGEST)
        line = self._line
        if size < 0 or (first and size > 1):
            raise ReadError(self.finding("first-size" if size > 0 else "negative", line, value=size))
        component = self._word("a component")
        if component not in HAN_COMPONENTS:
            blank = "; write a blank before @" if "@" in component else ""
            known_text = ", ".join(HAN_COMPONENTS) + blank
            raise ReadError(self.finding("no-component", self._line, word=shown(component), known=known_text))
        if component == "han" and self._peek("@"):
            self._algorithm(collective)
        if self._peek("["):
            while not self._peek("]"):
                self._number("a segment length, or ]", NUMBER, c_value)
        return HanRow(line, size, component)

    def _algorithm(self, collective: str) -> None:
        algorithm, known = self._word("an algorithm"), _HAN["algorithms"].get(collective, "").split()
        if not known:
            raise ReadError(self.finding("crashes", self._line, called=collective))
        if algorithm not in (*known, *map(str, range(len(known)))):
            numbered = ", ".join(f"{number} {name}" for number, name in enumerate(known))
            raise ReadError(
                self.finding("no-algorithm", self._line, word=shown(algorithm), called=collective, numbered=numbered)
            )

    def _known(self, finding: str, word: str, names: Sequence[str], count: int) -> str:
        """The name that ``word`` is, or is the number of."""
        if word.isdecimal() and len(word) < 9 and int(word) < count:
            return names[int(word)] if int(word) < len(names) else "another"
        if word not in names:
            raise ReadError(self.finding(finding, self._line, word=shown(word), known=", ".join(names)))
        return word

    def _count(self, due: str, least: int = 0, most: int | None = INT) -> int:
        value = self._number(due, NUMBER, c_value)
        if value < least or (most is not None and value > most):
            raise ReadError(self.finding("no-count", self._line, value=value, due=due, least=least))
        return value

    def _number(self, due: str, form: re.Pattern[str], value: Callable[[str], int]) -> int:
        while True:
            self._blanks(due)
            if match := form.match(self._text, self._at):
                self._at = match.end()
                if form is NUMBER and re.match(r"[+-]?0\d", match[0]):
                    self.skipped.append(self.finding("octal", self._line, digits=match[0], value=value(match[0])))
                return value(match[0][:30])
            word = re.compile(r"\S[^\s\d#+-]*").match(self._text, self._at)
            assert word is not None
            self.skipped.append(self.finding("no-number", self._line, word=shown(word[0])))
            self._at = word.end()

    def _word(self, due: str) -> str:
        self._blanks(due)
        match = re.compile(r"\S{1,32}").match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]

    def _peek(self, letter: str) -> bool:
        """Takes ``letter`` if it is next."""
        with_blanks = re.compile(rf"(?:\s|#[^\n]*)*{re.escape(letter)}").match(self._text, self._at)
        if with_blanks:
            self._take(with_blanks.end())
        return with_blanks is not None

    def _blanks(self, due: str) -> None:
        """Goes to what is next and no comment. Raises ReadError at the end, where ``due`` is."""
        match = re.compile(r"(?:\s|#[^\n]*)*").match(self._text, self._at)
        assert match is not None
        if match.end() == len(self._text):
            raise ReadError(self.finding("ends", self._line, due=due))
        self._take(match.end())

    def _take(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end
