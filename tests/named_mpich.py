"""MPICH's named trees against the library's own counters: what a file decides, by the conditions as lint reads them.

``Run``, as recorded: {"ranks", "nodes", "choices": {collective: choice}, "counted": {algorithm: calls}}.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colltune.catalog import load
from colltune.core.choice import parse_choice
from colltune.core.rules import RuleSet
from colltune.emit.next.mpich_named import NAMED_FILE, MpichNamedEmitter
from colltune.emit.next.mpich_named_grammar import ALGORITHM, ALGORITHMS, ANY, CALL, NAME, KeyCondition, parse_condition

CATALOGUE = load("mpich", "5.1")
# Every run makes so many calls of each collective, of so many bytes: 840 elements, which every number up to 8 divides.
OFTEN, BYTES = 7, 3360
RECORDED = Path(__file__).parent / "recorded" / "mpi" / "mpich-named" / "counted.json.gz"
# A line for each replay of all legal calls: {"nodes", "choices", "cases", "passed"}.
REPLAYED = RECORDED.with_name("replayed.jsonl")
_SUFFIX = "-intra-auto"
_LEAF = {"algorithm=MPIR_Bcast_intra_binomial": {}}
_ON_ONE_NODE = ("allreduce", "barrier", "bcast", "reduce")


@dataclass(frozen=True)
class Made:
    """One call: a built-in operation that commutes, two buffers, equal blocks; ``size_bytes`` as colltune names it."""

    collective: str
    ranks: int
    nodes: int
    size_bytes: int

    def meets(self, condition: KeyCondition) -> bool:
        if condition.most is not None:
            values = {"comm_size": self.ranks, "avg_msg_size": self.size_bytes, "total_msg_size": self._total}
            return (values[condition.about] <= condition.most) != condition.negated
        flags = {
            "inplace": False,
            "pof2": self.ranks & (self.ranks - 1) == 0,
            "commutative": True,
            "builtin_op": True,
            "hierarchical": 1 < self.nodes < self.ranks,
            "node_consecutive": True,
            "count_ge_pof2": self.size_bytes // 4 >= 1 << (self.ranks.bit_length() - 1),
            "block_regular": True,
            "MPIDI_CH4_release_gather": self.nodes == 1 and self.collective in _ON_ONE_NODE,
        }
        return flags[condition.about] != condition.negated

    @property
    def _total(self) -> int:
        whole = self.collective in ("reduce_scatter", "reduce_scatter_block")
        return self.size_bytes if whole else self.size_bytes * self.ranks


def decide(own: Mapping[str, Any], file: Mapping[str, Any], call: Made) -> str:
    """The algorithm that runs for ``call`` with the library's ``own`` trees (by name) and those of ``file``."""
    trees = {**own, **{key.removeprefix(NAME): tree for key, tree in file.items()}}
    tree: Any = trees[call.collective + _SUFFIX]
    while True:
        if isinstance(tree, str):
            tree = trees[tree.removeprefix(CALL)]
            continue
        for key, below in tree.items():
            if key.startswith(ALGORITHM):
                return str(key.removeprefix(ALGORITHM))
            condition = parse_condition(key) if key != ANY else None
            if key == ANY or (condition is not None and call.meets(condition)):
                tree = below
                break
        else:
            raise AssertionError(f"{call} comes to no end")


def rounds() -> list[list[RuleSet]]:
    """Every choice that a file of named trees can name, one for each collective in a round."""
    emitter = MpichNamedEmitter(CATALOGUE, {f"{name}{_SUFFIX}": _LEAF for name in CATALOGUE.entries})
    choices = {
        name: [
            rules
            for choice in CATALOGUE.choices(name)
            if emitter.expressible(rules := RuleSet.always(name, entry.basis, choice), [(1, 1)]).departs
        ]
        for name, entry in CATALOGUE.entries.items()
    }
    longest = max(map(len, choices.values()))
    return [[one[number % len(one)] for one in choices.values() if one] for number in range(longest)]


def check_counted(own: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Of each collective the algorithm that the trees name ran as often as it was called, and no other one."""
    emitter = MpichNamedEmitter(CATALOGUE, own)
    rule_sets = [
        RuleSet.always(name, CATALOGUE.collective(name).basis, parse_choice(text))
        for name, text in run["choices"].items()
    ]
    file = json.loads(emitter.emit(rule_sets)[NAMED_FILE])
    for rules in rule_sets:
        name = rules.collective
        expected = decide(own, file, Made(name, run["ranks"], run["nodes"], BYTES))
        # The library makes calls of its own in MPI_Init, fewer than ours.
        often = {
            algorithm for algorithm, count in run["counted"].items()
            if count >= OFTEN and ALGORITHMS.get(algorithm) is not None and ALGORITHMS[algorithm].collective == name
        }  # fmt: skip
        if run["ranks"] > 1:
            assert often == {expected}, (run["ranks"], run["nodes"], name, run["choices"][name], run["counted"])
