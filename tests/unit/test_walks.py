"""The walks through the code name rooms and definitions that are there: docs/design/walks.md."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from colltune.cli.app import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "colltune"
STUDY = ROOT / "src" / "colltune_study"
WALKS = (ROOT / "docs" / "design" / "walks.md").read_text(encoding="utf-8")
COMMANDS = set(get_command(app).commands)  # type: ignore[attr-defined]
ROWS = [
    (rooms.strip(), text)
    for rooms, text in re.findall(r"^\| ([a-z/, ]+) \| (.*) \|$", WALKS, re.MULTILINE)
    if rooms.strip() != "room"
]


@cache
def definitions(room: str) -> frozenset[str]:
    """Modules, classes, functions and methods (`Class.method`) of a room."""
    found = set()
    for path in [*(SOURCE / room).rglob("*.py"), *(STUDY / room).rglob("*.py")]:
        found |= {path.stem, path.parent.name}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
                found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
            elif isinstance(node, ast.FunctionDef):
                found.add(node.name)
    return frozenset(found)


def test_the_page_has_walks() -> None:
    assert len(ROWS) >= 25


@pytest.mark.parametrize(("rooms", "text"), ROWS, ids=lambda text: text[:40])
def test_what_a_stage_of_a_walk_names_is_in_its_room(rooms: str, text: str) -> None:
    names = rooms.split(", ")
    assert all((ROOT / name if "/" in name else SOURCE / name).is_dir() or (STUDY / name).is_dir() for name in names)
    here = set().union(*(definitions(name) for name in names))
    # A stage may speak of values that another room made, and of a command.
    anywhere = {
        name
        for room in [*sorted(SOURCE.iterdir()), *sorted(STUDY.iterdir())]
        if room.is_dir()
        for name in definitions(room.name)
    }
    elsewhere = {name for name in anywhere if name[0].isupper()} | COMMANDS
    for name in re.findall(r"`([^`]+)`", text):
        room, _, rest = name.rpartition(".")
        there = definitions(room) if (SOURCE / room).is_dir() and room else frozenset[str]()
        known = here | elsewhere
        assert {name, rest, f"Bench.{name}"} & known or rest in there or " " in name, f"{name} is not in {rooms}"
