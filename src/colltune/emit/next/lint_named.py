"""Checks a file of named trees for MPICH's redesigned selection, of any origin, before a job uses it.

The library ends the job at most mistakes, some in MPI_Init and some at the first call that meets them; what it cannot
parse it ignores without a word. It checks no precondition of an algorithm that a file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from colltune.catalog import load
from colltune.emit.lint.check import Check, Severity, shown
from colltune.emit.lint.json_text import JsonEntry, JsonValue, NotJsonError, read_json
from colltune.emit.lint.leaf import wrong_value
from colltune.emit.lint.operators import COLLECTIVES
from colltune.emit.next.mpich_named_grammar import (
    ALGORITHM,
    ALGORITHMS,
    ANY,
    CALL,
    COLLECTIVE,
    DEFINED_FOR,
    LARGEST_BOUND,
    LONGEST_NAME,
    NAME,
    KeyCondition,
    parse_condition,
)

_PAGE = 4096
_FIRST_VERSION = (5, 1)
_PARAMETERS_OF = "5.0"  # whose parameters are written alike
_CATALOGUE_OF = "5.1"
_OWN = re.compile(r"(\w+)-(intra|inter)-auto")
_PLAIN = re.compile(r"!?\w+(?:<=|<|>=|>)(\d{1,18})|!?\w+\((\d{1,18})\)")
_ENDS = "the library ends the job in MPI_Init"
_ENDS_LATER = "the library ends the job at the first call that comes here"


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

    def met(self, condition: KeyCondition) -> _Reach:
        return self._with(condition, condition.negated)

    def missed(self, condition: KeyCondition) -> _Reach:
        return self._with(condition, not condition.negated)

    def _with(self, condition: KeyCondition, negated: bool) -> _Reach:
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


def is_named_file(data: bytes) -> bool:
    """Whether ``data`` looks like a file of named trees: an object whose first key is a name."""
    return re.match(rb'\s*\{\s*"name=', data) is not None


def lint_named_files(files: Mapping[str, bytes], version: str | None) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines. Any bytes are taken.

    ``version`` is the MPICH that is to read them; None for one that is known to read named trees.
    """
    findings: list[Check] = []
    for name, data in files.items():
        found = _Lint(name).file(data, version)
        findings += sorted(dict.fromkeys(found), key=lambda check: check.line)
    return findings


