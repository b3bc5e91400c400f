"""Checks a ucc.conf of any origin: the sections by which UCC is tuned, and its TUNE strings.

UCC applies every section that fits a team, in the order of a hash table. A line that it cannot read costs the whole
file, and UCC does not begin; a fault in a TUNE string costs that string. A build of it was asked (1.10-dev, August
2026, on 4 ranks): tests/ucc_files.py.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from colltune.catalog.read import read_toml
from colltune.emit.lint.check import Check, FindingsOfFile, shown

_LINE = re.compile(r"([^=:\s]+)\s*[=:]\s*(.*)")
_COMMENT = re.compile(r"\s;.*")
_SECTION = re.compile(r"\[(.*)\]")
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
_LONGEST_SECTION = 127  # UCC keeps so many characters


@dataclass
class _Section:
    name: str
    line: int
    named: dict[str, str] = field(default_factory=dict)
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    broken: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        return (self.name,) if self.name else ()

    def meets(self, other: "_Section") -> bool:
        """Whether some team fits both."""
        if any(self.named[key] != other.named[key] for key in self.named.keys() & other.named.keys()):
            return False
        both = self.counted.keys() & other.counted.keys()
        spans = [(max(self.counted[key][0], other.counted[key][0]), min(self.counted[key][1], other.counted[key][1]))
                 for key in both]  # fmt: skip
        return all(low <= high for low, high in spans)


def lint_ucc_files(files: Mapping[str, bytes]) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines. Any bytes are taken."""
    return [
        check
        for name, data in files.items()
        for check in sorted(_Lint("ucc", name).file(data.decode("utf-8", "replace")), key=lambda check: check.line)
    ]


class _Lint(FindingsOfFile):
    def file(self, text: str) -> Iterator[Check]:
        sections = [_Section("", 0)]
        after_setting = False
        for number, line in enumerate(text.splitlines(), 1):
            said = line.strip()
            if not said or said.startswith(("#", ";")):
                continue
            if after_setting and line[0].isspace():
                yield self.found("indented", number, sections[-1].path)
                continue
            if header := _SECTION.fullmatch(said):
                after_setting = False
                sections.append(_Section(header[1], number))
                yield from self._header(sections[-1], [one for one in sections[:-1] if one.line])
                continue
            match = _LINE.fullmatch(_COMMENT.sub("", said))
            if match is None:
                yield self.found("neither", number, said=shown(said))
                continue
            after_setting = True
            yield from self._setting(sections[-1], number, match[1], match[2])
        before = sections[0].keys.get("TL_UCP_TUNE")
        for section in sections[1:]:
            if before is not None and "TL_UCP_TUNE" in section.keys:
                yield self.found("before-sections", section.line, section.path, line=before)
        for first, second in combinations([one for one in sections if one.line and not one.broken], 2):
            shared = sorted(first.keys.keys() & second.keys.keys())
            if shared and first.name != second.name and first.meets(second):
                named, key = shown(first.name), shared[0]
                yield self.found("both-fit", second.line, second.path, section=named, line=first.line, key=key)

    def _header(self, section: _Section, before: list[_Section]) -> Iterator[Check]:
        if any(one.name == section.name for one in before):
            yield self.found("section-twice", section.line, section.path)
            section.keys = next(one.keys for one in before if one.name == section.name)
        if len(section.name) > _LONGEST_SECTION:
            count = len(section.name)
            yield self.found("section-too-long", section.line, section.path, count=count, most=_LONGEST_SECTION)
        for word in section.name.split():
            key, equals, value = word.partition("=")
            known = _NAMED + _COUNTED
            match = _RANGE.fullmatch(value)
            if not equals or (key not in known and key.lower() != "vendor"):
                section.broken = True
                yield self.found("section-word", section.line, section.path, word=shown(word), known=", ".join(known))
            elif key.lower() in _NAMED:
                section.named[key.lower()] = value.lower()
            elif match is None:
                section.broken = True
                yield self.found("no-range", section.line, section.path, value=shown(value), key=key)
            else:
                section.counted[key] = int(match[1]), int(match[2] or match[1])
                if section.counted[key][0] > section.counted[key][1]:
                    yield self.found("empty-range", section.line, section.path, value=shown(value), key=key)

    def _setting(self, section: _Section, line: int, key: str, value: str) -> Iterator[Check]:
        name = key.partition("UCC_")[2]
        if not name:
            yield self.found("no-prefix", line, section.path, key=shown(key))
            return
        if name in section.keys:
            yield self.found("set-twice", line, section.path, key=key, line=section.keys[name])
        section.keys.setdefault(name, line)
        if section.line and not name.startswith("TL_UCP_"):
            yield self.found("not-of-sections", line, section.path, key=key)
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
        said: dict[str, str] = {}
        for token in filter(None, entry.split(":")):
            kind = _kind_of(token, said)
            if kind is None:
                yield self.found("unknown-token", line, section.path, token=shown(token), entry=shown(entry))
                return
            said[kind] = token
            if kind == "sizes":
                yield from self._sizes(section, line, token)
        collectives = said["collectives"].lower().split(",") if "collectives" in said else []
        algorithm, decides = said.get("algorithm", "")[1:], "algorithm" in said or "score" in said
        if not decides:
            yield self.found("no-effect", line, section.path, entry=shown(entry))
        if algorithm and not collectives:
            yield self.found("no-collective", line, section.path, entry=shown(entry))
        if "teams" not in said and decides:
            keys = [(one, said.get("memory", "").lower()) for one in collectives]
            yield from self._overlaps(section, line, entry, keys, said.get("sizes", "0-inf"), ranges)
        for collective in collectives if of_ucp and algorithm else ():
            names = ALGORITHMS.get(collective)
            known = names is not None and (
                algorithm in map(str, range(len(names))) if algorithm.isdecimal() else algorithm.lower() in names
            )
            if names is not None and not known:
                numbered = ", ".join(f"{number} {one}" for number, one in enumerate(names))
                values = {"collective": collective, "algorithm": shown(algorithm), "numbered": numbered}
                yield self.found("no-algorithm", line, section.path, **values)

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
                yield self.found("overlap", line, section.path, entry=shown(entry), collective=key[0])
            before += spans

    def _sizes(self, section: _Section, line: int, token: str) -> Iterator[Check]:
        for one in token.split(","):
            low, high = (_bytes(text) for text in one.split("-"))
            if low >= high:
                yield self.found("empty-sizes", line, section.path, sizes=shown(one))


def _kind_of(token: str, taken: Collection[str]) -> str | None:
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
