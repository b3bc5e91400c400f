"""Checks a file of named trees for MPICH's redesigned selection, of any origin, before a job uses it.

The library ends the job at most mistakes, some in MPI_Init and some at the first call that meets them; what it cannot
parse it ignores without a word. It checks no precondition of an algorithm that a file names.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from colltune.catalog import load
from colltune.emit.lint.check import PAGE, Check, FindingsOfFile, in_order, shown
from colltune.emit.lint.json_text import JsonEntry, JsonValue, NotJsonError, read_json
from colltune.emit.lint.leaf import wrong_value
from colltune.emit.lint.operators import COLLECTIVES
from colltune.emit.next import mpich_named_grammar as grammar

_FIRST_VERSION = (5, 1)
_PARAMETERS_OF = "5.0"  # whose parameters are written alike
_CATALOGUE_OF = "5.1"
_OWN = re.compile(r"(\w+)-(intra|inter)-auto")
_PLAIN = re.compile(r"!?\w+(?:<=|<|>=|>)(\d{1,18})|!?\w+\((\d{1,18})\)")


@dataclass(frozen=True)
class _Reach:
    """The calls that can come to a place of the file.

    ``collective``: "" where it is not known; ``form``: intra or inter. ``holds`` and ``fails``: the conditions that are
    known to. ``most_ranks``: None for no bound. ``stack``: the trees that are being walked.
    """

    collective: str
    form: str
    holds: frozenset[str] = frozenset()
    fails: frozenset[str] = frozenset()
    most_ranks: int | None = None
    stack: tuple[str, ...] = ()

    def met(self, condition: grammar.KeyCondition) -> "_Reach":
        return self._with(condition, condition.negated)

    def missed(self, condition: grammar.KeyCondition) -> "_Reach":
        return self._with(condition, not condition.negated)

    def _with(self, condition: grammar.KeyCondition, negated: bool) -> "_Reach":
        if condition.most is not None:
            if condition.about != "comm_size" or negated:
                return self
            bounds = [bound for bound in (self.most_ranks, condition.most) if bound is not None]
            return replace(self, most_ranks=min(bounds))
        if negated:
            return replace(self, fails=self.fails | {condition.about})
        return replace(self, holds=self.holds | {condition.about})

    def grants(self, need: str) -> bool:
        """Whether every call that comes here meets ``need``, a condition with "!" before it if it must not hold."""
        if need.startswith("!"):
            return need[1:] in self.fails
        if need == "pof2" and self.most_ranks is not None and self.most_ranks <= 2:
            return True
        # All operators that MPI defines commute.
        return need in self.holds or (need == "commutative" and "builtin_op" in self.holds)


def lint_named_files(files: Mapping[str, bytes], version: str | None) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines. Any bytes are taken.

    ``version`` is the MPICH that is to read them; None for one that is known to read named trees.
    """
    return in_order(files, lambda name, data: _Lint(name).file(data, version))


