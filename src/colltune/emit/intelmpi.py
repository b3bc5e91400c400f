"""Rules to Intel MPI's environment variables, which hold an algorithm's number for ranges of sizes, for one job.

    I_MPI_ADJUST_BCAST=1:0-512;3:513-2147483647        number, and bytes, the upper bound included

They are written as a file of exports for a shell.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from colltune.catalog import Catalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import LEAST_RANKS, DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.steps import Steps
from colltune.emit.without_ppn import by_ranks_of, merge_ppn

# The largest number in a range: sizes are read as int.
LARGEST = 2**31 - 1
FILE = "intelmpi.env"
_EXPORT = re.compile(r"export ([A-Z0-9_]+)=(.*)")
_RANGE = re.compile(r"(\d+):\d+-(\d+)")


class IntelMpiEmitter:
    """I_MPI_ADJUST_X, with sizes alone.

    2021.18 takes the first range whose upper bound is not below the size, whatever its lower bound is; the last range
    reaches on beyond its own; a range of processes behind it (@) changes nothing; and no number means the library's own
    decision (tests/mpi/test_intelmpi_real.py). So a collective is written where every size has an algorithm, or not
    at all.
    """

    name = "intelmpi"

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """The rules for the whole job, the largest of ``shapes``, for which the variables are exported."""
        ranks = max(nodes * ppn for nodes, ppn in shapes)
        sizes = DecisionTable.of(merge_ppn(rule_set, shapes)).by_ppn.last.at(ranks)
        here = DecisionTable(rule_set.collective, rule_set.basis, Steps.always(Steps.always(sizes))).rule_set()
        if any(rule.choice == DEFAULT for rule in here.rules):
            return RuleSet.always(rule_set.collective, rule_set.basis)
        return here

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        lines = [f"# Written by colltune. Source it in the job script: . ./{FILE}"]
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            if text := ";".join(self._ranges(rule_set)):
                lines.append(f"export {_variable(rule_set.collective)}={shlex.quote(text)}")
        return {FILE: ("\n".join(lines) + "\n").encode("ascii")}

    def environment(self, directory: Path) -> dict[str, str]:
        """A file that a shell reads; the variables themselves are in it."""
        return {"COLLTUNE_EXPORTS": str(directory / FILE)}

    def _ranges(self, rule_set: RuleSet) -> Iterator[str]:
        """Of each range of sizes: the number and the bounds. Raises InputError for rules that are not expressible."""
        if not rule_set.departs:
            return
        of_each = list(by_ranks_of(rule_set, self.name).spans(LEAST_RANKS))
        if len(of_each) > 1:
            raise InputError("Intel MPI does not tell rank counts apart", "Reduce by `expressible` first")
        for size, choice in of_each[0][1].spans():
            if choice == DEFAULT:
                raise InputError("Intel MPI has no way to say its own decision", "Reduce by `expressible` first")
            if size.low <= LARGEST:
                number = self._catalogue.algorithm(rule_set.collective, choice).number or 0
                yield f"{number}:{size.low}-{LARGEST if size.high is None else min(size.high, LARGEST)}"

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        basis = self._catalogue.collective(collective).basis
        exports = map(_EXPORT.fullmatch, files.get(FILE, b"").decode("ascii", "replace").splitlines())
        text = {export[1]: export[2] for export in exports if export is not None}.get(_variable(collective))
        if text is None:
            return RuleSet.always(collective, basis)
        try:
            return RuleSet(collective, basis, tuple(self._rules(collective, basis, shlex.split(text)[0].split(";"))))
        except (ValueError, LookupError) as error:
            raise InputError(f"{FILE}: cannot read {text!r}: {error}", "Write it again") from None

    def _rules(self, collective: str, basis: SizeBasis, ranges: Sequence[str]) -> Iterator[Rule]:
        """Raises ValueError and KeyError."""
        numbers: dict[int, Choice] = {}
        for choice in self._catalogue.choices(collective):
            if choice != DEFAULT:
                numbers.setdefault(self._catalogue.algorithm(collective, choice).number or 0, choice)
        highest = -1
        for position, text in enumerate(ranges, start=1):
            match = _RANGE.fullmatch(text)
            if match is None:
                raise ValueError(text)
            number, high = int(match[1]), int(match[2])
            is_last = position == len(ranges) or basis is SizeBasis.NONE
            if high > highest or is_last:
                yield Rule(None, None, None if is_last else high, numbers[number])
            if is_last:
                return
            highest = max(highest, high)


def _variable(collective: str) -> str:
    return f"I_MPI_ADJUST_{collective.upper()}"
