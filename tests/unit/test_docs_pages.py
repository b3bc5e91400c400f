"""What the pages name is there, and what the how-to pages say works."""

import ast
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import typer

from colltune.cli.app import app
from colltune.core.sample import DEFAULT, Sample, Scenario, Status
from colltune.core.topology import Top
from colltune.learn.contract import Learner
from colltune.schedule.topology_files import load_topology
from colltune.store.records import FORMAT, Header, encode
from colltune.store.tuning import JOURNAL, load_tuning
from commands import run_to_end

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
def test_every_link_of_a_page_leads_somewhere_and_every_file_that_it_names_is_there(page: Path) -> None:
    dead = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (heading and heading not in anchors(target)):
            dead.append(link)
    named = set(_PATH.findall(_LINK.sub("", prose(page)))) - _MADE
    assert [*dead, *(name for name in sorted(named) if not (ROOT / name).exists())] == []


def test_a_dead_anchor_is_seen() -> None:
    assert {"exit-code", "exit-codes"} & anchors(ROOT / "docs" / "how-to" / "troubleshooting.md") == {"exit-codes"}


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
    # An option that is named alone is one of some command.
    alone = {code.split()[0].partition("=")[0] for code in codes(page) if re.match(r"--\w", code)}
    assert not sorted(alone - set().union(OF_SCRIPTS, *OPTIONS.values()))


