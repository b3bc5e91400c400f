"""Every command line in the README and the documentation runs, in the order in which a reader meets it.

Fenced blocks of ``sh`` run in a directory of the page's own; one that begins with ``#!`` is a job script, and runs
as the scheduler would on its first node. Other languages are not commands.
"""

import os
import re
import sys
from pathlib import Path

import pytest

from colltune.judge.finding import ExitCode
from colltune.mpi.installation import Installation
from commands import run_to_end, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# What a reader installs is what these tests already run in; `make test` runs them.
_INSTALLING = re.compile(r"^(python3 -m venv|\. .*activate|pip install|make (demo|test))\b")
_COMPARING = re.compile(r"colltune (compare|verify|study guidelines)\b[^\\]*$")
# Two tunings that the reader of the page on comparing has.
_TUNINGS = ("tuned-old", "tuned-new")
# The README speaks of a real job; here is a core or two.
_SMALLER = {"--budget 5m": "--budget 1m --max-size 4KiB", "-n 512 -ppn 32": "-n 2"}


def blocks(page: Path) -> list[str]:
    """The commands of ``page``. Raises AssertionError for a fence that is neither a command nor known to be none."""
    found = []
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^```.*$", text, re.MULTILINE)
    assert all(re.fullmatch(r"```\w+", fence) for fence in fences[::2]), f"{page}: a fence does not say its language"
    for match in _BLOCK.finditer(text):
        if match["language"] == "sh":
            found.append(match["text"])
        else:
            assert match["language"] in {"toml", "python", "text", "json", "yaml", "c"}, match.group(0)
    return found


def test_indented_commands_do_not_escape() -> None:
    for page in PAGES:
        if page.parent.name != "design" and page.name != "results.md":
            assert not re.search(r"^    (\$ )?(colltune|mpiexec|make|python3?) ", page.read_text(), re.MULTILINE), page


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_commands_of_a_page_run(mpi: Installation, openmpi: Installation, page: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PBS_O_WORKDIR": str(tmp_path), "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
    environment["PATH"] = os.pathsep.join([str(commands(tmp_path)), str(mpi.mpiexec.parent), environment["PATH"]])
    for name in ("benchmarks", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    shell_script(tmp_path / "app", "exec hostname")
    for block in blocks(page):
        lines = [line for line in block.splitlines() if not _INSTALLING.match(line)]
        for usual, smaller in _SMALLER.items():
            lines = [line.replace(usual, smaller) for line in lines]
        lines = [_comparison(line, mpi, openmpi) if _COMPARING.match(line) else line for line in lines]
        if "compare tuned-old" in block:
            lines = [f"colltune tune bcast --budget 10s --max-size 64 --out {name}" for name in _TUNINGS] + lines
        script = "\n".join(lines) if block.startswith("#!") else "set -e\n" + "\n".join(lines)
        run_to_end(["bash", "-c", script], cwd=tmp_path, env=environment, timeout=900, check=True)


def _comparison(line: str, mpi: Installation, openmpi: Installation) -> str:
    """``line`` with builds that are here, a budget that a test has, and any verdict.

    On a machine that tests share two sides may be too close to tell, or B slower.
    """
    if "OMPI_MCA_" in line:
        line += f" --mpiexec {openmpi.mpiexec}"
    line = re.sub(r"/opt/mpich-[\d.]+/bin/mpiexec", str(mpi.mpiexec), line)
    verdicts = f"{ExitCode.NO_VERDICT}" if "verify" in line else f"1|{ExitCode.NO_VERDICT}"
    line += " --budget 20s" if "compare" in line else ""
    return f"{line} || case $? in {verdicts}) ;; *) exit 1 ;; esac"


def commands(place: Path) -> Path:
    """A directory with the `colltune` of this source tree."""
    directory = place / "bin"
    directory.mkdir()
    path = os.pathsep.join(sys.path)
    shell_script(directory / "colltune", f'PYTHONPATH="{path}" exec {sys.executable} -m colltune "$@"')
    return directory
