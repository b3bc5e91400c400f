"""Documents of `--json` held against docs/reference/json.md."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "json.md"
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "object": dict,
    "null": type(None),
}


def documented(command: str) -> dict[str, list[str]]:
    """The types of each field of ``command``."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    [section] = [part for part in sections if command in part.partition("\n")[0].split(", ")]
    rows = re.findall(r"^\| ([\w.*\[\]]+) \| ([a-z ]+) \|", section, re.MULTILINE)
    return {name: kinds.split(" or ") for name, kinds in rows if name != "field"}


def check_document(text: str, command: str) -> dict[str, Any]:
    """The document, whose fields are those of the page, of the types that it names. Raises AssertionError."""
    document: dict[str, Any] = json.loads(text)
    assert (document.pop("command"), document.pop("schema")) == (command, 2)
    fields = documented(command)
    assert document.keys() == {name for name in fields if not re.search(r"[.\[]", name)}
    for name, kinds in fields.items():
        for value in _at(document, name):
            assert any(_is(value, kind) for kind in kinds), (name, value)
    return document


def _is(value: object, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _at(value: Mapping[str, Any], path: str) -> Iterator[Any]:
    """What lies at ``path``, such as ``gains[].nodes`` or ``choices.*[]``. Raises KeyError for what is not there."""
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    for one in value.values() if name == "*" else [value[name]]:
        for part in one if head.endswith("[]") else [one]:
            yield from _at(part, rest) if rest else [part]