class _Lint:
    def __init__(self, name: str) -> None:
        self._name = name
        self._trees: dict[str, JsonEntry] = {}
        self._called: set[str] = set()

    def _error(self, line: int, path: tuple[str, ...], what: str, why: str, fix: str) -> Check:
        return Check(Severity.ERROR, self._name, line, path, what, why, fix)

    def _warn(self, line: int, path: tuple[str, ...], what: str, why: str, fix: str) -> Check:
        return Check(Severity.WARNING, self._name, line, path, what, why, fix)

    def file(self, data: bytes, version: str | None) -> Iterator[Check]:
        if version is not None and tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _FIRST_VERSION:
            why = "its files have no named trees, and it ends the job in MPI_Init"
            yield self._error(1, (), f"MPICH {version} does not read this file", why, "give it the older files")
        try:
            root = read_json(data)
        except NotJsonError as error:
            why = "the library ignores what it cannot parse, returns success, and decides by itself"
            yield self._error(error.line, (), f"the file {error.what}", why, "write it again, whole")
            return
        if len(data) % _PAGE == 0:
            why = "the library reads the file as a string, and nothing ends a string that fills whole pages of memory"
            what, fix = f"the file is {len(data)} bytes long, a multiple of {_PAGE}", "add an empty line at the end"
            yield self._warn(1, (), what, why, fix)
        if not root.entries:
            yield self._error(root.line, (), "the file holds no trees", _ENDS, "write an object of named trees")
            return
        yield from self._names(root)
        for name, entry in self._trees.items():
            if (own := _OWN.fullmatch(name)) or name in ("main", "auto"):
                collective, form = (own[1], own[2]) if own else ("", "")
                if own and collective not in COLLECTIVES:
                    yield self._unused(entry, name)
                yield from self._tree(entry.value, (entry.key,), _Reach(collective, form, stack=(name,)))
        for name, entry in self._trees.items():
            if name not in self._called and not _OWN.fullmatch(name) and name not in ("main", "auto"):
                yield self._unused(entry, name)
                yield from self._tree(entry.value, (entry.key,), _Reach("", "", stack=(name,)))

    def _unused(self, entry: JsonEntry, name: str) -> Check:
        why = "a file replaces the trees whose names it has right, and adds the others, which nothing calls"
        fix = "name it as the library does, such as bcast-intra-auto"
        return self._warn(entry.line, (entry.key,), f"nothing calls the tree {shown(name)}", why, fix)

    def _names(self, root: JsonValue) -> Iterator[Check]:
        entries = root.entries or ()
        others = [entry for entry in entries if not entry.key.startswith(NAME)]
        if others and len(others) < len(entries):
            what = f"{shown(others[0].key)!r} stands beside named trees"
            yield self._error(others[0].line, (), what, _ENDS, 'put it into a tree, "name=...": {...}')
        elif others:
            older = any(re.fullmatch(r"collective=\w+", entry.key) for entry in others)
            if older:
                what, why = "the file is of the older format", f"{_ENDS}: names and conditions have changed"
                yield self._error(others[0].line, (), what, why, "tune this MPICH, or export --to mpich again")
            else:
                what, why = "the file has no named trees", "the whole becomes the tree main, for every collective"
                yield self._warn(others[0].line, (), what, why, 'put it into a tree, "name=bcast-intra-auto": {...}')
        for entry in entries:
            if not entry.key.startswith(NAME):
                continue
            name = entry.key.removeprefix(NAME)
            if len(name) > LONGEST_NAME:
                what = f"the name {shown(name)} has {len(name)} characters"
                why = f"the library keeps {LONGEST_NAME} and reads on behind them"
                yield self._error(entry.line, (), what, why, f"use {LONGEST_NAME} at most")
            if name in self._trees:
                why = "the last one alone is read"
                yield self._warn(entry.line, (entry.key,), f"the tree {shown(name)} comes twice", why, "join the two")
            self._trees[name] = entry

    def _tree(self, node: JsonValue, path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        """Everything below ``node``, for the calls of ``reach``."""
        if node.entries is None:
            yield from self._call(node, path, reach)
            return
        if not node.entries:
            yield self._error(node.line, path, "nothing stands here", _ENDS_LATER, "name an algorithm, or call a tree")
            return
        leaf = next((n for n, entry in enumerate(node.entries) if entry.key.startswith(ALGORITHM)), None)
        if leaf is not None:
            yield from self._leaf(node.entries, leaf, path, reach)
            return
        yield from self._branches(node.entries, path, reach)

    def _call(self, node: JsonValue, path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        if node.text is None or not node.text.startswith(CALL):
            what = f"{shown(node.text or 'a value')!r} stands where a tree is due"
            yield self._error(node.line, path, what, _ENDS, 'write an object, or "call=NAME"')
            return
        name = node.text.removeprefix(CALL)
        self._called.add(name)
        if name in reach.stack or (reach.collective and name in ("main", "auto")):
            round_trip = " -> ".join([*reach.stack, name])
            what, why = f"the trees call each other in a circle: {round_trip}", "the library never comes to an end"
            fix = "copy the library's own tree under another name, and call that"
            yield self._error(node.line, path, what, why, fix)
        elif name in self._trees:
            yield from self._tree(self._trees[name].value, (*path, node.text), self._into(reach, name))
        elif not _is_own(name):
            yield self._error(node.line, path, f"there is no tree {shown(name)}", _ENDS, "name one that there is")

    @staticmethod
    def _into(reach: _Reach, name: str) -> _Reach:
        return replace(reach, stack=(*reach.stack, name))

    def _branches(self, entries: tuple[JsonEntry, ...], path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        seen: dict[str, int] = {}
        open_ended: JsonEntry | None = None
        for entry in entries:
            if entry.key in seen:
                why = "the last value takes the first place, as if it had been written there"
                yield self._warn(entry.line, path, f"{shown(entry.key)!r} comes twice", why, "join the two")
            seen[entry.key] = entry.line
            if open_ended is not None:
                why = f"{shown(open_ended.key)!r} before it takes every call"
                yield self._warn(entry.line, path, f"{shown(entry.key)!r} is out of reach", why, "let it stand first")
                continue
            below = (*path, entry.key)
            if entry.key == ANY:
                open_ended = entry
                yield from self._tree(entry.value, below, reach)
            elif entry.key.startswith(COLLECTIVE):
                yield from self._collective(entry, below, reach)
            else:
                condition = parse_condition(entry.key)
                yield from self._condition(entry, condition, path, reach)
                if condition is not None:
                    yield from self._tree(entry.value, below, reach.met(condition))
                    if _opposite(entry.key) in seen:
                        open_ended = entry
                    reach = reach.missed(condition)
        if open_ended is None and not entries[-1].key.startswith(COLLECTIVE):
            what, fix = "no branch takes the calls that meet none of these conditions", 'end with "any"'
            yield self._error(entries[-1].line, path, what, _ENDS_LATER, fix)

    def _collective(self, entry: JsonEntry, path: tuple[str, ...], reach: _Reach) -> Iterator[Check]:
        match = re.fullmatch(r"(\w+)-(intra|inter)", entry.key.removeprefix(COLLECTIVE))
        if match is None or match[1] not in COLLECTIVES:
            what, fix = f"there is no collective {shown(entry.key)!r}", "write it as in collective=bcast-intra"
            yield self._error(entry.line, path, what, _ENDS, fix)
            return
        yield from self._tree(entry.value, path, replace(reach, collective=match[1], form=match[2]))

    def _condition(
        self, entry: JsonEntry, condition: KeyCondition | None, path: tuple[str, ...], reach: _Reach
    ) -> Iterator[Check]:
        key = entry.key
        if condition is None:
            gone = "comm_avg_ppn" in key or "comm_hierarchy" in key
            fix = "ranks per node cannot be asked for any more" if gone else "conditions are written without spaces"
            yield self._error(entry.line, path, f"the library knows no condition {shown(key)!r}", _ENDS, fix)
            return
        yield from self._undefined(entry, condition, path, reach)
        if condition.about == "comm_size" and reach.form == "inter":
            what = "comm_size is not defined for intercommunicators"
            yield self._error(entry.line, path, what, _ENDS_LATER, "leave it out")
        if condition.most is None:
            return
        plain = _PLAIN.fullmatch(key)
        if plain is None:
            why = f"the library reads as far as it is a number: {condition.most}, whatever stands behind"
            yield self._error(entry.line, path, f"the bound of {shown(key)!r} is no number", why, "write digits alone")
        elif int(plain[1] or plain[2]) > LARGEST_BOUND:
            why = "the library reads it into 32 bits"
            yield self._error(entry.line, path, f"the bound of {key!r} is too large", why, f"use {LARGEST_BOUND}")
        if key.startswith("!") and ">" in key:
            why = "the library keeps one mark for both, so the ! has no effect"
            yield self._warn(entry.line, path, f"{key!r} means {key[1:]!r}", why, "write the opposite without !")

    def _undefined(
        self, entry: JsonEntry, condition: KeyCondition, path: tuple[str, ...], reach: _Reach
    ) -> Iterator[Check]:
        """A condition on arguments that the collective does not have."""
        about, blocking = condition.about, reach.collective.removeprefix("i")  # a nonblocking one counts alike
        if not blocking or blocking in DEFINED_FOR.get(about, {blocking}):
            return
        what = f"{about} is not defined for {reach.collective}"
        if about == "displs_ordered":
            why = "only allgatherv has displacements that the library looks at, and elsewhere this never holds"
            yield self._warn(entry.line, path, what, why, "leave it out")
            return
        total = about == "avg_msg_size" and blocking in DEFINED_FOR["total_msg_size"]
        yield self._error(entry.line, path, what, _ENDS_LATER, "compare total_msg_size" if total else "leave it out")

    def _leaf(
        self, entries: tuple[JsonEntry, ...], place: int, path: tuple[str, ...], reach: _Reach
    ) -> Iterator[Check]:
        entry = entries[place]
        path, line = (*path, entry.key), entry.line
        if len(entries) > 1:
            what = "an algorithm stands beside conditions"
            why = "the library takes the algorithm for all calls, and forgets the others"
            yield self._error(line, path, what, why, "put it below a condition of its own")
        name = entry.key.removeprefix(ALGORITHM)
        known = ALGORITHMS.get(name)
        if known is None:
            if _is_judged(name):
                gone = "composition" in name
                why = f"{_ENDS}: compositions are gone" if gone else _ENDS
                yield self._error(line, path, f"there is no algorithm {shown(name)}", why, "use one that there is")
            return
        given = [one.name.partition("=")[0] for one in entry.value.entries or ()]
        if sorted(one for one in given if one in known.parameters) != sorted(known.parameters):
            fix = "give each of them once: " + ", ".join(known.parameters)
            yield self._error(line, path, f"the parameters of {name} are not complete", _ENDS, fix)
        for one in entry.value.entries or ():
            parameter, _, value = one.name.partition("=")
            if parameter not in known.parameters:
                what, why = f"{name} has no parameter {shown(parameter)!r}", "nothing is read from it"
                yield self._warn(line, path, what, why, "leave it out")
            elif wrong := wrong_value(name, parameter, value, load("mpich", _PARAMETERS_OF)):
                yield self._error(one.line, path, f"the value in {shown(one.key)!r} is not understood", *wrong)
        if reach.collective and known.collective != reach.collective:
            what = f"{name} is no algorithm of {reach.collective}"
            yield self._error(line, path, what, _ENDS_LATER, f"use one of {reach.collective}")
            return
        missing = [need for need in known.needs if not reach.grants(need)]
        if missing and reach.collective:
            what = f"{name} can be reached by calls that do not meet {' and '.join(missing)}"
            why = "the library checks no precondition of a file: the call fails, or its result is wrong"
            yield self._error(line, path, what, why, f"put it below {missing[0]!r}, and another behind it")
        # For operations that do not commute the library itself has no other one.
        if name in _wrong_for_some() and "commutative" not in reach.fails:
            what = f"{name} is not safe for every legal call"
            yield self._warn(line, path, what, _wrong_for_some()[name], "use another one")


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


def _opposite(key: str) -> str:
    return key[1:] if key.startswith("!") else f"!{key}"
