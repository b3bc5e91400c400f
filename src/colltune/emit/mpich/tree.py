"""MPICH's selection trees: text to tree and back, and the decision of the library with one.

A tree is a nested dict in the order of the file. Each key is an operator ("comm_size<=8") whose subtree applies where
it holds; siblings are tried in order and the first that holds decides. A leaf is a dict whose first key names an
algorithm or a composition. A key that occurs twice in one object keeps its first place and its last value, in
Python's json as in the parser inside MPICH.

The levels of a tree of rules in MPICH's selection files: ranks per node, ranks, size.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import isqrt
from typing import Any, NamedTuple

from colltune.core.errors import InputError
from colltune.core.rules import Steps
from colltune.core.sample import NONBLOCKING, REDUCTIONS, Choice, Scenario, SizeBasis, blocking_form
from colltune.emit.lint.operators import INFINITE, Operator, Unknown, parse_operator
from colltune.machine.files import parse_json

Tree = dict[str, "Tree"]
Row = list[tuple[str, Tree]]  # the conditions of an object, each with its subtree

# Comparisons of sizes that are tried one after another: more of them are 5 ns each, and a group adds 3 us to MPI_Init.
MOST_IN_A_ROW = 16
LEAF = ("algorithm=", "composition=")
# What every version takes "=any" of.
_OF_SIZE = ("avg_msg_size", "total_msg_size", "count")
ANY = ("comm_size", *_OF_SIZE)
# Operators that MPICH decides once, when a communicator is made, as long as no other operator stands before them.
_OF_COMMUNICATOR = ("comm_type=", "comm_size", "comm_hierarchy=", "is_node_consecutive=", "comm_avg_ppn")
_UP_TO = re.compile(r"<=-?\d+$")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a collective, as the selection sees it.

    ``message_bytes``: the vector, or the block of alltoall; ``total_bytes``: what total_msg_size compares with;
    ``count``: elements. ``hierarchy``: "parent" for a communicator with several ranks on some node, "flat" for one
    with a single rank per node, "node" and "node_roots" for the communicators that MPICH makes inside a parent.
    """

    collective: str
    ranks: int
    nodes: int = 1
    hierarchy: str = "parent"
    comm_type: str = "intra"
    message_bytes: int = 0
    total_bytes: int = 0
    count: int = 0
    commutative: bool = True
    builtin_op: bool = True
    in_place: bool = False
    regular_counts: bool = True
    node_consecutive: bool = True
    multi_threaded: bool = False

    @classmethod
    def of(cls, scenario: Scenario, thread_level: str = "single") -> "Call":
        """The call by which ``scenario`` is measured: a sum of floats, or bytes, not in place."""
        size, ranks = scenario.size_bytes, scenario.ranks
        count = size // 4 if scenario.collective in REDUCTIONS else size
        whole = scenario.collective in ("reduce_scatter", "reduce_scatter_block")
        per_block = scenario.collective in ("allgather", "allgatherv", "iallgather")
        return cls(
            scenario.collective,
            ranks,
            scenario.nodes,
            "parent" if scenario.ppn > 1 else "flat",
            message_bytes=size,
            total_bytes=scenario.basis_bytes(SizeBasis.TOTAL) if per_block else size if whole else size * ranks,
            count=count // ranks if scenario.collective == "reduce_scatter_block" else count,
            regular_counts=count % ranks == 0,
            multi_threaded=thread_level == "multiple",
        )


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a search: the name of an algorithm or composition, and its parameters as written."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()


def parse_tree(text: str | bytes) -> Tree:
    """Raises InputError for text that is not a nest of JSON objects."""
    try:
        tree = parse_json(text)
    except ValueError as error:
        raise InputError(f"a selection file is not JSON: {error}", "Write it again") from None
    _check(tree)
    return tree  # type: ignore[no-any-return]


def format_tree(tree: Tree) -> bytes:
    """Deterministic text to read and to edit, which MPICH takes."""
    return _not_whole_pages(json.dumps(tree, indent=1))


def format_small(tree: Tree) -> bytes:
    """Deterministic text that MPICH reads fast: a line for each key of ``tree``.

    MPICH makes an object of every pair of braces. A parameter, of which it reads the key alone, does without.
    """
    lines = ",\n".join(f"{json.dumps(key)}:{_format_small(key, subtree)}" for key, subtree in tree.items())
    return _not_whole_pages(f"{{{lines}}}")