def test_the_readme_shows_first_the_gain_and_how_to_get_it_and_names_what_everybody_needs() -> None:
    """Each figure is one of docs/results.md, so that neither can be changed alone."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    screen = readme[:32]
    rows = [line for line in screen if line.startswith("| ")][1:]
    figures = [figure for row in rows for figure in re.findall(r"\d+\.\d+|0 of \d+", row)]
    assert len(figures) > 10
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert [figure for figure in figures if figure not in results] == []
    for command in ("pip install ", "colltune tune ", "colltune run ", "make demo ", "make test "):
        assert any(command in line for line in screen), command
    named = "".join(line for line in readme if line.startswith("|"))
    assert [name for name in COMMANDS[:6] if f"colltune {name}" not in named] == []


def test_the_manual_says_of_every_command_what_its_help_begins_with() -> None:
    group = typer.main.get_command(app)
    manual = re.sub(r"\\f[BR]", "`", MANUAL.read_text(encoding="utf-8")).replace("\\-", "-")
    listed = manual.partition(".SH COMMANDS")[2].partition(".SH OPTIONS")[0]
    told = dict(re.findall(r"^\.B (\w+)\n(.*?)(?=^\.|\Z)", listed, re.MULTILINE | re.DOTALL))
    assert list(told) == COMMANDS
    for name, command in group.commands.items():
        first = " ".join((command.help or "").split())
        assert first.startswith(" ".join(told[name].split()).rstrip(".")), name


# Comments and docstrings speak of collectives, and decide nothing.
_COMMENT = re.compile(r'/\*.*?\*/|""".*?"""|(?:#|//)[^\n]*', re.DOTALL)
HOW_TO = ROOT / "docs" / "how-to"
SOURCE = ROOT / "src" / "colltune"
# Places that know a library by name, outside of what is its own: its emitter, its linter, its backend, its catalogue.
_OWN = re.compile(r"(emit|catalog)/.*openmpi|backends/openmpi|emit/openmpi")
_BY_NAME = re.compile(
    r"Library\.OPENMPI|[\"']openmpi[\"']\)?(?::| if|,| and|\s*$)|[!=]= [\"']openmpi[\"']", re.MULTILINE
)


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of ``page``, also those inside a list, without their indentation."""
    found = re.finditer(
        rf"^( *)```{language}\n(.*?)^ *```$", (HOW_TO / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return [textwrap.dedent(match[2]) for match in found]


def test_a_strategy_that_is_written_as_the_page_says_keeps_all_laws_and_is_found(tmp_path: Path) -> None:
    strategy, suite = blocks("add-a-strategy.md", "python")
    (tmp_path / "mine.py").write_text(strategy)
    (tmp_path / "test_mine.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    run_to_end(command, cwd=tmp_path, check=True)
    find = "from colltune_study.research.strategies import contestants; print(len(contestants(['mine:SmallestFirst'])))"
    run_to_end([sys.executable, "-c", find], cwd=tmp_path, check=True)


def test_the_page_names_every_method_of_a_strategy() -> None:
    text = (HOW_TO / "add-a-strategy.md").read_text()
    methods = [name for name, value in vars(Learner).items() if callable(value) and not name.startswith("_")]
    assert (len(methods), "the six methods" in text) == (6, True)
    assert all(f"`{name}`" in text for name in methods)


def test_the_page_on_an_mpi_names_every_place_that_asks_for_a_library_by_name() -> None:
    text = (HOW_TO / "add-an-mpi.md").read_text()
    places = [path for path in sorted(SOURCE.rglob("*.py")) if _BY_NAME.search(path.read_text())]
    named = [str(path.relative_to(ROOT)) for path in places if not _OWN.search(str(path.relative_to(SOURCE)))]
    assert len(named) >= 8
    assert [path for path in named if path not in text] == []


def test_a_topology_that_is_written_as_the_page_says_is_read(tmp_path: Path) -> None:
    (scheme,) = blocks("add-a-topology.md", "toml")
    path = tmp_path / "machine.toml"
    path.write_text(scheme)
    topology = load_topology(str(path), ["r1s1n1", "r1s1n2", "r1s2n1", "r2s1n1"])
    assert topology.top is Top.CROSSBAR
    assert len(set(topology.leaf)) == 3
    with_part = scheme.replace('name = "rack"', 'name = "row"\npart = "rack"\ndivide = 4')
    path.write_text(with_part)
    ways = load_topology(str(path), ["r1s1n1", "r3s1n1", "r4s1n1"])
    assert sorted(one.name for one in ways.switches if one.name.startswith("row")) == ["row 0", "row 1"]


@pytest.mark.parametrize("collective", ["allgatherv", "reduce_scatter_block"])
def test_the_page_on_a_collective_names_every_file_that_knows_one_by_name(collective: str) -> None:
    text = (HOW_TO / "add-a-collective.md").read_text(encoding="utf-8")
    every = (*sorted(SOURCE.rglob("*")), *sorted((ROOT / "native").rglob("*")))
    files = [path for path in every if path.suffix in (".py", ".c", ".h", ".toml")]
    named = re.compile(rf"[\"' ]{collective}[\"' \]:]|\b(MPI_|X\(){collective.capitalize()}\b")
    knowing = [p.relative_to(ROOT).as_posix() for p in files if named.search(_COMMENT.sub("", p.read_text("utf-8")))]
    assert {"src/colltune/core/sample.py", "native/agent/collective.c"} <= set(knowing)
    listed = re.findall(r"`((?:src|native)/[\w./]+)`", text)
    catalogues = ("src/colltune/catalog/", "src/colltune_study/simulated/", "native/conformance/")
    unknown = [name for name in knowing if not name.startswith((*listed, *catalogues))]
    assert unknown == []


def test_a_command_of_three_files_works_is_listed_and_stands_in_the_manual(tmp_path: Path) -> None:
    module, line = blocks("add-a-command.md", "python")
    (entry,) = blocks("add-a-command.md", "text")
    package = tmp_path / "colltune"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "cli" / "shapes.py").write_text(module, encoding="utf-8")
    app, lint = package / "cli" / "app.py", '        "lint": CommandEntry('
    app.write_text(app.read_text("utf-8").replace(lint, f"        {line.strip()}\n{lint}"), encoding="utf-8")

    def colltune(*words: str) -> str:
        return run_to_end([sys.executable, "-m", "colltune", *words], cwd=tmp_path, check=True).stdout

    assert re.search(r"^  shapes +The shapes of job that a tuning holds$", colltune("--help"), re.MULTILINE)
    assert entry.splitlines()[-1] in " ".join(colltune("shapes", "--help").split())
    assert colltune("shapes", str(ROOT / "tests" / "recorded" / "tunings" / "measured")) == "1 x 2\n"


# Times of twenty launches of two sides, equal or not: how often a verdict is wrong, and what it is where B is faster.
_COUNTED = """
import random
from colltune.core.sample import Choice, Scenario
from colltune.judge import signs
from colltune.judge.verdict import compare_all

def verdict(seed, faster):
    draw = random.Random(seed).lognormvariate
    a_s, b_s = ([side * draw(0, 0.1) for _ in range(20)] for side in (faster, 1.0))
    [compared] = compare_all({(Scenario("bcast", 2, 2, 64), Choice("tree")): (a_s, b_s)}, paired=True)
    return compared.verdict.value

assert sum(verdict(seed, 1.0) in ("faster", "slower") for seed in range(200)) <= 5
assert {verdict(seed, 1.5) for seed in range(20)} == {"faster"}
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git to apply a patch")
@pytest.mark.parametrize("page", ["statistic", "report-section"])
def test_the_patch_of_a_page_has_three_files_as_it_says_and_works(page: str, tmp_path: Path) -> None:
    for name in ("src/colltune", "docs/reference"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    patch = HOW_TO / f"{page}.patch"
    assert patch.read_text(encoding="utf-8").count("\n+++ ") == 3
    run_to_end(["git", "apply", str(patch)], cwd=tmp_path, check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    tuned = tmp_path / "tuned"
    shutil.copytree(ROOT / "tests" / "recorded" / "tunings" / "measured", tuned)
    head = Header(FORMAT, "0.1.0", load_tuning(tuned).environment)
    sample = Sample(Scenario("allgather", 1, 2, 8), DEFAULT, Status.OK, (1e-6,), cost_s=2.0)
    (tuned / JOURNAL).write_bytes(encode(head) + encode(sample))
    words = ["-c", _COUNTED] if page == "statistic" else ["-m", "colltune", "report", str(tuned), "--text", "--all"]
    done = run_to_end([sys.executable, *words], cwd=tmp_path, env=environment, check=True)
    if page == "report-section":
        assert re.search(r"^measuring$\n  allgather: 1 measurements, 2 s$", done.stdout, re.MULTILINE)


STUDY = ROOT / "src" / "colltune_study"
WALKS = (ROOT / "docs" / "design" / "walks.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize(("rooms", "text"), ROWS, ids=lambda text: text[:40])
def test_what_a_stage_of_a_walk_names_is_in_its_room(rooms: str, text: str) -> None:
    assert len(ROWS) >= 25
    names = rooms.split(", ")
    assert all((ROOT / name if "/" in name else SOURCE / name).is_dir() or (STUDY / name).is_dir() for name in names)
    here = set().union(*(definitions(name) for name in names))
    # A stage may speak of values that another room made, and of a command.
    anywhere = set().union(*(definitions(room.name) for room in [*SOURCE.iterdir(), *STUDY.iterdir()] if room.is_dir()))
    elsewhere = {name for name in anywhere if name[0].isupper()} | {*COMMANDS}
    for name in re.findall(r"`([^`]+)`", text):
        room, _, rest = name.rpartition(".")
        there = definitions(room) if (SOURCE / room).is_dir() and room else frozenset[str]()
        known = here | elsewhere
        assert {name, rest, f"Bench.{name}"} & known or rest in there or " " in name, f"{name} is not in {rooms}"
