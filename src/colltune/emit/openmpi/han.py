"""The file that tells Open MPI's coll/han, from 5.0 on, which calls to hand to coll/tuned on two and more nodes.

There han has priority over tuned for some collectives, and a rule of tuned would have no effect. Han's own file nests
collective, communicator size and message size, and names the component for each: ``tuned`` wherever a rule decides,
``han`` elsewhere, as without the file. On one node Open MPI does not use han, with the file or without it.
"""

from collections.abc import Sequence

from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT
from colltune.emit.lint.check import Check
from colltune.emit.openmpi.lint_han import ALL_RANKS, read_han
from colltune.emit.openmpi.reader import ReadError
from colltune.emit.without_ppn import by_ranks_of
from colltune.mpi.installation import Library
from colltune.mpi.libraries import record_of

_RECORD = record_of(Library.OPENMPI)
HAN_FILE = _RECORD.files["OMPI_MCA_coll_han_dynamic_rules_filename"]
_HEAD = """\
# Rules of coll/han, written by colltune. Read where coll_han_use_dynamic_file_rules is 1 and
# coll_han_dynamic_rules_filename names this file: which calls of a communicator that spans nodes go to coll/tuned.
"""
# Han reads no file without a collective; this one decides nothing.
_NOTHING = [["barrier"], ["0"]]

# From a size on: whether tuned decides. By the least communicator size.
Owners = dict[int, list[tuple[int, bool]]]


def format_han(rule_sets: Sequence[RuleSet]) -> bytes:
    """The file for rules of collectives that han takes; ppn is not in them."""
    by_name = {rules.collective: _owners(rules) for rules in rule_sets}
    handed = {name: owners for name, owners in by_name.items() if any(tuned for s in owners.values() for _, tuned in s)}
    lines: list[list[str]] = []
    for name, owners in sorted(handed.items()):
        lines += [[name], ["1"], [str(ALL_RANKS)], [str(len(owners))]]
        for ranks, sizes in owners.items():
            lines += [[str(ranks)], [str(len(sizes))]]
            lines += [[str(size), "tuned" if tuned else "han"] for size, tuned in sizes]
    text = [str(max(len(handed), 1)), *(" ".join(words) for words in lines or _NOTHING)]
    return (_HEAD + "\n".join(text) + "\n").encode("ascii")


def _owners(rule_set: RuleSet) -> Owners:
    by_ranks = by_ranks_of(rule_set, "han's file").map(lambda sizes: sizes.map(lambda choice: choice != DEFAULT))
    return {ranks.low: [(size.low, tuned) for size, tuned in sizes.spans()] for ranks, sizes in by_ranks.spans(1)}


def parse_han(data: bytes) -> dict[str, Owners]:
    """Who decides, by collective. Raises InputError for a file that ``format_han`` did not write."""
    try:
        levels, passed_over = read_han(data, HAN_FILE)
        checks: Sequence[Check] = passed_over
    except ReadError as error:
        checks = error.checks
    if checks:
        what = f"line {checks[0].line}: {checks[0].what}"
    elif all(at.level == ALL_RANKS and {row.component for rank in at.ranks for row in rank.rows} <= {"han", "tuned"}
             and all(rank.rows and rank.rows[0].size == 0 for rank in at.ranks) for at in levels):  # fmt: skip
        return {
            at.collective: {rank.ranks: [(row.size, row.component != "han") for row in rank.rows] for rank in at.ranks}
            for at in levels
        }
    else:
        what = "it decides at other levels, by other components, or not for all sizes"
    raise InputError(f"{HAN_FILE} is not as colltune writes it: {what}", "Write the files again")
