"""Rules to Open MPI's classic file of dynamic rules (4.1 and 5.0), and back.

The file nests collective, communicator size and message size; in each the entry with the largest number that is not
above the call's decides. Three things follow. A call below the first communicator size gets the rules of the first all
the same, so two ranks are always named. The last size reaches to infinity, so the default is named behind the rules.
And algorithm 0 is the library's own decision.

Open MPI ignores a file with a fault without a message, and does not check whether an algorithm fits a call. So a file
is read back before it is returned, and ``colltune run`` refuses to start with a file that was changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from colltune.catalog import Need
from colltune.catalog.named_files import FILES, SWITCHES
from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import LEAST_RANKS, BySize
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.steps import Span
from colltune.emit.openmpi.han import HAN_FILE, format_han
from colltune.emit.without_ppn import by_ranks_of, merge_ppn, start_at_one

RULES_FILE = FILES["openmpi"]["OMPI_MCA_coll_tuned_dynamic_rules_filename"]
# The library reads message sizes as size_t, and communicator sizes as int.
LARGEST_RANKS = 2**31 - 1
# In these a call in place has no size of its own that the library could see.
_SIZE_UNKNOWN_IN_PLACE = ("alltoall",)
_HEAD = """\
# Rules of coll/tuned, written by colltune. Read where coll_tuned_use_dynamic_rules is 1 and
# coll_tuned_dynamic_rules_filename names this file. A line of a rule is: message size, algorithm,
# fan-out, segment size, most requests. Algorithm 0 is the library's own decision.
"""


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


# Communicator size -> message rules, by the number of the collective; both ascending.
RulesTable = dict[int, dict[int, list[MessageRule]]]


class OpenMpiEmitter:
    """Emitter for the classic file, and for han's where that stands before coll/tuned (see emit/openmpi/han.py).

    ``wide``: with the column of most requests, which older releases cannot read.
    """

    name = "openmpi"

    def __init__(self, catalogue: OpenMpiCatalogue, *, wide: bool = True) -> None:
        self.catalogue = catalogue
        self._wide = wide

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """The part of ``rule_set`` that the file can express: no ppn, and each choice only where it can run."""
        if not self._in_file(rule_set.collective):
            return RuleSet.always(rule_set.collective, rule_set.basis)
        merged = merge_ppn(rule_set, shapes, lambda choice, ranks: self._fits(rule_set.collective, choice, ranks))
        return start_at_one(merged) if rule_set.collective in _SIZE_UNKNOWN_IN_PLACE else merged

    def _fits(self, collective: str, choice: Choice, ranks: int) -> bool:
        if choice == DEFAULT:
            return True
        algorithm = self.catalogue.algorithm(collective, choice)
        if not self._wide and dict(choice.parameters).get("max_requests", 0):
            return False
        return ranks == 2 or Need.TWO_RANKS not in algorithm.needs

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        unsaid = [rules.collective for rules in rule_sets if rules.departs and not self._in_file(rules.collective)]
        if unsaid:
            raise InputError(f"no file of Open MPI decides {', '.join(unsaid)}", "Use `colltune run --via live`")
        table = {
            self.catalogue.collective(rule_set.collective).number: dict(self._communicators(rule_set))
            for rule_set in rule_sets
            if rule_set.departs
        }
        names = {number: entry.name for number, entry in self.catalogue.numbered().items()}
        files = {RULES_FILE: format_rules(table, names, wide=self._wide)}
        if self.catalogue.has_han:
            mine = [rules for rules in rule_sets if self.catalogue.collective(rules.collective).owner == "han"]
            files[HAN_FILE] = format_han(mine)
        return files

    def _in_file(self, collective: str) -> bool:
        return self.catalogue.collective(collective).in_file

    def _communicators(self, rule_set: RuleSet) -> Iterator[tuple[int, list[MessageRule]]]:
        by_ranks = by_ranks_of(rule_set, "Open MPI's file")
        if rule_set.basis is not self.catalogue.collective(rule_set.collective).basis:
            raise InputError(
                f"the rules of {rule_set.collective} compare sizes that Open MPI does not", "Distil them again"
            )
        for ranks, by_size in by_ranks.spans(LEAST_RANKS):
            yield min(ranks.low, LARGEST_RANKS), list(self._messages(rule_set.collective, ranks, by_size))

    def _messages(self, collective: str, ranks: Span, by_size: BySize) -> Iterator[MessageRule]:
        for size, choice in by_size.spans():
            if not self._fits(collective, choice, ranks.low if ranks.high == ranks.low else LEAST_RANKS + 1):
                raise InputError(
                    f"{collective} {choice} runs on two ranks only, and a rule asks for it on more",
                    "Reduce the rules by `expressible` first",
                )
            yield MessageRule(size.low, *self.catalogue.columns(collective, choice))

    def environment(self, directory: Path) -> dict[str, str]:
        files = {variable: str(directory / name) for variable, name in FILES["openmpi"].items()}
        found = {**SWITCHES["openmpi"], **files}
        return (
            found if self.catalogue.has_han else {name: value for name, value in found.items() if "_han_" not in name}
        )

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        entry = self.catalogue.collective(collective)
        if not entry.in_file:
            return RuleSet.always(collective, entry.basis)
        try:
            text = files[RULES_FILE].decode("ascii")
        except (KeyError, UnicodeDecodeError):
            raise InputError(f"there is no readable {RULES_FILE}", "Write the files again") from None
        communicators = parse_rules(text, RULES_FILE).get(entry.number)
        if communicators is None:
            return RuleSet.always(collective, entry.basis)
        try:
            return RuleSet(collective, entry.basis, tuple(self._rules(collective, communicators)))
        except ValueError as error:
            raise InputError(f"{RULES_FILE}: {error}", "Write the files again") from None

    def _rules(self, collective: str, communicators: Mapping[int, Sequence[MessageRule]]) -> Iterator[Rule]:
        by_columns = {
            self.catalogue.columns(collective, choice): choice
            for choice in reversed(self.catalogue.choices(collective))
        }
        sizes = [*communicators]
        for position, ranks in enumerate(sizes):
            max_ranks = sizes[position + 1] - 1 if position + 1 < len(sizes) else None
            messages = communicators[ranks]
            for index, message in enumerate(messages):
                if message.columns not in by_columns:
                    raise InputError(
                        f"{RULES_FILE}: {collective}, {ranks} ranks, from {message.size} bytes: "
                        f"no choice is written as {message.columns}",
                        "Write the files again",
                    )
                max_size = messages[index + 1].size - 1 if index + 1 < len(messages) else None
                yield Rule(None, max_ranks, max_size, by_columns[message.columns])


def reads_version_2(version: str) -> bool:
    """Whether this release reads the column of most requests: 4.1.8, and 5.0.7 and later; "5.0" is the newest 5.0."""
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
    return len(numbers) < 3 or numbers >= (5, 0, 7) or (4, 1, 8) <= numbers < (5, 0)


def format_rules(table: RulesTable, names: Mapping[int, str], *, wide: bool) -> bytes:
    """The text of a file; ``wide`` with the fifth column, which files of version 2 have."""
    lines = [*(["rule-file-version-2"] if wide else []), _HEAD + f"{len(table)} # collectives"]
    for number, communicators in sorted(table.items()):
        lines += [f"{number} # {names[number]}", f"{len(communicators)} # communicator sizes"]
        for ranks, messages in communicators.items():
            lines += [f"{ranks} # ranks, and more", f"{len(messages)} # message sizes"]
            for message in messages:
                lines.append(" ".join(map(str, message if wide else message[:4])))
    return ("\n".join(lines) + "\n").encode("ascii")


def parse_rules(text: str, source: str) -> RulesTable:
    """Reads a file as the library does. Raises InputError, with the line, for what makes it ignore the whole file."""
    words = [
        (number, word)
        for number, line in enumerate(text.splitlines(), start=1)
        for word in line.partition("#")[0].split()
    ]
    wide = False
    if words and words[0][1].startswith("rule-file-version-"):
        version = words.pop(0)[1].removeprefix("rule-file-version-")
        if version not in ("1", "2"):
            raise InputError(f"{source}, line 1: version {version} of the rules is unknown", "Write 1 or 2")
        wide = version == "2"
    reader = _Reader(words, source)
    table: RulesTable = {}
    for _ in range(reader.integer("the number of collectives")):
        communicators = table.setdefault(reader.integer("the number of a collective"), {})
        for _ in range(reader.integer("how many communicator sizes follow")):
            ranks = reader.integer("a communicator size")
            count = reader.integer("how many message sizes follow")
            if count < 1:
                raise reader.fault(f"{ranks} ranks have {count} rules", "Give one for size 0 at least")
            messages = [
                MessageRule(*(reader.integer("a column of a rule") for _ in range(5 if wide else 4)))
                for _ in range(count)
            ]
            if messages[0].size != 0:
                raise reader.fault(f"the first rule of {ranks} ranks is for {messages[0].size} bytes", "Begin with 0")
            communicators[ranks] = messages
    return table


_DIGITS = 18
_LONGEST_WORD = 40  # that an error repeats


class _Reader:
    """Takes one integer after another, and knows the line."""

    def __init__(self, words: list[tuple[int, str]], source: str) -> None:
        self._words = iter(words)
        self._source = source
        self._line = 1

    def integer(self, what: str) -> int:
        self._line, word = next(self._words, (self._line, "the end of the file"))
        if not word.isdecimal() or len(word) > _DIGITS:
            word = word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}..."
            raise self.fault(f"{word!r} stands where {what} is due", "Open MPI ignores the whole file; write it again")
        return int(word)

    def fault(self, what: str, next_step: str) -> InputError:
        return InputError(f"{self._source}, line {self._line}: {what}", next_step)