def _format_small(key: str, subtree: Tree) -> str:
    below = (f"{json.dumps(k)}:{'null' if key.startswith(LEAF) else _format_small(k, t)}" for k, t in subtree.items())
    return f"{{{','.join(below)}}}"


def _not_whole_pages(text: str) -> bytes:
    """MPICH maps the file and reads it as a string. The byte that ends the string is the rest of the last page."""
    return f"{text}\n\n".encode() if len(text) % 4096 == 4095 else f"{text}\n".encode()


def is_leaf(tree: Tree) -> bool:
    return next(iter(tree), "").startswith(LEAF)


def read_leaf(tree: Tree) -> Leaf:
    key, parameters = next(iter(tree.items()))
    return _leaf(key, tuple(parameters))


@lru_cache(maxsize=10_000)
def _leaf(key: str, parameters: tuple[str, ...]) -> Leaf:
    pairs = (text.replace(" ", "").partition("=") for text in parameters)
    return Leaf(key.partition("=")[2].strip(), tuple((name, value) for name, _, value in pairs))


def decide(tree: Tree, call: Call, version: tuple[int, int]) -> Leaf | None:
    """The leaf that MPICH at ``version`` (major, minor) reaches for ``call``; None where the tree has none.

    Every version decides the operators of the communicator when it is made, down to the first other operator; a
    tree that has no answer there is searched again at the call. The two steps differ: at the call,
    "comm_size<N" holds for N itself.
    """
    subtree = tree.get(f"collective={call.collective}")
    if subtree is None:
        return None
    leaf = _search(subtree, call, version, early=True)
    return leaf or _search(subtree, call, version, early=False)


def _search(tree: Tree, call: Call, version: tuple[int, int], early: bool) -> Leaf | None:
    properties = _properties(call, version)
    while not is_leaf(tree):
        for key, subtree in tree.items():
            operator = operator_of(key, version, early)
            if isinstance(operator, Unknown):
                raise InputError(
                    f"a selection file has the operator {key!r}, which MPICH does not know", "Write it again"
                )
            early = early and operator.of_communicator
            about, values = operator.condition.about, operator.condition.values
            asked: Any = properties.get(about)
            if not about or (asked <= values if isinstance(values, int) else asked in values):
                tree = subtree
                break
        else:
            return None
    return read_leaf(tree)


@lru_cache(maxsize=10_000)
def operator_of(key: str, version: tuple[int, int], early: bool = False) -> Operator | Unknown:
    """What ``key`` asks; kept, for keys are the same in many places."""
    return parse_operator(key.replace(" ", ""), version, early)


