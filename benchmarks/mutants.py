"""Do the tests find a fault? Forty one-line faults of the package, and which of them a suite finds.

``python benchmarks/mutants.py`` chooses the faults, which follow from the sources and --seed alone, puts each into a
copy of this checkout, and runs there the tests that come by its line, until one fails. Which files of tests come by is
found out first, once, with a note at each line instead of a fault.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEED, NUMBER = 31, 40
# What `make test` runs.
SLICE = "not slow and (not mpi or slice)"
_WORKERS = 2  # processes side by side for what runs no MPI
_COMPARED = {
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//"}
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
# What a test cannot see, or need not: what is said of bad input, and declarations.
_PASSED_OVER = (ast.Raise, ast.Assert, ast.JoinedStr, ast.AnnAssign, ast.arguments)
# The contracts that the tests themselves run.
_NO_ROOMS = ("testing",)
# A mutant whose tests take longer than this hangs, which a suite finds by its time limit.
_PATIENCE_S = 900.0


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault: in ``function`` of ``path`` the line ``before``, which was number ``line``, becomes ``after``."""

    path: str
    function: str
    line: int
    kind: str
    before: str
    after: str


def _replacements(node: ast.AST, text: str) -> Iterator[tuple[str, str]]:
    """What kind of fault and what text can take the place of ``node``, whose text is ``text``."""
    of = ast.unparse
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            yield "comparison", f"({of(left)} {_COMPARED[type(op)]} {of(right)})"
        case ast.BoolOp(op=op, values=values):
            other = " and " if isinstance(op, ast.Or) else " or "
            yield "connective", "(" + other.join(f"({of(value)})" for value in values) + ")"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED and not _is_text(left, right):
            yield "arithmetic", f"(({of(left)}) {_COMPUTED[type(op)]} ({of(right)}))"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation", f"({of(operand)})"
        case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED and len(node.args) == 1 and not node.keywords:
            yield "extremum", _SWAPPED[name] + text[len(name) :]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "choice", f"({of(orelse)} if {of(test)} else {of(body)})"
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield "result", "return None"
        case ast.Expr(value=ast.Call()):
            yield "statement", "pass"
        case ast.Constant(value=bool(value)):
            yield "constant", str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", str(value + 1)


def _is_text(*nodes: ast.AST) -> bool:
    """Whether texts or lists are joined, for which there is no difference."""
    kinds = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(
        isinstance(node, kinds) or (isinstance(node, ast.Constant) and isinstance(node.value, str)) for node in nodes
    )


def _faults(path: Path) -> list[Mutant]:
    """All one-line faults in the functions of a file, in the order of the file."""
    source = path.read_text()
    lines = source.splitlines()
    name = str(path.relative_to(ROOT))
    faults = []

    def visit(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _PASSED_OVER):
                continue
            if function and isinstance(child, ast.expr | ast.stmt) and child.lineno == child.end_lineno:
                row = child.lineno - 1
                # Columns are of bytes.
                line = lines[row].encode()
                text = line[child.col_offset : child.end_col_offset].decode()
                for kind, other in _replacements(child, text):
                    after = line[: child.col_offset] + other.encode() + line[child.end_col_offset :]
                    faults.append(Mutant(name, function, row + 1, kind, lines[row], after.decode()))
            inner = (
                f"{function}.{child.name}".lstrip(".")
                if isinstance(child, ast.FunctionDef | ast.ClassDef)
                else function
            )
            visit(child, inner if not isinstance(child, ast.ClassDef) or function else f"{child.name}")

    visit(ast.parse(source), "")
    return faults


def _can_be_put_in(fault: Mutant) -> bool:
    """Whether the file can be read with the fault in it, and the line is of a function, where a note can be put."""
    lines = (ROOT / fault.path).read_text().splitlines()
    statement = _statement(ast.parse("\n".join(lines)), fault.line)
    lines[fault.line - 1] = fault.after
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return statement is not None


