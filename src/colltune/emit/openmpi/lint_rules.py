"""Checks a file of rules for Open MPI's coll/tuned, of any origin.

The library reads such a file leniently and does not check it: words that are not numbers are skipped, a fault in the
structure makes it ignore the whole file without a message, and a rule is followed whether its algorithm fits the call
or not.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import cast

from colltune.catalog import Catalogue, Need
from colltune.catalog.catalogue import OpenMpiCatalogue
from colltune.core.sample import SizeBasis
from colltune.emit.lint.check import HARMLESS, Check, FindingsOfFile, in_order
from colltune.emit.openmpi.reader import ReadError, Row, Rows, RuleCommunicator, read_rows

# Collectives of coll/tuned that the catalogue leaves out: number, name and largest algorithm.
_OTHERS = {4: ("alltoallv", 2), 8: ("exscan", 2), 14: ("scan", 2)}


def lint_rules_files(files: Mapping[str, bytes], version: str, catalogue: Catalogue) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines.

    ``version`` is the Open MPI that is to read them, and ``catalogue`` is of that version. Any bytes are taken.
    """
    return in_order(files, lambda name, data: _lint(name, data, version, cast(OpenMpiCatalogue, catalogue)))


def _lint(name: str, data: bytes, version: str, catalogue: OpenMpiCatalogue) -> Iterator[Check]:
    try:
        rows = read_rows(data, name, version)
    except ReadError as error:
        yield from error.checks
        return
    yield from rows.findings
    yield from _Lint(name, rows, version, catalogue).findings()


class _Lint(FindingsOfFile):
    def __init__(self, name: str, rows: Rows, version: str, catalogue: OpenMpiCatalogue) -> None:
        super().__init__("openmpi", name)
        self._rows = rows
        self._version = version
        self._catalogue = catalogue
        self._entries = catalogue.numbered()

    def findings(self) -> Iterator[Check]:
        seen: dict[int, int] = {}
        for collective in self._rows.collectives:
            number, line = collective.number, collective.line
            called = self._called(number)
            if number in seen:
                yield self.finding("collective-twice", line, (called,), called=called, before=seen[number])
            seen[number] = line
            if number not in self._entries and number not in _OTHERS:
                yield self.finding("not-of-tuned", line, (called,), called=called)
                continue
            yield from self._ascending(called, collective.communicators)
            for low, high, index in _reached([communicator.ranks for communicator in collective.communicators], 2):
                yield from self._communicator(number, called, low, high, collective.communicators[index])

    def _called(self, number: int) -> str:
        if number in self._entries:
            return self._entries[number].name
        return _OTHERS[number][0] if number in _OTHERS else f"collective {number}"

    def _communicator(
        self, number: int, called: str, low: int, high: int | None, communicator: RuleCommunicator
    ) -> Iterator[Check]:
        path = (called, f"{communicator.ranks} ranks and more")
        if not communicator.rows:
            yield self.finding("no-sizes", communicator.line, path)
        for row in communicator.rows:
            if row.last > row.line:
                yield self.finding("over-lines", row.line, path, line=row.line, last=row.last)
        for before, row in pairwise(communicator.rows):
            if row.rule.size <= before.rule.size:
                yield self.finding("sizes-descend", row.line, path, size=row.rule.size, before=before.rule.size)
        reached = [communicator.rows[i] for _, _, i in _reached([row.rule.size for row in communicator.rows], 0)]
        entry = self._entries.get(number)
        differ = len({row.rule.columns for row in reached}) > 1
        if differ and entry is not None and entry.basis is SizeBasis.NONE and entry.name != "barrier":
            yield self.finding("by-size", communicator.line, path, called=called)
        for row in reached:
            yield from self._algorithm(number, called, low, high, row, path)

    def _algorithm(
        self, number: int, called: str, low: int, high: int | None, row: Row, path: tuple[str, ...]
    ) -> Iterator[Check]:
        chosen = row.rule.algorithm
        if chosen == 0:
            return
        entry = self._entries.get(number)
        if entry is None:
            if chosen > _OTHERS[number][1]:
                yield self._of_row("no-algorithm", row, path, called, known=f"1 to {_OTHERS[number][1]}")
            return
        algorithm = next((known for known in entry.algorithms if known.number == chosen), None)
        if algorithm is None:
            known = ", ".join(f"{other.number} {other.key}" for other in entry.algorithms)
            yield self._of_row("no-algorithm", row, path, called, known=known)
        elif Need.TWO_RANKS in algorithm.needs and high != low:
            yield self._of_row("two-ranks", row, path, called, key=algorithm.key, ranks=max(low, 3))
        elif not algorithm.candidate and algorithm.why_not != HARMLESS:
            yield self._of_row("not-safe", row, path, called, key=algorithm.key, why=algorithm.why_not)

    def _ascending(self, called: str, communicators: Sequence[RuleCommunicator]) -> Iterator[Check]:
        for before, later in pairwise(communicators):
            if later.ranks <= before.ranks:
                yield self.finding("ranks-descend", later.line, (called,), ranks=later.ranks, before=before.ranks)

    def _of_row(self, finding: str, row: Row, path: tuple[str, ...], called: str, /, **values: object) -> Check:
        chosen = {"version": self._version, "number": row.rule.algorithm, "called": called, **values}
        return self.finding(finding, row.line, (*path, f"from {row.rule.size} bytes on"), **chosen)


def _reached(starts: Sequence[int], least: int) -> Iterator[tuple[int, int | None, int]]:
    """(low, high, index): the numbers from ``least`` on that the library decides by each of ``starts``.

    It takes the last start before the first that is too large, and the first for what lies below it. None is no bound.
    """
    most = least
    for index, start in enumerate(starts):
        most = max(most, start)
        low = most if index else least
        high = max(starts[index + 1], most) - 1 if index + 1 < len(starts) else None
        if high is None or high >= low:
            yield low, high, index
