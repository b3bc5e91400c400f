"""Does what the how-to pages say, and sees that it works."""

import re
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from colltune.core.topology import Top
from colltune.learn.contract import Learner
from colltune.schedule.topology_files import load_topology
from commands import run_to_end

ROOT = Path(__file__).parents[2]
# Comments and docstrings speak of collectives, and decide nothing.
_COMMENT = re.compile(r'/\*.*?\*/|""".*?"""|(?:#|//)[^\n]*', re.DOTALL)
PAGES = ROOT / "docs" / "how-to"
SOURCE = ROOT / "src" / "colltune"
# Places that know a library by name, outside of what is its own: its emitter, its linter, its backend, its catalogue.
_OWN = re.compile(r"(emit|catalog)/.*openmpi|backends/openmpi|emit/openmpi|traffic/(recorded|describe)")
_BY_NAME = re.compile(
    r"Library\.OPENMPI|[\"']openmpi[\"']\)?(?::| if|,| and|\s*$)|[!=]= [\"']openmpi[\"']", re.MULTILINE
)


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of ``page``, also those inside a list, without their indentation."""
    found = re.finditer(
        rf"^( *)```{language}\n(.*?)^ *```$", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return [textwrap.dedent(match[2]) for match in found]


def test_a_strategy_that_is_written_as_the_page_says_keeps_all_laws_and_is_found(tmp_path: Path) -> None:
    strategy, suite = blocks("add-a-strategy.md", "python")
    (tmp_path / "mine.py").write_text(strategy)
    (tmp_path / "test_mine.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = run_to_end(command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    find = "from colltune_study.research.strategies import contestants; print(len(contestants(['mine:SmallestFirst'])))"
    done = run_to_end([sys.executable, "-c", find], cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_page_names_every_method_of_a_strategy() -> None:
    text = (PAGES / "add-a-strategy.md").read_text()
    methods = [name for name, value in vars(Learner).items() if callable(value) and not name.startswith("_")]
    assert "the six methods" in text
    assert len(methods) == 6
    assert all(f"`{name}`" in text for name in methods)


def test_the_page_on_an_mpi_names_every_place_that_asks_for_a_library_by_name() -> None:
    text = (PAGES / "add-an-mpi.md").read_text()
    places = [path for path in sorted(SOURCE.rglob("*.py")) if _BY_NAME.search(path.read_text())]
    named = [
        path.relative_to(ROOT).as_posix() for path in places if not _OWN.search(path.relative_to(SOURCE).as_posix())
    ]
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
    text = (PAGES / "add-a-collective.md").read_text(encoding="utf-8")
    files = [
        path
        for path in (*sorted(SOURCE.rglob("*")), *sorted((ROOT / "native").rglob("*")))
        if path.suffix in (".py", ".c", ".h", ".toml")
    ]
    named = re.compile(rf"[\"' ]{collective}[\"' \]:]|\b(MPI_|X\(){collective.capitalize()}\b")
    knowing = [p.relative_to(ROOT).as_posix() for p in files if named.search(_COMMENT.sub("", p.read_text("utf-8")))]
    assert {"src/colltune/core/scenario.py", "native/agent/collective.c"} <= set(knowing)
    listed = re.findall(r"`((?:src|native)/[\w./]+)`", text)
    catalogues = ("src/colltune/catalog/", "src/colltune_study/simulated/", "native/conformance/")
    unknown = [name for name in knowing if not name.startswith((*listed, *catalogues))]
    assert unknown == []


def copied(place: Path) -> Path:
    """The package, to be changed as a page says."""
    shutil.copytree(SOURCE, place / "colltune", ignore=shutil.ignore_patterns("__pycache__"))
    return place / "colltune"


def test_a_command_of_three_files_works_is_listed_and_stands_in_the_manual(tmp_path: Path) -> None:
    module, line = blocks("add-a-command.md", "python")
    (entry,) = blocks("add-a-command.md", "text")
    package = copied(tmp_path)
    (package / "cli" / "shapes.py").write_text(module, encoding="utf-8")
    app = package / "cli" / "app.py"
    listed = app.read_text(encoding="utf-8").replace(
        '        "lint": CommandEntry(', f'        {line.strip()}\n        "lint": CommandEntry('
    )
    app.write_text(listed, encoding="utf-8")

    def colltune(*words: str) -> str:
        command = [sys.executable, "-m", "colltune", *words]
        done = run_to_end(command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert re.search(r"^  shapes +The shapes of job that a tuning holds$", colltune("--help"), re.MULTILINE)
    assert entry.splitlines()[-1] in " ".join(colltune("shapes", "--help").split())
    assert colltune("shapes", str(ROOT / "tests" / "recorded" / "tunings" / "measured")) == "1 x 2\n"
