"""The part of YAML that Slurm's topology.yaml uses, so that no YAML library is needed.

Block mappings and sequences, plain and quoted scalars, ``[a, b]`` on one line, comments. Anything else is an error
with its line, never a guess. Scalars stay text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from colltune.core.errors import InputError

Node = str | list["Node"] | dict[str, "Node"]

_KEY = re.compile(r"""([A-Za-z_][\w.\-/]*|"[^"]*"|'[^']*')\s*:(?:\s+|$)""")
_QUOTED = re.compile(r"""("(?P<double>[^"\\]*)"|'(?P<single>[^']*)')\s*(?:#.*)?""")
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def parse_yaml(text: str, source: str) -> Node:
    """The document of ``text``; an empty one is "". Raises InputError, naming ``source`` and the line."""
    lines: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        content = raw.strip()
        if not content or content.startswith("#") or (content == "---" and not lines):
            continue
        if "\t" in raw[: len(raw) - len(raw.lstrip())]:
            raise InputError(f"{source}, line {number}: a tab in the indentation", "YAML is indented by spaces")
        lines.append(_Line(number, len(raw) - len(raw.lstrip()), content))
    if not lines:
        return ""
    parser = _Parser(lines, source)
    node = parser.block(lines[0].indent, 0)
    if parser.at < len(lines):
        raise parser.unreadable()
    return node


class _Parser:
    def __init__(self, lines: list[_Line], source: str) -> None:
        self._lines = lines
        self._source = source
        self.at = 0

    def unreadable(self) -> InputError:
        line = self._lines[min(self.at, len(self._lines) - 1)]
        return InputError(f"{self._source}, line {line.number}: cannot read {line.text!r}", "See topology.yaml(5)")

    def block(self, indent: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.unreadable()
        text = self._lines[self.at].text
        if text == "-" or text.startswith("- "):
            return self._sequence(indent, depth)
        if _KEY.match(text):
            return self._mapping(indent, depth)
        self.at += 1
        return self._scalar(text)

    def _here(self, indent: int) -> str | None:
        """The text of the next line where it is at ``indent``."""
        if self.at < len(self._lines) and self._lines[self.at].indent == indent:
            return self._lines[self.at].text
        return None

    def _sequence(self, indent: int, depth: int) -> Node:
        items: list[Node] = []
        while (text := self._here(indent)) is not None and (text == "-" or text.startswith("- ")):
            rest = text[1:].lstrip()
            if rest and not rest.startswith("#"):
                # What stands after the dash begins a block of its own, indented as far as it stands.
                line = self._lines[self.at]
                self._lines[self.at] = _Line(line.number, indent + len(text) - len(rest), rest)
                items.append(self.block(self._lines[self.at].indent, depth + 1))
            else:
                self.at += 1
                items.append(self._nested(indent, depth, at_same_indent=False))
        return items

    def _mapping(self, indent: int, depth: int) -> Node:
        values: dict[str, Node] = {}
        while (text := self._here(indent)) is not None and (match := _KEY.match(text)):
            key = match.group(1).strip("\"'")
            if key in values:
                raise self.unreadable()
            rest = text[match.end() :]
            if rest and not rest.startswith("#"):
                values[key] = self._scalar(rest)
                self.at += 1
            else:
                self.at += 1
                values[key] = self._nested(indent, depth, at_same_indent=True)
        return values

    def _nested(self, indent: int, depth: int, *, at_same_indent: bool) -> Node:
        """The block below a key or a dash; a sequence may stand at the indent of its key."""
        if self.at < len(self._lines):
            line = self._lines[self.at]
            dash = line.text == "-" or line.text.startswith("- ")
            if line.indent > indent or (at_same_indent and dash and line.indent == indent):
                return self.block(line.indent, depth + 1)
        return ""

    def _scalar(self, text: str) -> Node:
        if match := _QUOTED.fullmatch(text):
            return match.group("double") or match.group("single") or ""
        plain = re.split(r"\s#", text, maxsplit=1)[0].strip()
        if plain.startswith("[") and plain.endswith("]"):
            inside = plain[1:-1].strip()
            if re.search(r"[\[\]{}\"']", inside):
                raise self.unreadable()
            return [item.strip() for item in inside.split(",")] if inside else []
        if not plain or plain[0] in "&*!|>%@`{\"'[" or ": " in plain:
            raise self.unreadable()
        return plain
