"""What the pages name is there: pages and headings that they link to, files of the repository, commands, options."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import typer

from colltune.cli.app import app

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "packaging" / "man" / "colltune.1"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FOLDERS = "docs|tests|src|benchmarks|native|packaging|examples"
_PATH = re.compile(rf"(?<![\w./-])(?:{_FOLDERS})/[\w./-]*(?:\w\.[a-z]\w*|\w/?(?=`))")
# Made by the hook of the documentation, or by a reader.
_MADE = {"src/colltune/catalog/NAME.toml"}


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def codes(page: Path) -> list[str]:
    """What stands between backquotes in the prose of ``page``."""
    return re.findall(r"`([^`]+)`", prose(page))


def anchors(page: Path) -> set[str]:
    """The names of the headings of ``page``, as the documentation makes them."""
    headings = re.findall(r"^#+ +(.*?)(?: *\{.*\})?$", prose(page), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", text) for text in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    dead = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (heading and heading not in anchors(target)):
            dead.append(link)
    assert not dead


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = {name for name in _PATH.findall(_LINK.sub("", prose(page))) if name not in _MADE}
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_a_dead_anchor_is_seen() -> None:
    assert "exit-codes" in anchors(ROOT / "docs" / "how-to" / "troubleshooting.md")
    assert "exit-code" not in anchors(ROOT / "docs" / "how-to" / "troubleshooting.md")


def options() -> Mapping[tuple[str, ...], set[str]]:
    """Every command, with the options that it has."""

    def walk(command: typer.core.TyperGroup, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        yield words, names | {"--help"}
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))

    return dict(walk(typer.main.get_command(app), ()))


OPTIONS = options()
# Benchmarks and the figures of the papers have options of their own.
_SCRIPTS = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "benchmarks" / "papers").glob("*.py")]
OF_SCRIPTS = {name for path in _SCRIPTS for name in re.findall(r'"(--[\w-]+)"', path.read_text(encoding="utf-8"))}
COMMANDS = [words[0] for words in OPTIONS if len(words) == 1]


def calls(page: Path) -> Iterator[list[str]]:
    """The words behind `colltune` of every command that ``page`` names, in code between backquotes or in a block."""
    text = page.read_text(encoding="utf-8")
    lines = [line for language, block in _FENCE.findall(text) if language == "sh" for line in block.splitlines()]
    lines += [code.replace("\n", " ") for code in codes(page)]
    for line in lines:
        line = line.partition(" #")[0]
        for call in re.findall(r"(?:^|[\s(])colltune ([^|&;)]*)", line):
            yield shlex.split(call.partition(" -- ")[0].replace('"', "").replace("'", ""))
        # Where a page speaks of a command by its name alone, it is one if an option follows.
        if line.partition(" ")[0] in COMMANDS and line.partition(" ")[2].startswith("--"):
            yield line.partition(" -- ")[0].split()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_command_and_option_that_a_page_names_exists(page: Path) -> None:
    wrong = []
    for words in calls(page):
        if words[:1] in ([], ["..."], ["COMMAND"]):
            continue
        named = [word.partition("=")[0] for word in words if word.startswith("--") and word not in ("--", "---")]
        command = () if words[0].startswith("--") else (words[0],)
        if len(words) > 1 and (*command, words[1]) in OPTIONS:
            command = (*command, words[1])
        known = OPTIONS.get(command)
        if known is None or not known.issuperset(named):
            wrong.append(" ".join(words))
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_an_option_that_a_page_names_alone_is_one_of_some_command(page: Path) -> None:
    every = {name for names in OPTIONS.values() for name in names} | OF_SCRIPTS
    alone = {code.split()[0].partition("=")[0] for code in codes(page) if re.match(r"--\w", code)}
    assert not sorted(alone - every)


def test_the_first_screen_of_the_readme_shows_the_gain_and_how_to_get_it() -> None:
    """Each figure is one of docs/results.md, so that neither can be changed alone."""
    screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:32]
    rows = [line for line in screen if line.startswith("| ")][1:]
    figures = [figure for row in rows for figure in re.findall(r"\d+\.\d+|0 of \d+", row)]
    assert len(figures) > 10
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert [figure for figure in figures if figure not in results] == []
    for command in ("pip install ", "colltune tune ", "colltune run ", "make demo ", "make test "):
        assert any(command in line for line in screen), command


def test_the_readme_names_what_everybody_needs_and_the_manual_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line.partition("|")[2] for line in readme.splitlines() if line.startswith("|")]
    assert not [name for name in COMMANDS[:6] if not any(f"colltune {name}" in row for row in rows)]
    manual = MANUAL.read_text(encoding="utf-8")
    listed = re.findall(r"^\.B (\w+)$", manual.partition(".SH COMMANDS")[2].partition(".SH OPTIONS")[0], re.MULTILINE)
    assert listed == COMMANDS


def test_the_manual_says_of_a_command_what_its_help_begins_with() -> None:
    group = typer.main.get_command(app)
    manual = re.sub(r"\\f[BR]", "`", MANUAL.read_text(encoding="utf-8")).replace("\\-", "-")
    listed = manual.partition(".SH COMMANDS")[2].partition(".SH OPTIONS")[0]
    told = dict(re.findall(r"^\.B (\w+)\n(.*?)(?=^\.|\Z)", listed, re.MULTILINE | re.DOTALL))
    for name, command in group.commands.items():
        first = " ".join((command.help or "").split())
        assert first.startswith(" ".join(told[name].split()).rstrip(".")), name
