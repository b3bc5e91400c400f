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

from colltune.catalog import Need
from colltune.catalog.catalogue import OpenMpiCatalogue
from colltune.core.decision_table import LEAST_RANKS, BySize
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet, Span
from colltune.core.sample import DEFAULT, Choice
from colltune.emit.openmpi.han import HAN_FILE, format_han
from colltune.emit.openmpi.reader import MessageRule, ReadError, read_rows
from colltune.emit.without_ppn import by_ranks_of, merge_ppn, start_at_one
from colltune.mpi.installation import Library
from colltune.mpi.libraries import record_of

_RECORD = record_of(Library.OPENMPI)
RULES_FILE = _RECORD.files["OMPI_MCA_coll_tuned_dynamic_rules_filename"]
# The library reads message sizes as size_t, and communicator sizes as int.
LARGEST_RANKS = 2**31 - 1
# In these a call in place has no size of its own that the library could see.
_SIZE_UNKNOWN_IN_PLACE = ("alltoall",)
_HEAD = """\
# Rules of coll/tuned, written by colltune. Read where coll_tuned_use_dynamic_rules is 1 and
# coll_tuned_dynamic_rules_filename names this file. A line of a rule is: message size, algorithm,
# fan-out, segment size, most requests. Algorithm 0 is the library's own decision.
"""


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
        files = {variable: str(directory / name) for variable, name in _RECORD.files.items()}
        given = {**_RECORD.switches, **files}
        return (
            given if self.catalogue.has_han else {name: value for name, value in given.items() if "_han_" not in name}
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
    """The rules of a file. Raises InputError, with the line, for what the library would ignore or pass over."""
    try:
        rows = read_rows(text.encode("utf-8"), source, "5.0")
        checks = rows.findings
    except ReadError as error:
        checks = error.checks
    if checks:
        raise InputError(f"{source}, line {checks[0].line}: {checks[0].what}", checks[0].fix)
    for ranks in (ranks for collective in rows.collectives for ranks in collective.communicators):
        if not ranks.rows:
            raise InputError(f"{source}, line {ranks.line}: {ranks.ranks} ranks have 0 rules", "Give one for size 0")
    return {
        collective.number: {ranks.ranks: [row.rule for row in ranks.rows] for ranks in collective.communicators}
        for collective in rows.collectives
    }
