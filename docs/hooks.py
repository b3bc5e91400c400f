"""Fills in what the documentation takes from the code: its commands and the tables of the catalogue."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import resources
from typing import Any

from colltune.catalog import load
from colltune.catalog.catalogue import Catalogue
from colltune.catalog.read import LIBRARIES

_CATALOGUE, _COMMANDS = "<!-- catalogue -->", "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    if _CATALOGUE in markdown:
        markdown = markdown.replace(_CATALOGUE, "\n\n".join(_library(name) for name in LIBRARIES))
    return markdown.replace(_COMMANDS, _commands()) if _COMMANDS in markdown else markdown


def _commands() -> str:
    """What typer says of all commands, one level of headings further down."""
    command = [sys.executable, "-m", "typer", "colltune.cli.app", "utils", "docs", "--name", "colltune"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def _library(library: str) -> str:
    text = resources.files("colltune.catalog").joinpath(f"{library}.toml").read_text(encoding="utf-8")
    newest = tomllib.loads(text)["versions"][-1]
    catalogue = load(library, newest)
    parts = [f"## {library} {newest}"]
    for name, entry in catalogue.entries.items():
        parts.append(f"### {name} {{: #{library}-{name} }}")
        if entry.nothing_to_tune:
            parts.append(f"Nothing to tune: {entry.nothing_to_tune}.")
        parts.append(_table(catalogue, name))
    return "\n\n".join(parts)


def _table(catalogue: Catalogue, collective: str) -> str:
    rows = ["| algorithm | tried with | needs | measured |", "|---|---|---|---|"]
    for algorithm in catalogue.collective(collective).algorithms:
        values = "; ".join(f"{p.name} = {', '.join(map(str, p.values))}" for p in algorithm.tuned)
        needs = ", ".join(sorted(need.value for need in algorithm.needs))
        measured = "yes" if algorithm.candidate else f"no: {algorithm.why_not}"
        rows.append(f"| {algorithm.key} | {values} | {needs} | {measured} |")
    return "\n".join(rows)
