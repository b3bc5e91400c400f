"""Fills in what the documentation takes from elsewhere: commands, the tables of the catalogue, notebooks as pages."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from colltune.catalog import load
from colltune.catalog.catalogue import Catalogue
from colltune.catalog.read import LIBRARIES

_CATALOGUE, _COMMANDS = "<!-- catalogue -->", "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    if _CATALOGUE in markdown:
        markdown = markdown.replace(_CATALOGUE, "\n\n".join(_library(name) for name in LIBRARIES))
    return markdown.replace(_COMMANDS, _commands()) if _COMMANDS in markdown else markdown


def on_files(files: Files, *, config: Any) -> Files:
    """Called by mkdocs once it knows all files: adds a page for each notebook, with the outputs that it keeps."""
    for path in sorted(Path(config.docs_dir).glob("notebooks/*.ipynb")):
        name = path.relative_to(config.docs_dir).with_suffix(".md").as_posix()
        files.append(File.generated(config, name, content=notebook_page(path)))
    return files


def notebook_page(path: Path) -> str:
    """The notebook at ``path`` as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_output(output) for output in cell.get("outputs", ())]
    return "\n\n".join([*parts, f"[Download the notebook]({path.name})"])


def _output(output: dict[str, Any]) -> str:
    """What a cell printed, or the value of its last line."""
    data = output.get("data", {})
    if "text/html" in data:
        # Without empty lines, at which Markdown would take the rest for its own.
        body = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return f'<div class="notebook-output">{body}</div>'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f'<pre class="notebook-output">{html.escape(text)}</pre>'


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