class _Lint(FindingsOfFile):
    def __init__(self, name: str) -> None:
        super().__init__("mpich-named", name)
        self._trees: dict[str, JsonEntry] = {}
        self._called: set[str] = set()

    def file(self, data: bytes, version: str | None) -> Iterator[Check]:
        if version is not None and tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _FIRST_VERSION:
            yield self.found("version", 1, version=version)
        try:
            root = read_json(data)
        except NotJsonError as error:
            yield self.found("no-json", error.line, what=error.what)
            return
        if len(data) % PAGE == 0:
            yield self.found("whole-pages", 1, size=len(data), page=PAGE)
        if not root.entries:
            yield self.found("no-trees", root.line)
            return
        yield from self._names(root)
        for name, entry in self._trees.items():
            if (own := _OWN.fullmatch(name)) or name in ("main", "auto"):
                collective, form = (own[1], own[2]) if own else ("", "")
                if own and collective not in COLLECTIVES:
                    yield self.found("unused", entry.line, (entry.key,), name=shown(name))
                yield from self._tree(entry.value, (entry.key,), _Reach(collective, form, stack=(name,)))
        for name, entry in self._trees.items():
            if name not in self._called and not _OWN.fullmatch(name) and name not in ("main", "auto"):
                yield self.found("unused", entry.line, (entry.key,), name=shown(name))
                yield from self._tree(entry.value, (entry.key,), _Reach("", "", stack=(name,)))

    def _names(self, root: JsonValue) -> Iterator[Check]:
        entries = root.entries or ()
        others = [entry for entry in entries if not entry.key.startswith(grammar.NAME)]
        if others and len(others) < len(entries):
            yield self.found("beside-trees", others[0].line, key=shown(others[0].key))
        elif others:
            older = any(re.fullmatch(r"collective=\w+", entry.key) for entry in others)
            yield self.found("older-format" if older else "no-names", others[0].line)
        for entry in entries:
            if not entry.key.startswith(grammar.NAME):
                continue
            name = entry.key.removeprefix(grammar.NAME)
            if len(name) > grammar.LONGEST_NAME:
                yield self.found(
                    "name-too-long", entry.line, name=shown(name), count=len(name), most=grammar.LONGEST_NAME
                )
            if name in self._trees:
                yield self.found("tree-twice", entry.line, (entry.key,), name=shown(name))
            self._trees[name] = entry

    def _tree(self, node: JsonValue, path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        """Everything below ``node``, for the calls of ``reach``."""
        if node.entries is None:
            yield from self._call(node, path, reach)
            return
        if not node.entries:
            yield self.found("nothing", node.line, path)
            return
        leaf = next((n for n, entry in enumerate(node.entries) if entry.key.startswith(grammar.ALGORITHM)), None)
        if leaf is not None:
            yield from self._leaf(node.entries, leaf, path, reach)
            return
        yield from self._branches(node.entries, path, reach)

    def _call(self, node: JsonValue, path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        if node.text is None or not node.text.startswith(grammar.CALL):
            yield self.found("no-tree", node.line, path, text=shown(node.text or "a value"))
            return
        name = node.text.removeprefix(grammar.CALL)
        self._called.add(name)
        if name in reach.stack or (reach.collective and name in ("main", "auto")):
            yield self.found("circle", node.line, path, round_trip=" -> ".join([*reach.stack, name]))
        elif name in self._trees:
            into = replace(reach, stack=(*reach.stack, name))
            yield from self._tree(self._trees[name].value, (*path, node.text), into)
        elif not _is_own(name):
            yield self.found("unknown-tree", node.line, path, name=shown(name))

    def _branches(self, entries: tuple[JsonEntry, ...], path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        seen: dict[str, int] = {}
        open_ended: JsonEntry | None = None
        for entry in entries:
            if entry.key in seen:
                yield self.found("key-twice", entry.line, path, key=shown(entry.key))
            seen[entry.key] = entry.line
            if open_ended is not None:
                keys = {"key": shown(entry.key), "before": shown(open_ended.key)}
                yield self.found("out-of-reach", entry.line, path, **keys)
                continue
            below = (*path, entry.key)
            if entry.key == grammar.ANY:
                open_ended = entry
                yield from self._tree(entry.value, below, reach)
            elif entry.key.startswith(grammar.COLLECTIVE):
                yield from self._collective(entry, below, reach)
            else:
                condition = grammar.parse_condition(entry.key)
                yield from self._condition(entry, condition, path, reach)
                if condition is not None:
                    yield from self._tree(entry.value, below, reach.met(condition))
                    if (entry.key[1:] if entry.key.startswith("!") else f"!{entry.key}") in seen:  # its opposite
                        open_ended = entry
                    reach = reach.missed(condition)
        if open_ended is None and not entries[-1].key.startswith(grammar.COLLECTIVE):
            yield self.found("no-last-branch", entries[-1].line, path)

    def _collective(self, entry: JsonEntry, path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        match = re.fullmatch(r"(\w+)-(intra|inter)", entry.key.removeprefix(grammar.COLLECTIVE))
        if match is None or match[1] not in COLLECTIVES:
            yield self.found("unknown-collective", entry.line, path, key=shown(entry.key))
            return
        yield from self._tree(entry.value, path, replace(reach, collective=match[1], form=match[2]))

    def _condition(
        self, entry: JsonEntry, condition: grammar.KeyCondition | None, path: tuple[str, ...], reach: _Reach
    ) -> Iterator[Check]:
        key = entry.key
        if condition is None:
            gone = "comm_avg_ppn" in key or "comm_hierarchy" in key
            yield self.found("condition-gone" if gone else "unknown-condition", entry.line, path, key=shown(key))
            return
        yield from self._undefined(entry, condition, path, reach)
        if condition.about == "comm_size" and reach.form == "inter":
            yield self.found("inter", entry.line, path)
        if condition.most is None:
            return
        plain = _PLAIN.fullmatch(key)
        if plain is None:
            yield self.found("no-number", entry.line, path, key=shown(key), most=condition.most)
        elif int(plain[1] or plain[2]) > grammar.LARGEST_BOUND:
            yield self.found("too-large", entry.line, path, key=key, most=grammar.LARGEST_BOUND)
        if key.startswith("!") and ">" in key:
            yield self.found("no-opposite", entry.line, path, key=key, meant=key[1:])

    def _undefined(
        self, entry: JsonEntry, condition: grammar.KeyCondition, path: tuple[str, ...], reach: _Reach
    ) -> Iterator[Check]:
        """A condition on arguments that the collective does not have."""
        about, blocking = condition.about, reach.collective.removeprefix("i")  # a nonblocking one counts alike
        if not blocking or blocking in grammar.DEFINED_FOR.get(about, {blocking}):
            return
        total = about == "avg_msg_size" and blocking in grammar.DEFINED_FOR["total_msg_size"]
        name = "never-holds" if about == "displs_ordered" else "undefined-but-total" if total else "undefined"
        yield self.found(name, entry.line, path, about=about, collective=reach.collective)

    def _leaf(
        self, entries: tuple[JsonEntry, ...], place: int, path: tuple[str, ...], reach: _Reach
    ) -> Iterator[Check]:
        entry = entries[place]
        path, line = (*path, entry.key), entry.line
        if len(entries) > 1:
            yield self.found("beside-conditions", line, path)
        name = entry.key.removeprefix(grammar.ALGORITHM)
        known = grammar.ALGORITHMS.get(name)
        if known is None:
            if _is_judged(name):
                gone = "composition" in name
                yield self.found("composition" if gone else "unknown-algorithm", line, path, name=shown(name))
            return
        given = [one.name.partition("=")[0] for one in entry.value.entries or ()]
        if sorted(one for one in given if one in known.parameters) != sorted(known.parameters):
            yield self.found("not-complete", line, path, name=name, known=", ".join(known.parameters))
        for one in entry.value.entries or ():
            parameter, _, value = one.name.partition("=")
            if parameter not in known.parameters:
                yield self.found("no-parameter", line, path, name=name, parameter=shown(parameter))
            elif wrong := wrong_value(name, parameter, value, load("mpich", _PARAMETERS_OF)):
                yield self.found("wrong-value", one.line, path, key=shown(one.key), why=wrong[0], fix=wrong[1])
        if reach.collective and known.collective != reach.collective:
            yield self.found("of-another", line, path, name=name, collective=reach.collective)
            return
        missing = [need for need in known.needs if not reach.grants(need)]
        if missing and reach.collective:
            yield self.found("not-met", line, path, name=name, needs=" and ".join(missing), first=missing[0])
        # For operations that do not commute the library itself has no other one.
        if name in _wrong_for_some() and "commutative" not in reach.fails:
            yield self.found("not-safe", line, path, name=name, why=_wrong_for_some()[name])


@cache
def _wrong_for_some() -> dict[str, str]:
    """The algorithms that a legal call can break, whatever stands before them, and how."""
    entries = load("mpich", _CATALOGUE_OF).entries.values()
    algorithms = (one for entry in entries for one in entry.algorithms if not one.candidate)
    return {one.selection_name: one.why_not for one in algorithms if "datatype" in one.why_not}


def _is_own(name: str) -> bool:
    """Whether the library has a tree of this name itself."""
    own = _OWN.fullmatch(name)
    return name in ("main", "auto") or (own is not None and own[1] in COLLECTIVES)


def _is_judged(name: str) -> bool:
    """Whether all algorithms of this kind are known here: blocking ones on intracommunicators."""
    if name == "MPIR_Coll_nb" or "_inter_" in name or "_allcomm_linear" in name:
        return False
    return not re.match(r"MPIR_(I[a-z]|Neighbor_|Ineighbor_)", name)