@lru_cache(maxsize=10_000)
def _properties(call: Call, version: tuple[int, int]) -> dict[str, Any]:
    """What operators ask of ``call``, as a CallCondition has it."""
    ranks, nodes = call.ranks, call.nodes
    # Since 5.0 the communicators inside a parent know nothing of nodes.
    has_nodes = version < (5, 0) or call.hierarchy in ("parent", "flat")
    flags = {
        "comm_size=pow2": ranks & (ranks - 1) == 0,
        "comm_size=node_comm_size": nodes == 1 and has_nodes,
        "count<pow2": call.count < 1 << (ranks.bit_length() - 1),
        "is_commutative": call.commutative,
        "is_op_built_in": call.builtin_op,
        "is_sendbuf_inplace": call.in_place,
        "is_block_regular": call.regular_counts,
        "is_multi_threaded": call.multi_threaded,
        "is_node_consecutive": call.node_consecutive,
    }
    return {
        **{name: "yes" if holds else "no" for name, holds in flags.items()},
        "collective": call.collective,
        "comm_type": call.comm_type,
        "comm_hierarchy": call.hierarchy,
        "comm_size": ranks,
        "comm_avg_ppn": 2 * (ranks // nodes) + (ranks % nodes > 0) if has_nodes else INFINITE,
        "avg_msg_size": call.message_bytes,
        "total_msg_size": call.total_bytes,
        "count": call.count,
    }


def in_groups(row: Row) -> Row:
    """The conditions of an object; where many in a row compare the size of a call, those are in groups.

    MPICH tries them one after another, in every call. So each group but the last is an object of its own inside the
    bound of its last condition. Other comparisons are decided once, when a communicator is made.
    """
    kept: Row = []
    for operator, entries in groupby(row, lambda entry: _UP_TO.sub("", entry[0])):
        run = list(entries)
        if operator not in _OF_SIZE or len(run) <= MOST_IN_A_ROW:
            kept += run
            continue
        size = max(isqrt(len(run) - 1) + 1, -(-len(run) // MOST_IN_A_ROW))
        *groups, last = (run[start : start + size] for start in range(0, len(run), size))
        for *bounded, (bound, beyond) in groups:
            kept.append((bound, dict(without_last(in_groups([*bounded, (f"{operator}=any", beyond)])))))
        kept += last
    return kept


def without_last(row: Row) -> Row:
    """``row`` as it goes on where its last condition holds for all that is left and leads to further ones."""
    *before, (condition, last) = row
    is_whole = not is_leaf(last) and next(reversed(last), "").endswith("any")
    return [*before, *last.items()] if is_whole and condition.endswith("any") else row


def _check(tree: object) -> None:
    if not isinstance(tree, dict):
        raise InputError(f"a selection file holds {tree!r} where an object is due", "Write it again")
    for key, subtree in tree.items():
        if key.startswith(LEAF) and isinstance(subtree, dict):
            tree[key] = {parameter: {} for parameter in subtree}  # its key alone is read
        else:
            _check(subtree)


def settle(tree: Tree, early: bool = True) -> Tree:
    """A tree with the same decisions in any place: "comm_size<N" is replaced by its meaning in the present place.

    ``tree`` is the subtree of one collective; ``early`` says that only operators of the communicator precede it.
    """
    if is_leaf(tree):
        return tree
    settled: Tree = {}
    for key, subtree in tree.items():
        operator = key.replace(" ", "")
        early = early and (operator.startswith(_OF_COMMUNICATOR) or operator.endswith("any"))
        if operator.startswith("comm_size<") and not operator.startswith("comm_size<="):
            bound = int(operator.removeprefix("comm_size<"))
            operator = f"comm_size<={bound - 1 if early else bound}"
        settled[operator] = settle(subtree, early)
    return settled


# The library reads numbers with atoi, so that a larger bound would overflow; it is cut to this one.
LARGEST_BOUND = 2**31 - 1

# What the size bound of a rule is compared with; for other collectives MPICH aborts, or ranks would disagree.
_SIZE = dict.fromkeys(("allreduce", "alltoall", "bcast", "reduce"), "avg_msg_size")
_SIZE |= dict.fromkeys(("allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block"), "total_msg_size")
_SIZE |= {name: _SIZE[blocking_form(name)] for name in NONBLOCKING}
# What their sizes are compared with has no meaning in a call in place.
BY_SEND_SIZE = frozenset({"alltoall", "ialltoall"})


class Level(NamedTuple):
    """One level of a rule tree: the operator that takes bounds, and the key for what lies beyond the last one."""

    operator: str
    rest: str


def levels_of(collective: str) -> tuple[Level, ...]:
    """From the outermost. comm_avg_ppn has no key for the rest that MPICH 4.0 and 4.1 would read."""
    levels = [Level("comm_avg_ppn", "comm_size=any"), Level("comm_size", "comm_size=any")]
    if collective in _SIZE:
        levels.append(Level(_SIZE[collective], f"{_SIZE[collective]}=any"))
    return tuple(levels)


def rules_tree(decided: Steps[Any] | Choice, levels: Sequence[Level], leaf: Callable[[Choice], Tree]) -> Tree:
    """The tree of ``decided``, which is nested as deeply as there are ``levels``, with the ``leaf`` of each choice."""
    if isinstance(decided, Choice):
        return leaf(decided)
    if not levels:
        return leaf(decided.last)
    level, *deeper = levels
    tree: Tree = {}
    for bound, value in decided.pairs:
        # Of two bounds beyond the largest the first decides, as it does among rules.
        key = level.rest if bound is None else f"{level.operator}<={min(bound, LARGEST_BOUND)}"
        tree.setdefault(key, rules_tree(value, deeper, leaf))
    return tree
