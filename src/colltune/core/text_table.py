"""Tables of text that fit a terminal: where it is narrow, names go on over several lines, and numbers are never cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

_GAP = 2
_LEAST = 10  # a name is not folded into less than this; a table that needs less is written row by row
_INDENT = "  "
# A name goes on in the next line behind one of these; its numbers stay whole.
_PIECE = re.compile(r"[^\s_,(/]*[\s_,(/]|[^\s_,(/]+")


@dataclass
class TextTable:
    """Rows under headers.

    A header that ends in ``>`` is of numbers: they stand at the right, and are never cut or folded. One that ends in
    ``?`` is of bars or the like, which are left out where there is no room for them. All others are names, which are
    folded.
    """

    headers: Sequence[str]
    title: str = ""
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        self.rows.append(cells)

    def add_section(self, heading: str = "") -> None:
        """A line of its own between the row before and the next: ``heading``, or an empty one."""
        self.rows.append((heading,))

    def lines(self, width: int) -> list[str]:
        """The header and the rows in at most ``width`` columns; by row, with every value named, if nothing else fits.

        Only a single name or number that is wider than ``width`` by itself makes a line longer.
        """
        title, head, body = self._laid_out(width)
        return [*title, *head, *body]

    def _laid_out(self, width: int) -> tuple[list[str], list[str], list[str]]:
        """The lines of title, header (none where rows are written one by one) and rows."""
        columns = list(range(len(self.headers)))
        natural = [max(len(cell) for cell in self._cells(column)) for column in columns]
        if _total(natural) > width:
            columns = [column for column in columns if not self.headers[column].endswith("?")]
        title = list(_filled(self.title.split(), " ", "", width))
        widths = self._fitted(columns, natural, width)
        if widths is None:
            return title, [], [line for row in self.rows for line in self._record(columns, row, width)]
        head = self._row(columns, widths, [self.headers[column].rstrip(">?") for column in columns])
        body: list[str] = []
        for row in self.rows:
            cells = [row[column] for column in columns] if len(row) > 1 else []
            body += self._row(columns, widths, cells) if cells else _folded(row[0], width)
        return title, head, body

    def _cells(self, column: int) -> Iterable[str]:
        return [self.headers[column].rstrip(">?"), *(row[column] for row in self.rows if len(row) > 1)]

    def _is_number(self, column: int) -> bool:
        return self.headers[column].endswith(">")

    def _fitted(self, columns: Sequence[int], natural: Sequence[int], width: int) -> list[int] | None:
        """A width for each of ``columns``; None where the numbers leave no room for the names."""
        widths = [natural[column] for column in columns]
        names = [place for place, column in enumerate(columns) if not self._is_number(column)]
        while _total(widths) > width:
            widest = max(names, key=lambda place: widths[place], default=None)
            if widest is None or widths[widest] <= _LEAST:
                return None
            widths[widest] -= 1
        return widths

    def _row(self, columns: Sequence[int], widths: Sequence[int], cells: Sequence[str]) -> list[str]:
        """A row; of several lines where names are folded."""
        folded = [_folded(cell, width) for cell, width in zip(cells, widths, strict=True)]
        lines = []
        for number in range(max(map(len, folded))):
            parts = [lines_of[number] if number < len(lines_of) else "" for lines_of in folded]
            aligned = [
                part.rjust(width) if self._is_number(column) else part.ljust(width)
                for part, width, column in zip(parts, widths, columns, strict=True)
            ]
            lines.append((" " * _GAP).join(aligned).rstrip())
        return lines

    def _record(self, columns: Sequence[int], row: Sequence[str], width: int) -> Iterator[str]:
        """The names of a row, and under them its numbers, each with its header."""
        if len(row) == 1:
            yield from _folded(row[0], width)
            return
        names = [row[column] for column in columns if not self._is_number(column) and row[column]]
        yield from _folded(" ".join(names), width)
        numbers = [
            f"{self.headers[column].rstrip('>')} {row[column]}"
            for column in columns
            if self._is_number(column) and row[column]
        ]
        yield from _filled(numbers, ", ", _INDENT, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for lines, style in zip(self._laid_out(options.max_width), ("italic", "bold", ""), strict=True):
            for line in lines:
                yield Text(line, style=style, no_wrap=True, overflow="ignore")


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _folded(cell: str, width: int) -> list[str]:
    """``cell`` in lines of at most ``width``."""
    lines = [""]
    for piece in _PIECE.findall(cell):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        whole = lines[-1] + piece
        while len(whole.rstrip()) > width:
            lines[-1:] = [whole[:width], ""]
            whole = whole[width:]
        lines[-1] = whole
    return [line.rstrip() for line in lines]


def _filled(parts: Sequence[str], separator: str, indent: str, width: int) -> Iterator[str]:
    """``parts``, none of them broken, on lines of at most ``width``."""
    line, end = "", separator.rstrip()
    for part in parts:
        longer = line + separator + part if line else indent + part
        if line and len(longer + end) > width:
            yield line + end
            longer = indent + part
        line = longer
    if line:
        yield line
