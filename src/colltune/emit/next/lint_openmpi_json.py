"""Checks a JSON file of dynamic rules for coll/tuned of Open MPI 6.0, of any origin.

The reader hides what it refuses: text that is no JSON is tried as a classic file and then ignored, an unknown
collective drops the whole file, and an unknown algorithm its rule.
"""

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, cast

from colltune.catalog import Catalogue, CollectiveEntry, Need
from colltune.catalog.read import read_toml
from colltune.core.scenario import SizeBasis
from colltune.emit.lint.check import HARMLESS, Check, FindingsOfFile, in_order, shown
from colltune.emit.openmpi.rules_file import LARGEST_RANKS
from colltune.machine.files import parse_json

INFINITE: Final = "inf"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|\n')
_LINE = "\0line"  # no key of a file: JSON forbids the character
_SCHEMA_NAMES = {"reducescatter": "reduce_scatter", "reducescatterblock": "reduce_scatter_block"}
_NAMES = read_toml("next_formats")["openmpi"]
_RULE_KEYS = {"msg_size_min", "msg_size_max", "alg", "faninout", "seg_size", "reqs"}
_COMMUNICATOR_KEYS = {"comm_size_min", "comm_size_max", "comm_rank_distribution", "rules"}

_Object = dict[str, Any]


class Distribution(StrEnum):
    """How the ranks of a communicator lie on nodes, as the reader names it (``comm_rank_distribution``)."""

    ANY = "any"
    ONE_PER_NODE = "one-per-node"
    SINGLE_NODE = "single-node"


