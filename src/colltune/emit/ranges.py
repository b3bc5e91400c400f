"""Rules to environment variables that hold an algorithm's number for ranges of sizes: Intel MPI and MVAPICH2.

    I_MPI_ADJUST_BCAST=1:0-512;3:513-2147483647        number, and bytes, the upper bound included
    MV2_INTER_BCAST_TUNING=1:0-512,3:512-+             number, and bytes; the first range that holds decides

MVAPICH2 decides by itself what no range covers; Intel MPI has no value that means this. Both are written as a file of
exports for a shell.
"""

import abc
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from colltune.catalog import Catalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import LEAST_RANKS, DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.steps import Steps
from colltune.emit.without_ppn import by_ranks_of, merge_ppn

# The largest number in a range; both libraries read sizes as int.
LARGEST = 2**31 - 1
_EXPORT = re.compile(r"export ([A-Z0-9_]+)=(.*)")


class _Range(NamedTuple):
    number: int
    low: int
    high: int
    least_ranks: int = 2
    most_ranks: int = LARGEST


def _for_one_job(rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
    """One set of sizes for all rank counts: that of the whole job, which the variables are exported for."""
    ranks = max(nodes * ppn for nodes, ppn in shapes)
    here = DecisionTable.of(merge_ppn(rule_set, shapes)).by_ppn.last.at(ranks)
    return DecisionTable(rule_set.collective, rule_set.basis, Steps.always(Steps.always(here))).rule_set()


class RangesEmitter(abc.ABC):
    """The common part of both emitters. ``file``: the name of the file of exports."""

    name: str
    file: str

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    @abc.abstractmethod
    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """The part of ``rule_set`` that the variables can express, for a job of the largest of ``shapes``."""

    @abc.abstractmethod
    def variable(self, collective: str) -> str: ...

    @abc.abstractmethod
    def number(self, collective: str, choice: Choice) -> int: ...

    @abc.abstractmethod
    def write(self, ranges: Sequence[_Range]) -> str: ...

    @abc.abstractmethod
    def read(self, text: str) -> Iterator[_Range]:
        """Raises ValueError."""

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        lines = [f"# Written by colltune. Source it in the job script: . ./{self.file}"]
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            text = self.write(list(self._ranges(rule_set)))
            if text:
                lines.append(f"export {self.variable(rule_set.collective)}={shlex.quote(text)}")
        return {self.file: ("\n".join(lines) + "\n").encode("ascii")}

    def environment(self, directory: Path) -> dict[str, str]:
        """A file that a shell reads; the variables themselves are in it."""
        return {"COLLTUNE_EXPORTS": str(directory / self.file)}

    def _ranges(self, rule_set: RuleSet) -> Iterator[_Range]:
        for ranks, by_size in by_ranks_of(rule_set, self.name).spans(LEAST_RANKS):
            for size, choice in by_size.spans():
                if choice != DEFAULT and size.low <= LARGEST:
                    high, most = (LARGEST if span.high is None else min(span.high, LARGEST) for span in (size, ranks))
                    yield _Range(self.number(rule_set.collective, choice), size.low, high, ranks.low, most)

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        basis = self._catalogue.collective(collective).basis
        values = {}
        for line in files.get(self.file, b"").decode("ascii", "replace").splitlines():
            match = _EXPORT.fullmatch(line)
            if match:
                values[match.group(1)] = match.group(2)
        text = values.get(self.variable(collective))
        if text is None:
            return RuleSet.always(collective, basis)
        try:
            return self._rule_set(collective, basis, list(self.read(shlex.split(text)[0])))
        except (ValueError, LookupError) as error:
            raise InputError(f"{self.file}: cannot read {text!r}: {error}", "Write it again") from None

    def _rule_set(self, collective: str, basis: SizeBasis, ranges: Sequence[_Range]) -> RuleSet:
        choices = {self.number(collective, choice): choice for choice in reversed(self._choices(collective))}
        edges = {r.most_ranks for r in ranges} | {r.least_ranks - 1 for r in ranges if r.least_ranks > 2}
        rules = []
        low_ranks = 2
        for most in sorted(edges | {LARGEST}):
            here = [r for r in ranges if r.least_ranks <= low_ranks and most <= r.most_ranks]
            bounds = {r.high for r in here} | {r.low - 1 for r in here if r.low > 0} | {LARGEST}
            for high in sorted(bounds) if basis is not SizeBasis.NONE else [LARGEST]:
                found = next((r for r in here if r.low <= high <= r.high), None)
                choice = DEFAULT if found is None else choices[found.number]
                max_ranks, max_size = (None if bound >= LARGEST else bound for bound in (most, high))
                rules.append(Rule(None, max_ranks, max_size, choice))
            low_ranks = most + 1
        return RuleSet(collective, basis, tuple(rules))

    def _choices(self, collective: str) -> tuple[Choice, ...]:
        return tuple(choice for choice in self._catalogue.choices(collective) if choice != DEFAULT)


class IntelMpiEmitter(RangesEmitter):
    """I_MPI_ADJUST_X, with sizes alone, for one job.

    2021.18 takes the first range whose upper bound is not below the size, whatever its lower bound is; the last range
    reaches on beyond its own; a range of processes behind it (@) changes nothing; and no number means the library's own
    decision (tests/mpi/test_intelmpi_real.py). So a collective is written where every size has an algorithm, or not
    at all.
    """

    name = "intelmpi"
    file = "intelmpi.env"

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        here = _for_one_job(rule_set, shapes)
        if any(rule.choice == DEFAULT for rule in here.rules):
            return RuleSet.always(rule_set.collective, rule_set.basis)
        return here

    def variable(self, collective: str) -> str:
        return f"I_MPI_ADJUST_{collective.upper()}"

    def number(self, collective: str, choice: Choice) -> int:
        return self._catalogue.algorithm(collective, choice).number or 0

    def write(self, ranges: Sequence[_Range]) -> str:
        if any((r.least_ranks, r.most_ranks) != (2, LARGEST) for r in ranges):
            raise InputError("Intel MPI does not tell rank counts apart", "Reduce by `expressible` first")
        ends = [-1, *(r.high for r in ranges)]
        if ranges and (ends[-1] != LARGEST or any(r.low != end + 1 for r, end in zip(ranges, ends, strict=False))):
            raise InputError("Intel MPI has no way to say its own decision", "Reduce by `expressible` first")
        return ";".join(f"{r.number}:{r.low}-{r.high}" for r in ranges)

    def read(self, text: str) -> Iterator[_Range]:
        low = 0
        for item in text.split(";"):
            match = re.fullmatch(r"(\d+):(\d+)-(\d+)", item)
            if match is None:
                raise ValueError(item)
            number, _, high = map(int, match.groups())
            yield _Range(number, low, high)
            low = high + 1


class Mvapich2Emitter(RangesEmitter):
    """MV2_X_TUNING, with sizes alone. Never run here: no MVAPICH2 was at hand."""

    name = "mvapich"
    file = "mvapich2.env"

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        return _for_one_job(rule_set, shapes)

    def variable(self, collective: str) -> str:
        special = {"reduce_scatter": "MV2_RED_SCAT_TUNING", "alltoall": "MV2_ALLTOALL_TUNING"}
        return special.get(collective, f"MV2_INTER_{collective.upper()}_TUNING")

    def number(self, collective: str, choice: Choice) -> int:  # noqa: ARG002
        return int(dict(choice.parameters)["n"])

    def write(self, ranges: Sequence[_Range]) -> str:
        if any((r.least_ranks, r.most_ranks) != (2, LARGEST) for r in ranges):
            raise InputError("MVAPICH2's variables cannot tell rank counts apart", "Reduce by `expressible` first")
        return ",".join(f"{r.number}:{r.low}-{'+' if r.high == LARGEST else r.high}" for r in ranges)

    def read(self, text: str) -> Iterator[_Range]:
        for item in text.split(","):
            match = re.fullmatch(r"(\d+):(\d+)-(\d+|\+)", item)
            if match is None:
                raise ValueError(item)
            number, low, high = match.groups()
            yield _Range(int(number), int(low), LARGEST if high == "+" else int(high))
