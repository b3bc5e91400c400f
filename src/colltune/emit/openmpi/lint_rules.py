"""Checks a file of rules for Open MPI's coll/tuned, of any origin, and makes a corrected copy.

The library reads such a file leniently and does not check it: words that are not numbers are skipped, a fault in the
structure makes it ignore the whole file without a message, and a rule is followed whether its algorithm fits the call
or not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from colltune.catalog import Catalogue, Need
from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.core.scenario import SizeBasis
from colltune.emit.lint.check import Check, Severity
from colltune.emit.openmpi.reader import ReadError, Row, Rows, RuleCommunicator, read_rows
from colltune.emit.openmpi.rules_file import MessageRule, RulesTable, format_rules

# Collectives of coll/tuned that the catalogue leaves out: number, name and largest algorithm.
_OTHERS = {4: ("alltoallv", 2), 8: ("exscan", 2), 14: ("scan", 2)}
# Reasons why an algorithm is not a candidate that do not forbid a rule with it.
_HARMLESS = "cannot be measured"
_DISAGREE = "ranks may see different sizes in a legal call: they run different algorithms then, and abort or hang"


@dataclass(frozen=True)
class _Fault:
    """A finding and the row that it is about; None for the whole file, or for what a corrected copy may keep."""

    check: Check
    row: Row | None = None


def is_rules_file(data: bytes) -> bool:
    """Whether ``data`` looks like a file of Open MPI: it begins with a number or a version."""
    for line in data.decode("ascii", "replace").splitlines():
        text = line.partition("#")[0].strip()
        if text:
            return text.startswith("rule-file-version") or text[0].isdecimal()
    return False


def lint_rules_files(files: Mapping[str, bytes], version: str, catalogue: Catalogue) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines.

    ``version`` is the Open MPI that is to read them, and ``catalogue`` is of that version. Any bytes are taken.
    """
    findings: list[Check] = []
    for name, data in files.items():
        try:
            rows = read_rows(data, name, version)
        except ReadError as error:
            findings.append(error.check)
            continue
        faults = _Lint(name, rows, version, cast(OpenMpiCatalogue, catalogue)).faults()
        findings += sorted(dict.fromkeys([*rows.findings, *(f.check for f in faults)]), key=lambda check: check.line)
    return findings


def fix_rules(data: bytes, name: str, version: str, catalogue: Catalogue) -> bytes:
    """A copy in which the library decides by itself in place of every rule at fault, and sizes ascend.

    Raises ReadError for a file that the library ignores: its meaning cannot be known.
    """
    rows = _in_order(read_rows(data, name, version))
    at_fault = {fault.row for fault in _Lint(name, rows, version, cast(OpenMpiCatalogue, catalogue)).faults()}
    table: RulesTable = {}
    for collective in rows.collectives:
        communicators = table.setdefault(collective.number, {})
        communicators.clear()  # of two, the library keeps the last
        for communicator in collective.communicators:
            messages = [MessageRule(row.rule.size, 0) if row in at_fault else row.rule for row in communicator.rows]
            messages = messages or [MessageRule(0, 0)]
            communicators[communicator.ranks] = [m for i, m in enumerate(messages) if not _repeats(messages, i)]
    names = {number: entry.name for number, entry in catalogue.numbered().items()}
    wide = any(m.max_requests for c in table.values() for messages in c.values() for m in messages)
    return format_rules(table, {number: names.get(number, "of tuned") for number in table}, wide=wide)


def _in_order(rows: Rows) -> Rows:
    """Rank counts and sizes ascending; of two for one rank count, the last."""
    collectives = []
    for collective in rows.collectives:
        last = {one.ranks: one for one in collective.communicators}
        communicators = []
        for one in sorted(last.values(), key=lambda one: one.ranks):
            communicators.append(replace(one, rows=tuple(sorted(one.rows, key=lambda row: row.rule.size))))
        collectives.append(replace(collective, communicators=tuple(communicators)))
    return replace(rows, collectives=tuple(collectives))


def _repeats(messages: Sequence[MessageRule], index: int) -> bool:
    """Whether a rule is redundant: it repeats the one before it, or another rule for the same size follows."""
    if index + 1 < len(messages) and messages[index + 1].size == messages[index].size:
        return True
    return index > 0 and messages[index].columns == messages[index - 1].columns