def lint_rules_json(files: Mapping[str, bytes], version: str, catalogue: Catalogue) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines. Any bytes are taken.

    ``version`` is the Open MPI that is to read them, and ``catalogue`` is of that version, or the newest before it.
    """
    return in_order(files, lambda name, data: _Lint(name, version, catalogue).file(data))


def _load(text: str) -> object:
    """The value of ``text``; each object has its line under ``_LINE``."""
    lines, ends, line = [], [], 1
    for match in _TOKEN.finditer(text):
        if match[0] == "\n":
            line += 1
        elif match[0] == "{":
            lines.append(line)
        elif match[0] == "}" and lines:
            ends.append(lines.pop())  # objects end in the order in which the hook hears of them
    order = iter(ends)
    parse_json(text)  # neither deep nor with numbers without end
    return json.loads(text, object_pairs_hook=lambda pairs: {**dict(pairs), _LINE: next(order)})


class _Lint(FindingsOfFile):
    def __init__(self, name: str, version: str, catalogue: Catalogue) -> None:
        super().__init__("openmpi-json", name)
        self._version = version
        self._entries = catalogue.entries

    def file(self, data: bytes) -> Iterator[Check]:
        if int(self._version.partition(".")[0]) < 6:
            yield self.found("version", 1, version=self._version)
        try:
            root = _load(data.decode("utf-8"))
        except ValueError as error:
            yield self.found("no-json", getattr(error, "lineno", 1))
            return
        collectives = root.get("collectives") if isinstance(root, dict) else None
        if not isinstance(collectives, dict):
            yield self.found("no-collectives", 1)
            return
        for called, communicators in collectives.items():
            if called != _LINE:
                yield from self._collective(called, communicators, collectives[_LINE])

    def _collective(self, called: str, communicators: object, line: int) -> Iterator[Check]:
        if called not in _NAMES:
            right = _SCHEMA_NAMES.get(called)
            name = "unknown-collective" if right is None else "name-of-schema"
            yield self.found(name, line, (shown(called),), called=shown(called), right=right)
            return
        if not isinstance(communicators, list) or not all(isinstance(one, dict) for one in communicators):
            yield self.found("no-list", line, (called,), what="communicators")
            return
        before: list[_Object] = []
        for one in cast(list[_Object], communicators):
            yield from self._communicator(called, one, before)
            before.append(one)

    def _communicator(self, called: str, one: _Object, before: list[_Object]) -> Iterator[Check]:
        line, path = one[_LINE], (called,)
        yield from self._keys(one, _COMMUNICATOR_KEYS, path)
        spread = one.get("comm_rank_distribution", str(Distribution.ANY))
        if spread not in list(Distribution):
            yield self.found("distribution", line, path, spread=spread, known=", ".join(Distribution))
        low, high = _range(one, "comm_size")
        if low > high:
            yield self.found("no-ranks", line, path, low=low, high=high)
        if any(_covers(other, one) for other in before):
            yield self.found("earlier-communicator", line, path)
        rules = one.get("rules", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            yield self.found("no-list", line, path, what="rules")
            return
        entry = self._entries.get(called)
        if entry is not None and entry.basis is SizeBasis.NONE and called != "barrier":
            decided = {str(rule.get("alg")) for rule in rules}
            bounded = any(_range(rule, "msg_size") != (0.0, float("inf")) for rule in rules)
            if len(decided) > 1 or (bounded and decided):
                yield self.found("by-size", line, path, called=called)
        sizes: list[tuple[float, float]] = []
        for rule in rules:
            yield from self._rule(called, entry, rule, (low, high), sizes)
            sizes.append(_range(rule, "msg_size"))

    def _rule(
        self,
        called: str,
        entry: CollectiveEntry | None,
        rule: _Object,
        ranks: tuple[float, float],
        before: list[tuple[float, float]],
    ) -> Iterator[Check]:
        line = rule[_LINE]
        path = (called, f"{_number(ranks[0])} to {_number(ranks[1])} ranks")
        yield from self._keys(rule, _RULE_KEYS, path)
        low, high = _range(rule, "msg_size")
        if low > high:
            yield self.found("no-sizes", line, path, low=_number(low), high=_number(high))
        elif any(first <= low and high <= last for first, last in before):
            yield self.found("earlier-rule", line, path)
        names = _NAMES[called].split()
        chosen = rule.get("alg")
        number = names.index(chosen) if isinstance(chosen, str) and chosen in names else chosen
        if isinstance(chosen, str) and chosen.isdecimal() and len(chosen) < 10:
            number = int(chosen)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(names):
            known = ", ".join(f"{place} {name}" for place, name in enumerate(names))
            yield self.found("no-algorithm", line, path, called=called, chosen=chosen, known=known)
        elif number and entry is not None:
            yield from self._algorithm(entry, number, line, path, ranks)

    def _algorithm(
        self, entry: CollectiveEntry, number: int, line: int, path: tuple[str, ...], ranks: tuple[float, float]
    ) -> Iterator[Check]:
        algorithm = next((one for one in entry.algorithms if one.number == number), None)
        if algorithm is None:
            return  # of a release that the catalogue does not have yet
        called = f"{entry.name} {algorithm.key}"
        if Need.TWO_RANKS in algorithm.needs and ranks[1] > 2:
            yield self.found("two-ranks", line, path, called=called, ranks=_number(max(ranks[0], 3)))
        elif not algorithm.candidate and algorithm.why_not != HARMLESS:
            yield self.found("not-safe", line, path, called=called, why=algorithm.why_not)

    def _keys(self, one: _Object, known: set[str], path: tuple[str, ...]) -> Iterator[Check]:
        for key in one:
            if key != _LINE and key not in known:
                yield self.found("unknown-key", one[_LINE], path, key=shown(key))
        for key in sorted(known - {"comm_rank_distribution", "rules", "faninout", "seg_size", "reqs", "alg"}):
            value = one.get(key)
            numeric = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if key in one and not numeric and value != INFINITE:
                yield self.found("no-number", one[_LINE], path, key=key, value=value)


def _range(one: _Object, what: str) -> tuple[float, float]:
    """The closed range of ``what``; no bound where none can be read."""

    def bound(key: str, otherwise: float) -> float:
        value = one.get(key)
        return float(value) if isinstance(value, int) else otherwise

    low, high = bound(f"{what}_min", 0.0), bound(f"{what}_max", float("inf"))
    return low, float("inf") if what == "comm_size" and high >= LARGEST_RANKS else high


def _covers(other: _Object, one: _Object) -> bool:
    """Whether every communicator of ``one`` fits ``other`` too."""
    spreads = [str(entry.get("comm_rank_distribution", Distribution.ANY)) for entry in (other, one)]
    (low, high), (first, last) = _range(one, "comm_size"), _range(other, "comm_size")
    return first <= low and high <= last and spreads[0] in (Distribution.ANY, spreads[1])


def _number(value: float) -> str:
    return INFINITE if value == float("inf") else str(int(value))
