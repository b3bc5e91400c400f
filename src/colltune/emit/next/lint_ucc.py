"""Checks a ucc.conf of any origin: the sections by which UCC is tuned, and its TUNE strings.

UCC applies every section that fits a team, in the order of a hash table. A line that it cannot read costs the whole
file, and UCC does not begin; a fault in a TUNE string costs that string. A build of it was asked (1.10-dev, August
2026, on 4 ranks): tests/ucc_files.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from colltune.catalog.read import read_toml
from colltune.emit.lint.check import Check, Severity, shown

_LINE = re.compile(r"([^=:\s]+)\s*[=:]\s*(.*)")
_COMMENT = re.compile(r"\s;.*")
_SECTION = re.compile(r"\[(.*)\]")
_BEGINS = re.compile(r"\[\s*[A-Za-z_]\w*\s*=|UCC_\w+\s*=|(TL|CL|EC|MC)_\w+\s*=")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_SIZE = re.compile(r"(?:\d+(?:\.\d+)?[kmgtpe]?b?|inf|auto)", re.IGNORECASE)
_COUNTED = ("team_size", "ppn", "sock", "nnodes")
_NAMED = ("vendor", "model")
_MEMORY = frozenset({"host", "cuda", "cudamanaged", "rocm", "rocmmanaged"})
_NAMES = """
allgather allgatherv allreduce alltoall alltoallv barrier bcast fanin fanout gather gatherv reduce reduce_scatter
reduce_scatterv scatter scatterv
"""
_COLLECTIVES = frozenset(_NAMES.split())
ALGORITHMS = {name: tuple(text.split()) for name, text in read_toml("next_formats")["ucc"].items()}
_DROPPED = "UCC drops the whole string, with a line among its errors, and decides by itself"
_REFUSED = "UCC refuses the whole file and does not begin: the caller falls back to its own collectives"
_LONGEST_SECTION = 127  # UCC keeps so many characters


@dataclass
class _Section:
    name: str
    line: int
    named: dict[str, str] = field(default_factory=dict)
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    broken: bool = False

    def meets(self, other: _Section) -> bool:
        """Whether some team fits both."""
        if any(self.named[key] != other.named[key] for key in self.named.keys() & other.named.keys()):
            return False
        both = self.counted.keys() & other.counted.keys()
        spans = [(max(self.counted[key][0], other.counted[key][0]), min(self.counted[key][1], other.counted[key][1]))
                 for key in both]  # fmt: skip
        return all(low <= high for low, high in spans)


def is_ucc_conf(data: bytes) -> bool:
    """Whether ``data`` looks like a ucc.conf: its first line that says something is a section or a setting of UCC."""
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text and not text.startswith(("#", ";")):
            return _BEGINS.match(text) is not None
    return False


def lint_ucc_files(files: Mapping[str, bytes]) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines. Any bytes are taken."""
    return [
        check
        for name, data in files.items()
        for check in sorted(_Lint(name).file(data.decode("utf-8", "replace")), key=lambda check: check.line)
    ]