class _Lint:
    def __init__(self, name: str, rows: Rows, version: str, catalogue: OpenMpiCatalogue) -> None:
        self._name = name
        self._rows = rows
        self._version = version
        self._catalogue = catalogue
        self._entries = catalogue.numbered()

    def faults(self) -> list[_Fault]:
        found: list[_Fault] = []
        seen: dict[int, int] = {}
        for collective in self._rows.collectives:
            number, line = collective.number, collective.line
            called = self._called(number)
            if number in seen:
                what = f"{called} comes a second time, after line {seen[number]}"
                found.append(self._warn(line, (called,), what, "the library keeps the last alone", "join the two"))
            seen[number] = line
            if number not in self._entries and number not in _OTHERS:
                what = f"coll/tuned runs no {called}"
                found.append(self._warn(line, (called,), what, "nothing is decided by these rules", "leave them out"))
                continue
            found += self._ascending(called, collective.communicators)
            for low, high, index in _reached([one.ranks for one in collective.communicators], 2):
                found += self._communicator(number, called, low, high, collective.communicators[index])
        return found

    def _called(self, number: int) -> str:
        if number in self._entries:
            return self._entries[number].name
        return _OTHERS[number][0] if number in _OTHERS else f"collective {number}"

    def _communicator(
        self, number: int, called: str, low: int, high: int | None, communicator: RuleCommunicator
    ) -> Iterator[_Fault]:
        path = (called, f"{communicator.ranks} ranks and more")
        if not communicator.rows:
            why = "the library decides by itself there"
            yield self._warn(communicator.line, path, "there are no message sizes", why, "give a rule for size 0")
        for before, row in pairwise(communicator.rows):
            if row.rule.size <= before.rule.size:
                what = f"size {row.rule.size} comes after {before.rule.size}"
                why = "the library takes the last size before the first that is too large, so rules are out of reach"
                yield self._warn(row.line, path, what, why, "let the sizes ascend")
        reached = [communicator.rows[i] for _, _, i in _reached([row.rule.size for row in communicator.rows], 0)]
        entry = self._entries.get(number)
        differ = len({row.rule.columns for row in reached}) > 1
        if differ and entry is not None and entry.basis is SizeBasis.NONE and entry.name != "barrier":
            what, fix = f"{called} is decided by size", "give one rule, for size 0"
            check = Check(Severity.ERROR, self._name, communicator.line, path, what, _DISAGREE, fix)
            yield from (_Fault(check, row) for row in reached)
        for row in reached:
            yield from self._algorithm(number, called, low, high, row, path)

    def _algorithm(
        self, number: int, called: str, low: int, high: int | None, row: Row, path: tuple[str, ...]
    ) -> Iterator[_Fault]:
        chosen = row.rule.algorithm
        if chosen == 0:
            return
        entry = self._entries.get(number)
        if entry is None:
            if chosen > _OTHERS[number][1]:
                yield self._unknown(row, path, called, f"1 to {_OTHERS[number][1]}")
            return
        algorithm = next((one for one in entry.algorithms if one.number == chosen), None)
        if algorithm is None:
            known = ", ".join(f"{one.number} {one.key}" for one in entry.algorithms)
            yield self._unknown(row, path, called, known)
        elif Need.TWO_RANKS in algorithm.needs and high != low:
            reach = f"{max(low, 3)} ranks"
            what = f"{called} {algorithm.key} can be reached on {reach}"
            why = "it needs exactly two: elsewhere the call fails, and the program with it"
            yield self._fault(row, path, what, why, "put a rule with algorithm 0 for 3 ranks behind it")
        elif not algorithm.candidate and algorithm.why_not != _HARMLESS:
            what = f"{called} {algorithm.key} is not safe for every legal call"
            yield self._fault(row, path, what, algorithm.why_not, "use another algorithm, or 0")

    def _unknown(self, row: Row, path: tuple[str, ...], called: str, known: str) -> _Fault:
        what = f"Open MPI {self._version} has no algorithm {row.rule.algorithm} of {called}"
        return self._fault(row, path, what, "the call fails, and the program with it", f"use one of {known}; or 0")

    def _ascending(self, called: str, communicators: Sequence[RuleCommunicator]) -> Iterator[_Fault]:
        for before, one in pairwise(communicators):
            if one.ranks <= before.ranks:
                what = f"{one.ranks} ranks come after {before.ranks}"
                why = "the library takes the last count before the first that is too large, so rules are out of reach"
                yield self._warn(one.line, (called,), what, why, "let the rank counts ascend")

    def _fault(self, row: Row, path: tuple[str, ...], what: str, why: str, fix: str) -> _Fault:
        path = (*path, f"from {row.rule.size} bytes on")
        return _Fault(Check(Severity.ERROR, self._name, row.line, path, what, why, fix), row)

    def _warn(self, line: int, path: tuple[str, ...], what: str, why: str, fix: str) -> _Fault:
        return _Fault(Check(Severity.WARNING, self._name, line, path, what, why, fix))


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
