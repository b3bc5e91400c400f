"""Checks a ucc.conf of any origin: the sections by which UCC is tuned, and its TUNE strings.

UCC applies every section that fits a team, in the order of a hash table. A fault in a section's name or in a TUNE
string costs the whole of it, with a line among UCC's own warnings at most. By its source (1.10-dev, August 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from colltune.emit.lint_check import Check, Severity, shown

_LINE = re.compile(r"(\w+)\s*=\s*(.*)")
_SECTION = re.compile(r"\[(.*)\]")
_BEGINS = re.compile(r"\[\s*[A-Za-z_]\w*\s*=|UCC_\w+\s*=|(TL|CL|EC|MC)_\w+\s*=")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_SIZE = re.compile(r"(?:\d+(?:\.\d+)?[kmgtpe]?b?|inf|auto)", re.IGNORECASE)
_COUNTED = ("team_size", "ppn", "sock", "nnodes")
_NAMED = ("vendor", "model")
_MEMORY = frozenset({"host", "cuda", "cudamanaged", "rocm", "rocmmanaged"})
_NAMES = """
allgather allgatherv allreduce alltoall alltoallv barrier bcast fanin fanout gather gatherv reduce reduce_scatter
reduce_scatterv scatter scatterv
"""
_COLLECTIVES = frozenset(_NAMES.split())
# Of TL/UCP, by number; of other components algorithms are not judged.
ALGORITHMS = {
    "allgather": ("knomial", "ring", "neighbor", "bruck", "sparbit", "linear", "batched"),
    "allreduce": ("knomial", "sra_knomial", "dbt", "sliding_window", "ring"),
    "alltoall": ("pairwise", "bruck", "onesided"),
    "alltoallv": ("pairwise", "hybrid", "onesided"),
    "bcast": ("knomial", "sag_knomial", "dbt"),
    "reduce": ("knomial", "dbt", "srg"),
    "reduce_scatter": ("ring", "knomial"),
}
_TEAM = "UCC makes no team with it, and the caller falls back to its own collectives"


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
        for number, line in enumerate(text.splitlines(), 1):
            said = line.strip()
            if not said or said.startswith(("#", ";")):
                continue
            if header := _SECTION.fullmatch(said):
                sections.append(_Section(header[1], number))
                yield from self._header(sections[-1], [one for one in sections[:-1] if one.line])
                continue
            match = _LINE.fullmatch(said)
            if match is None:
                why = "UCC reads sections, and settings as NAME=VALUE"
                yield self._error(number, "", f"{shown(said)!r} is neither", why, "write it so, or take it out")
                continue
            yield from self._setting(sections[-1], number, match[1], match[2])
        for first, second in combinations([one for one in sections if one.line and not one.broken], 2):
            shared = sorted(first.keys.keys() & second.keys.keys())
            if shared and first.name != second.name and first.meets(second):
                what = f"a team can fit this section and [{shown(first.name)}] in line {first.line}: {shared[0]}"
                why = "UCC applies both, in the order of a hash table"
                yield self._warn(second.line, second.name, what, why, "give them ranges that do not meet")

    def _header(self, section: _Section, before: list[_Section]) -> Iterator[Check]:
        if any(one.name == section.name for one in before):
            what, why = "the section comes twice", "UCC takes its settings together, of one name the first"
            yield self._warn(section.line, section.name, what, why, "join the two")
        for word in section.name.split(" "):
            key, equals, value = word.partition("=")
            known = _NAMED + _COUNTED
            match = _RANGE.fullmatch(value)
            if not equals or (key not in known and key.lower() != "vendor"):
                section.broken = True
                what = f"a section knows no {shown(word)!r}" if word else "the section has more than one space"
                fix = f"use {', '.join(known)} as KEY=VALUE with one space between them"
                yield self._error(section.line, section.name, what, "UCC drops the section", fix)
            elif key.lower() in _NAMED:
                section.named[key.lower()] = value.lower()
            elif match is None:
                section.broken = True
                what = f"the range {shown(value)!r} of {key} is no range"
                yield self._error(section.line, section.name, what, "UCC drops the section", "write 4, or 4-8")
            else:
                section.counted[key] = int(match[1]), int(match[2] or match[1])
                if section.counted[key][0] > section.counted[key][1]:
                    what = f"no {key} is in {shown(value)}"
                    yield self._error(section.line, section.name, what, "no team fits", "write the smaller one first")

    def _setting(self, section: _Section, line: int, key: str, value: str) -> Iterator[Check]:
        name = key.removeprefix("UCC_")
        if name in section.keys:
            what = f"{key} is set in line {section.keys[name]} already"
            yield self._warn(line, section.name, what, "UCC keeps the first", "take one out")
        section.keys.setdefault(name, line)
        if section.line and not name.startswith("TL_UCP_"):
            what = f"{key} stands in a section"
            why = "sections are read by TL/UCP alone, so this has no effect"
            yield self._warn(line, section.name, what, why, "put it before the first section")
        if name.endswith("_TUNE"):
            for entry in value.split("#"):
                yield from self._entry(section, line, entry, of_ucp=name == "TL_UCP_TUNE")

    def _entry(self, section: _Section, line: int, entry: str, *, of_ucp: bool) -> Iterator[Check]:
        """One of the entries of a TUNE string, between two #."""
        collectives: list[str] = []
        algorithm, scored = "", False
        taken: set[str] = set()
        for token in entry.split(":"):
            kind = _kind_of(token, taken)
            if kind is None:
                what = f"{shown(token)!r} in {shown(entry)!r} is nothing that UCC knows there"
                fix = "write it as in allreduce:0-4k:@knomial"
                yield self._error(line, section.name, what, _TEAM, fix)
                return
            taken.add(kind)
            if kind == "collectives":
                collectives = token.lower().split(",")
            elif kind == "algorithm":
                algorithm = token[1:]
            elif kind == "score":
                scored = True
            elif kind == "sizes":
                yield from self._sizes(section, line, token)
        if not algorithm and not scored:
            what, why = f"{shown(entry)!r} names neither an algorithm nor a score", "it has no effect"
            yield self._warn(line, section.name, what, why, "add @ALGORITHM")
        if algorithm and not collectives:
            what, why = f"{shown(entry)!r} names no collective", f"the algorithm is taken for all of them: {_TEAM}"
            yield self._error(line, section.name, what, why, "begin with the collective")
        for collective in collectives if of_ucp and algorithm else ():
            names = ALGORITHMS.get(collective)
            known = names is not None and (
                int(algorithm) < len(names) if algorithm.isdigit() else algorithm.lower() in names
            )
            if names is not None and not known:
                what = f"{collective} has no algorithm {shown(algorithm)!r}"
                numbered = ", ".join(f"{number} {one}" for number, one in enumerate(names))
                yield self._error(line, section.name, what, _TEAM, f"use one of {numbered}")

    def _sizes(self, section: _Section, line: int, token: str) -> Iterator[Check]:
        for one in token.split(","):
            low, high = (_bytes(text) for text in one.split("-"))
            if low >= high:
                what, why = f"no size is in {shown(one)}", "the entry is for no message"
                yield self._error(line, section.name, what, why, "write the smaller one first")


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
