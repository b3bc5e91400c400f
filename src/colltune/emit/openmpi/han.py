"""The file that tells Open MPI's coll/han, from 5.0 on, which calls to hand to coll/tuned on two and more nodes.

There han has priority over tuned for some collectives, and a rule of tuned would have no effect. Han's own file nests
collective, communicator size and message size, and names the component for each: ``tuned`` wherever a rule decides,
``han`` elsewhere, as without the file. On one node Open MPI does not use han, with the file or without it.
"""

from collections.abc import Iterator, Sequence

from colltune.catalog.named_files import FILES
from colltune.core.choice import DEFAULT
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.emit.without_ppn import by_ranks_of

HAN_FILE = FILES["openmpi"]["OMPI_MCA_coll_han_dynamic_rules_filename"]
# Of han's levels: all ranks of a communicator, not those of a node and not one of each node.
_WHOLE_COMMUNICATOR = 2
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
    found = {rules.collective: _owners(rules) for rules in rule_sets}
    handed = {name: owners for name, owners in found.items() if any(tuned for s in owners.values() for _, tuned in s)}
    lines: list[list[str]] = []
    for name, owners in sorted(handed.items()):
        lines += [[name], ["1"], [str(_WHOLE_COMMUNICATOR)], [str(len(owners))]]
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
    words = [word for line in data.decode("latin-1").splitlines() for word in line.partition("#")[0].split()]
    given = iter(words)
    try:
        table = {}
        for _ in range(int(next(given))):
            name, levels = next(given), int(next(given))
            owners = _parse_level(given) if levels == 1 else {}
            if owners:
                table[name] = owners
        if next(given, None) is not None:
            raise ValueError("it goes on after its end")
        return table
    except (StopIteration, ValueError, KeyError) as error:
        raise InputError(f"{HAN_FILE} is not as colltune writes it: {error!r}", "Write the files again") from None


def _parse_level(given: Iterator[str]) -> Owners:
    if int(next(given)) != _WHOLE_COMMUNICATOR:
        raise ValueError("another level than the whole communicator")
    owners: Owners = {}
    for _ in range(int(next(given))):
        ranks, count = int(next(given)), int(next(given))
        owners[ranks] = [(int(next(given)), {"tuned": True, "han": False}[next(given)]) for _ in range(count)]
        if not owners[ranks] or owners[ranks][0][0] != 0:
            raise ValueError(f"of {ranks} ranks it does not decide all sizes")
    return owners
