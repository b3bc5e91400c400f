"""How large the packages are, how they hang together, and what their tests cost: a table, and bench/house.json.

Lines are those of tracked files: ``lines_python`` of the user's wheel, ``lines_study`` of colltune-study, ``lines_c``
of C and C++ in both, ``lines_tests`` of the tests in Python, C and C++, ``lines_benchmarks`` of benchmarks in Python.
The exit code is 1 where a figure is beyond its limit (``LIMITS``). ``class_names_twice``: names of public classes that
stand for several things; ``file_names_twice``: names of modules that recur. ``rooms`` are the packages directly below
the whole, ``arrows`` the pairs of them of which one imports the other; ``circles``: groups of modules that import one
another. ``help_s``: `colltune --help`, the median of several starts. ``test_cases``: what pytest collects; of these
``cases_make_test`` are run by `make test`. With --install, ``install_mb``: plain colltune in a fresh environment,
without pip itself. With --tests, ``make_test_s``: `make test` on this machine, which has to be idle.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import grimp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from harness import ROOT, write_figures

PRODUCT, STUDY = "src/colltune", "src/colltune_study"
STARTS = 15
LONG = 60  # lines of a function


class Limit(NamedTuple):
    """``most``: beyond it this program fails. ``aim``: where it has to come to; then ``most`` is lowered to it."""

    most: float
    aim: float


LIMITS = {
    "lines_python": Limit(42_119, 41_500),
    "lines_study": Limit(6_471, 7_500),
    "lines_c": Limit(14_912, 13_500),
    "lines_tests": Limit(41_670, 38_000),
    "lines_benchmarks": Limit(10_275, 10_500),
    "long_functions": Limit(0, 0),
    "class_names_twice": Limit(0, 0),
    "circles": Limit(0, 0),
}


def tracked(directory: str, *kinds: str) -> list[Path]:
    """The files of ``kinds`` below ``directory`` that git knows and that are there."""
    command = ["git", "ls-files", "-z", *(f"{directory}/**/*{kind}" for kind in kinds)]
    command += [f"{directory}/*{kind}" for kind in kinds]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in sorted({*listed.split("\0")} - {""}) if (path := ROOT / name).is_file()]


def lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in paths)


def size() -> dict[str, float]:
    """Lines, and names that stand for more than one thing."""
    product, study = tracked(PRODUCT, ".py"), tracked(STUDY, ".py")
    modules = [*product, *study]
    classes: Counter[str] = Counter()
    long = 0
    for path in modules:
        tree = ast.parse(path.read_bytes())
        classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        long += sum((node.end_lineno or 0) - node.lineno >= LONG for node in functions)
    files = Counter(path.name for path in modules if path.name != "__init__.py")
    c = (".c", ".h", ".cpp")
    return {
        "lines_python": lines(product),
        "lines_study": lines(study),
        "lines_c": lines([*tracked("native", *c), *tracked(STUDY, *c)]),
        "lines_tests": lines(tracked("tests", ".py", *c)),
        "lines_benchmarks": lines(tracked("benchmarks", ".py")),
        "long_functions": long,
        "modules": len(modules),
        "class_names_twice": sum(number > 1 for number in classes.values()),
        "file_names_twice": sum(number > 1 for number in files.values()),
    }


def imports() -> dict[str, float]:
    """Rooms, arrows between them, and circles of modules."""
    graph = grimp.build_graph("colltune", "colltune_study", cache_dir=None)
    modules = sorted(graph.modules)
    number = {module: index for index, module in enumerate(modules)}
    pairs = [(one, other) for one in modules for other in graph.find_modules_directly_imported_by(one)]
    rows, columns = ([number[pair[end]] for pair in pairs] for end in (0, 1))
    matrix = csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(modules), len(modules)))
    _, group = connected_components(matrix, connection="strong")
    packages = ("colltune", "colltune_study")
    rooms = [(".".join(one.split(".")[:2]), ".".join(other.split(".")[:2])) for one, other in pairs]
    return {
        "rooms": sum(len(graph.find_children(package)) for package in packages),
        "arrows": len({pair for pair in rooms if pair[0] != pair[1] and not {*packages} & {*pair}}),
        "circles": sum(members > 1 for members in Counter(group.tolist()).values()),
    }


def start_up_s() -> float:
    command = [sys.executable, "-m", "colltune", "--help"]
    times_s = []
    for _ in range(STARTS):
        begun_s = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times_s.append(time.monotonic() - begun_s)
    return round(statistics.median(times_s), 3)


def cases(*options: str) -> int:
    """How many test cases pytest collects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *options]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sum(int(line.rpartition(": ")[2]) for line in done.stdout.splitlines() if line.startswith("tests/"))


def install_mb() -> float:
    """Plain colltune and what it needs, on disk."""
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        directory = next(Path(place, "lib").glob("python*")) / "site-packages"
        before = _bytes(directory)
        options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([f"{place}/bin/pip", "install", *options, str(ROOT)], check=True)
        return round((_bytes(directory) - before) / 1e6, 1)


def _bytes(directory: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


def make_test_s() -> float:
    begun_s = time.monotonic()
    subprocess.run(["make", "test"], cwd=ROOT, check=True, env={**os.environ, "MAKEFLAGS": ""})
    return round(time.monotonic() - begun_s, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="measure a plain install too: downloads its libraries")
    parser.add_argument("--tests", action="store_true", help="time `make test` too")
    arguments = parser.parse_args()
    figures = {
        **size(),
        **imports(),
        "help_s": start_up_s(),
        "test_cases": cases(),
        "cases_make_test": cases("-m", "not slow and (not mpi or slice)"),
    }
    if arguments.install:
        figures["install_mb"] = install_mb()
    if arguments.tests:
        figures["make_test_s"] = make_test_s()
    write_figures("house", figures, is_shown=False)
    table = Table("what", "how much", "at most", "aim")
    for name, value in figures.items():
        table.add_row(name, f"{value:,}", *(f"{limit:,}" for limit in LIMITS.get(name, ())))
    Console().print(table)
    beyond = [name for name, limit in LIMITS.items() if figures[name] > limit.most]
    if beyond:
        sys.exit(f"beyond their limits (benchmarks/house.py): {', '.join(beyond)}")


if __name__ == "__main__":
    main()