class _Lint:
    def __init__(self, name: str) -> None:
        self._name = name

    def _check(self, severity: Severity, line: int, where: str, what: str, why: str, fix: str) -> Check:
        return Check(severity, self._name, line, (where,) if where else (), what, why, fix)

    def _error(self, line: int, where: str, what: str, why: str, fix: str) -> Check:
        return self._check(Severity.ERROR, line, where, what, why, fix)

    def _warn(self, line: int, where: str, what: str, why: str, fix: str) -> Check:
        return self._check(Severity.WARNING, line, where, what, why, fix)

    def file(self, text: str) -> Iterator[Check]:
        sections = [_Section("", 0)]
        after_setting = False
        for number, line in enumerate(text.splitlines(), 1):
            said = line.strip()
            if not said or said.startswith(("#", ";")):
                continue
            if after_setting and line[0].isspace():
                what = "an indented line is more of the setting before it"
                yield self._error(
                    number, sections[-1].name, what, f"it then comes twice: {_REFUSED}", "begin at the left"
                )
                continue
            if header := _SECTION.fullmatch(said):
                after_setting = False
                sections.append(_Section(header[1], number))
                yield from self._header(sections[-1], [one for one in sections[:-1] if one.line])
                continue
            match = _LINE.fullmatch(_COMMENT.sub("", said))
            if match is None:
                fix = "write a section, or a setting as NAME=VALUE"
                yield self._error(number, "", f"{shown(said)!r} is neither", _REFUSED, fix)
                continue
            after_setting = True
            yield from self._setting(sections[-1], number, match[1], match[2])
        yield from self._twice_tuned(sections)
        for first, second in combinations([one for one in sections if one.line and not one.broken], 2):
            shared = sorted(first.keys.keys() & second.keys.keys())
            if shared and first.name != second.name and first.meets(second):
                what = f"a team can fit this section and [{shown(first.name)}] in line {first.line}: {shared[0]}"
                why = "UCC applies both, in the order of a hash table"
                yield self._warn(second.line, second.name, what, why, "give them ranges that do not meet")

    def _twice_tuned(self, sections: list[_Section]) -> Iterator[Check]:
        for section in sections[1:]:
            if "TL_UCP_TUNE" in sections[0].keys and "TL_UCP_TUNE" in section.keys:
                what = f"TL_UCP_TUNE stands in line {sections[0].keys['TL_UCP_TUNE']} too, before all sections"
                why = "where both say something, the one before all sections decides"
                yield self._warn(section.line, section.name, what, why, "put that into a section as well")

    def _header(self, section: _Section, before: list[_Section]) -> Iterator[Check]:
        if any(one.name == section.name for one in before):
            what, why = "the section comes twice", "UCC takes its settings together"
            yield self._warn(section.line, section.name, what, why, "join the two")
            section.keys = next(one.keys for one in before if one.name == section.name)
        if len(section.name) > _LONGEST_SECTION:
            what = f"the section's name has {len(section.name)} characters"
            why = f"UCC keeps {_LONGEST_SECTION}: what is cut off does not count, or {_REFUSED}"
            yield self._error(section.line, section.name, what, why, f"use {_LONGEST_SECTION} at most")
        for word in section.name.split():
            key, equals, value = word.partition("=")
            known = _NAMED + _COUNTED
            match = _RANGE.fullmatch(value)
            if not equals or (key not in known and key.lower() != "vendor"):
                section.broken = True
                what = f"a section knows no {shown(word)!r}"
                fix = f"use {', '.join(known)} as KEY=VALUE with a space between them"
                yield self._error(section.line, section.name, what, _REFUSED, fix)
            elif key.lower() in _NAMED:
                section.named[key.lower()] = value.lower()
            elif match is None:
                section.broken = True
                what = f"the range {shown(value)!r} of {key} is no range"
                yield self._error(section.line, section.name, what, _REFUSED, "write 4, or 4-8")
            else:
                section.counted[key] = int(match[1]), int(match[2] or match[1])
                if section.counted[key][0] > section.counted[key][1]:
                    what = f"no {key} is in {shown(value)}"
                    yield self._error(section.line, section.name, what, "no team fits", "write the smaller one first")

    def _setting(self, section: _Section, line: int, key: str, value: str) -> Iterator[Check]:
        name = key.partition("UCC_")[2]
        if not name:
            yield self._error(
                line, section.name, f"{shown(key)} does not say UCC_", _REFUSED, f"write UCC_{shown(key)}"
            )
            return
        if name in section.keys:
            what = f"{key} is set in line {section.keys[name]} already"
            yield self._error(line, section.name, what, _REFUSED, "take one out")
        section.keys.setdefault(name, line)
        if section.line and not name.startswith("TL_UCP_"):
            what = f"{key} stands in a section"
            why = "sections are read by TL/UCP alone, so this has no effect"
            yield self._warn(line, section.name, what, why, "put it before the first section")
        if name.endswith("_TUNE"):
            taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
            for entry in filter(None, value.split("#")):
                yield from self._entry(section, line, entry, taken, of_ucp=name == "TL_UCP_TUNE")

    def _entry(
        self,
        section: _Section,
        line: int,
        entry: str,
        ranges: dict[tuple[str, str], list[tuple[float, float]]],
        *,
        of_ucp: bool,
    ) -> Iterator[Check]:
        """One of the entries of a TUNE string, between two #. ``ranges``: of the entries before, by collective."""
        collectives: list[str] = []
        algorithm, scored, sizes, memory = "", False, "0-inf", ""
        taken: set[str] = set()
        for token in filter(None, entry.split(":")):
            kind = _kind_of(token, taken)
            if kind is None:
                what = f"{shown(token)!r} in {shown(entry)!r} is nothing that UCC knows there"
                fix = "write it as in allreduce:0-4k:@knomial"
                yield self._error(line, section.name, what, _DROPPED, fix)
                return
            taken.add(kind)
            if kind == "collectives":
                collectives = token.lower().split(",")
            elif kind == "algorithm":
                algorithm = token[1:]
            elif kind == "score":
                scored = True
            elif kind == "memory":
                memory = token.lower()
            elif kind == "sizes":
                sizes = token
                yield from self._sizes(section, line, token)
        if not algorithm and not scored:
            what, why = f"{shown(entry)!r} names neither an algorithm nor a score", "it has no effect"
            yield self._warn(line, section.name, what, why, "add @ALGORITHM")
        if algorithm and not collectives:
            what, why = f"{shown(entry)!r} names no collective", f"the algorithm is taken for all of them: {_DROPPED}"
            yield self._error(line, section.name, what, why, "begin with the collective")
        if "teams" not in taken and (algorithm or scored):
            yield from self._overlaps(section, line, entry, [(one, memory) for one in collectives], sizes, ranges)
        for collective in collectives if of_ucp and algorithm else ():
            names = ALGORITHMS.get(collective)
            known = names is not None and (
                algorithm in map(str, range(len(names))) if algorithm.isdecimal() else algorithm.lower() in names
            )
            if names is not None and not known:
                what = f"{collective} has no algorithm {shown(algorithm)!r}"
                numbered = ", ".join(f"{number} {one}" for number, one in enumerate(names))
                yield self._error(line, section.name, what, _DROPPED, f"use one of {numbered}")

    def _overlaps(
        self,
        section: _Section,
        line: int,
        entry: str,
        keys: list[tuple[str, str]],
        sizes: str,
        ranges: dict[tuple[str, str], list[tuple[float, float]]],
    ) -> Iterator[Check]:
        spans = [(_bytes(low), _bytes(high)) for low, _, high in (one.partition("-") for one in sizes.split(","))]
        for key in keys:
            before = ranges.setdefault(key, [])
            if any(low < other_high and other_low < high for low, high in spans for other_low, other_high in before):
                what = f"{shown(entry)!r} has sizes of {key[0]} that an entry before it has"
                yield self._error(line, section.name, what, _DROPPED, "let a range begin where the last one ends")
            before += spans

    def _sizes(self, section: _Section, line: int, token: str) -> Iterator[Check]:
        for one in token.split(","):
            low, high = (_bytes(text) for text in one.split("-"))
            if low >= high:
                what = f"no size is in {shown(one)}"
                yield self._error(line, section.name, what, _DROPPED, "write the smaller one first")


def _kind_of(token: str, taken: set[str]) -> str | None:
    """Which part of an entry ``token`` is, as UCC tries them in turn; each part is taken once."""
    parts = token.lower().split(",")
    tests = {
        "collectives": all(part in _COLLECTIVES for part in parts),
        "memory": all(part in _MEMORY for part in parts),
        "score": re.fullmatch(r"\d+|inf", token, re.IGNORECASE) is not None,
        "sizes": all(len(ends := part.split("-")) == 2 and all(map(_SIZE.fullmatch, ends)) for part in parts),
        "teams": re.fullmatch(r"\[\d+(-(\d+|inf))?(,\d+(-(\d+|inf))?)*\]", token, re.IGNORECASE) is not None,
        "algorithm": token.startswith("@") and len(token) > 1,
    }
    return next((kind for kind, fits in tests.items() if fits and kind not in taken), None)


def _bytes(text: str) -> float:
    text = text.lower().removesuffix("b")
    if text in ("inf", "auto"):
        return float("inf")
    scale = 1024 ** ("kmgtpe".index(text[-1]) + 1) if text[-1:] in tuple("kmgtpe") else 1
    return float(text.rstrip("kmgtpe")) * scale