def _statement(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost statement of a function that begins on a line of its own and covers ``line``."""
    innermost = None
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                inside = (
                    isinstance(node, ast.stmt)
                    and node is not function
                    and node.lineno <= line <= (node.end_lineno or 0)
                )
                if inside and (innermost is None or node.lineno >= innermost.lineno):
                    innermost = node
    return innermost


def choose(seed: int) -> list[Mutant]:
    """NUMBER faults: one of each room first, the rest by the rooms' sizes, all kinds as often in each."""
    rooms = defaultdict(list)
    for path in sorted((ROOT / "src" / "colltune").rglob("*.py")):
        rooms[path.relative_to(ROOT / "src" / "colltune").parts[0]].extend(_faults(path))
    draw = random.Random(seed)
    names = sorted(room for room, faults in rooms.items() if faults and room not in _NO_ROOMS)
    order = draw.sample(names, len(names))
    order += draw.choices(names, weights=[len(rooms[name]) for name in names], k=2 * NUMBER)
    chosen: dict[tuple[str, int], Mutant] = {}
    for room in order:
        kind = draw.choice(sorted({fault.kind for fault in rooms[room]}))
        fault = draw.choice([fault for fault in rooms[room] if fault.kind == kind])
        if len(chosen) < NUMBER and _can_be_put_in(fault):
            chosen.setdefault((fault.path, fault.line), fault)
    return list(chosen.values())


def _note(number: int, directory: Path) -> str:
    """Python that notes, in whatever process, which file of tests comes by."""
    test = "__import__('os').environ.get('PYTEST_CURRENT_TEST', 'all')"
    name = f"{test}.partition('::')[0].replace('/', '+')"
    return f"open({str(directory)!r} + '/{number}@' + {name}, 'a').close()"


def put_notes(mutants: dict[int, Mutant], tree: Path, directory: Path) -> None:
    """A note before the statement of each mutant: from the file's end, so that no line moves before its turn."""
    for path in sorted({tree / mutant.path for mutant in mutants.values()}):
        lines = path.read_text().splitlines()
        parsed = ast.parse("\n".join(lines))
        statements = {}
        for number, mutant in mutants.items():
            if tree / mutant.path == path and (statement := _statement(parsed, mutant.line)) is not None:
                statements[number] = _where_a_note_can_be(lines, parsed, statement)
        for number, row in sorted(statements.items(), key=lambda item: -item[1]):
            indent = lines[row - 1][: len(lines[row - 1]) - len(lines[row - 1].lstrip())]
            lines.insert(row - 1, indent + _note(number, directory))
        path.write_text("\n".join(lines) + "\n")


def _where_a_note_can_be(lines: list[str], parsed: ast.Module, statement: ast.stmt) -> int:
    """The statement's first line, or for an ``elif`` that of its ``if``."""
    row = statement.lineno
    while lines[row - 1].lstrip().startswith("elif"):
        above = [
            node for node in ast.walk(parsed) if isinstance(node, ast.If) and any(n.lineno == row for n in node.orelse)
        ]
        row = above[0].lineno
    return row


class Copy:
    """A copy of this checkout, with its environments, in which tests run."""

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        # Tests that fail without a fault: they tell nothing.
        self.failing: set[str] = set()
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in [*filter(None, listed.split("\0")), "src/colltune/core/version.txt"]:
            if (ROOT / name).exists():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        for name in (".venv", ".venv-openmpi"):
            (self.tree / name).symlink_to(ROOT / name)
        commit = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "a copy"]
        for command in (["git", "init", "--quiet"], ["git", "add", "src", "tests", "pyproject.toml"], commit):
            subprocess.run(command, cwd=self.tree, check=True)

    def pytest(self, *arguments: str, workers: int = 0) -> list[str] | None:
        """Which tests fail, or what else ended the run in another way than well; None where all pass."""
        own = {"PYTHONPATH": str(self.tree / "src"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-p", "no:cacheprovider", "--tb=no", "-rfE"]
        command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pytest", *options, *arguments]
        command += ["-n", str(workers)] if workers else []
        command += [f"--deselect={name}" for name in sorted(self.failing)]
        ways = {"cwd": self.tree, "env": {**os.environ, **own}, "stdin": subprocess.DEVNULL, "timeout": _PATIENCE_S}
        try:
            done = subprocess.run(command, **ways, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            return ["outlived its time"]
        # 5: no test was chosen.
        if done.returncode in (0, 5):
            return None
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return [line.partition(" ")[2].partition(" - ")[0] for line in lines] or [f"exit code {done.returncode}"]


def passers(copy: Copy, mutants: dict[int, Mutant], directories: list[str]) -> dict[int, set[str]]:
    """Which files of tests come by each mutant's line; each has a process of its own, so that no cache hides one."""
    with tempfile.TemporaryDirectory() as notes:
        put_notes(mutants, copy.tree, Path(notes))
        paths = [path for name in directories for path in sorted((copy.tree / name).rglob("test_*.py"))]
        with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
            for failing in pool.map(lambda path: copy.pytest(str(path.relative_to(copy.tree)), "-m", SLICE), paths):
                if failing:
                    print("without a fault fails:", *failing, file=sys.stderr, flush=True)
                    copy.failing.update(failing)
        by: dict[int, set[str]] = {number: set() for number in mutants}
        for note in Path(notes).iterdir():
            number, _, name = note.name.partition("@")
            by[int(number)].add(name.replace("+", "/"))
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=copy.tree, check=True)
    return by


def run(arguments: argparse.Namespace) -> None:
    """Runs the tests on each mutant, and writes which are found and by what."""
    chosen = choose(arguments.seed)
    mutants = {number: chosen[number] for number in arguments.only or range(len(chosen))}
    out = Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants") as directory:
        copy = Copy(Path(directory))
        by = passers(copy, mutants, arguments.tests)
        for number, mutant in mutants.items():
            files = sorted(by[number])
            if "all" in files:
                files = list(arguments.tests)
            changed = copy.tree / mutant.path
            lines = changed.read_text().splitlines()
            lines[mutant.line - 1] = mutant.after
            changed.write_text("\n".join(lines) + "\n")
            workers = _WORKERS if not any(name.startswith("tests/mpi") for name in files) else 0
            failing = copy.pytest("-x", "-m", SLICE, *files, workers=workers) if files else None
            subprocess.run(["git", "checkout", "--quiet", str(changed)], cwd=copy.tree, check=True)
            results[str(number)] = {"found": bool(failing), "by": failing and failing[0], "files": files}
            words = f"found by {failing[0]}" if failing else f"NOT FOUND by {len(files)} files of tests"
            print(f"{number:2} {mutant.path}:{mutant.line} {mutant.kind}: {words}", flush=True)
            out.write_text(json.dumps(results, indent=1) + "\n")
    found = sum(bool(entry["found"]) for entry in results.values())
    print(f"{found} of {len(results)} found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["tests"], help="directories of tests")
    parser.add_argument("--seed", type=int, default=SEED, help="of the choice of faults")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants")
    parser.add_argument("--out", default=str(ROOT / "bench" / "mutants.json"))
    run(parser.parse_args())


if __name__ == "__main__":
    main()
