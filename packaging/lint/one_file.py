"""Makes colltune-lint: one file of Python without dependencies that does what `colltune lint` does.

    python packaging/lint/one_file.py > colltune_lint.py

The file begins with head.py. Behind it stand the modules that session/lint.py needs and the catalogues of
preconditions, each line behind a "#", so that a difference between two of them can be read.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
ROOTS = ("colltune.session.lint", "colltune.cli.console")
# The command line, a tuning directory, and the MPI of this machine: what the one file does not do.
LEFT_OUT = frozenset(
    f"colltune.{name}"
    for name in (
        "store.tuning",
        "mpi.detect",
        "emit.mpich.defaults",
        "machine.process",
    )
)
# Packages of which the one file needs other modules alone.
BARE = frozenset({"colltune", "colltune.cli"})
CATALOGUES = ("mpich", "mpich_leaves", "openmpi", "han_rules", "lint_findings")


def path_of(module: str) -> Path | None:
    """The file of ``module``; None where there is no such module, as for a name inside of one."""
    path = SOURCE.joinpath(*module.split("."))
    return next((one for one in (path / "__init__.py", path.with_suffix(".py")) if one.is_file()), None)


def source_of(module: str) -> str:
    """What the one file holds of ``module``: a package in BARE has its docstring alone."""
    path = path_of(module)
    assert path is not None, module
    text = path.read_text(encoding="utf-8")
    return f'"""{ast.get_docstring(ast.parse(text))}"""\n' if module in BARE else text


def imported_by(module: str) -> Iterator[str]:
    """The modules of the package that ``module`` imports, in its functions too."""
    for node in ast.walk(ast.parse(source_of(module))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("colltune."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("colltune"):
            assert node.module is not None
            yield node.module
            yield from (below for name in node.names if path_of(below := f"{node.module}.{name.name}"))


def modules() -> list[str]:
    """What the roots import, directly or not, and the packages around it; sorted."""
    found: set[str] = set()
    waiting = list(ROOTS)
    while waiting:
        module = waiting.pop()
        if module in found or module in LEFT_OUT:
            continue
        found.add(module)
        waiting += [*imported_by(module), *([module.rpartition(".")[0]] if "." in module else [])]
    return sorted(found)


def parts() -> Iterator[tuple[str, str]]:
    """Each file inside of the one file, by its path below src/, and its text."""
    for module in modules():
        path = path_of(module)
        assert path is not None
        yield str(path.relative_to(SOURCE)), source_of(module)
    for name in CATALOGUES:
        path = SOURCE / "colltune" / "catalog" / f"{name}.toml"
        yield str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8")


def written(version: str) -> str:
    """The one file; ``version`` is what its --version prints."""
    head = (HERE / "head.py").read_text(encoding="utf-8").replace("0+unknown", version, 1)
    commented = (f"#=== {path}\n" + "".join(f"#{line}\n" for line in text.split("\n")[:-1]) for path, text in parts())
    return "\n".join([head, *commented])


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    from colltune.core.extras import __version__

    sys.stdout.write(written(__version__))
