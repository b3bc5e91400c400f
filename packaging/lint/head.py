#!/usr/bin/env python3
"""colltune-lint: finds errors in selection files of MPICH and Open MPI before a job meets them.

    python3 colltune_lint.py FILE... --mpi-version 5.0.2

It needs Python 3.11 and nothing else, and no MPI. Exit code 0: no errors; 1: errors; 2: it could not look.
Made from colltune by packaging/lint/one_file.py: change that, not this. Licence: BSD-3-Clause.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import io
import sys
from importlib.resources.abc import Traversable, TraversableResources
from pathlib import Path
from types import ModuleType

VERSION = "0+unknown"
MARK = "#=== "  # a part begins here; its lines follow, each behind a "#"


def read_parts(text: str) -> dict[str, str]:
    """The files behind the code of this one, by their paths."""
    parts = {}
    for part in text.split(f"\n{MARK}")[1:]:
        name, _, lines = part.partition("\n")
        parts[name] = "".join(f"{line[1:]}\n" for line in lines.split("\n") if line[:1] == "#")
    return parts


class Part(Traversable):
    """A part, or the folder of some, as importlib.resources asks for them."""

    def __init__(self, parts: dict[str, str], path: str) -> None:
        self._parts, self._path = parts, path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    def joinpath(self, *names):
        return Part(self._parts, "/".join([self._path, *names]))

    def is_file(self) -> bool:
        return self._path in self._parts

    def is_dir(self) -> bool:
        return not self.is_file()

    def iterdir(self):
        below = f"{self._path}/"
        return iter([Part(self._parts, path) for path in self._parts if path.startswith(below)])

    def open(self, mode="r", *args, **kwargs):
        text = self._parts[self._path]
        return io.StringIO(text) if mode == "r" else io.BytesIO(text.encode())

    def read_bytes(self) -> bytes:
        return self._parts[self._path].encode()

    def read_text(self, encoding=None) -> str:
        return self._parts[self._path]


class Folder(TraversableResources):
    def __init__(self, part: Part) -> None:
        self._part = part

    def files(self) -> Part:
        return self._part


class Parts(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports colltune's modules from the parts of this file, whatever else is installed."""

    def __init__(self, parts: dict[str, str]) -> None:
        self._parts = parts

    def _path(self, module: str) -> str | None:
        path = module.replace(".", "/")
        return next((name for name in (f"{path}/__init__.py", f"{path}.py") if name in self._parts), None)

    def find_spec(self, module, path=None, target=None):
        if module.partition(".")[0] != "colltune":
            return None
        if self._path(module) is None:
            raise ModuleNotFoundError(f"colltune-lint has no {module}", name=module)
        return importlib.util.spec_from_loader(module, self, origin=f"{__file__}:{self._path(module)}")

    def is_package(self, module: str) -> bool:
        return str(self._path(module)).endswith("/__init__.py")

    def get_source(self, module: str) -> str:
        return self._parts[str(self._path(module))]

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.get_source(module.__name__), module.__spec__.origin, "exec"), module.__dict__)

    def get_resource_reader(self, module: str) -> Folder:
        return Folder(Part(self._parts, module.replace(".", "/")))


def main() -> None:
    """As `colltune lint` on the same files, which may be no directory here."""
    parser = argparse.ArgumentParser(
        prog="colltune-lint",
        description="Find what would abort, hang or be ignored in files of MPICH or Open MPI."
        " Exit code 1 if there are errors.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="selection files of one library")
    parser.add_argument(
        "--mpi-version", required=True, help="of the MPI that is to read them, such as 5.0.2; not looked at for UCC"
    )
    parser.add_argument("--version", action="version", version=f"colltune-lint {VERSION}")
    options = parser.parse_args()
    sys.meta_path.insert(0, Parts(read_parts(Path(__file__).read_text(encoding="utf-8"))))
    from colltune.cli.console import degrade_output, echo
    from colltune.core.errors import ColltuneError, InputError
    from colltune.session.lint import lint_selection

    degrade_output()
    try:
        for folder in filter(Path.is_dir, options.files):
            raise InputError(f"{folder} is a directory", "Name the selection files in it")
        linted = lint_selection(options.files, {}, mpi_version=options.mpi_version)
    except ColltuneError as error:
        echo(f"colltune-lint: {error}", err=True)
        sys.exit(error.exit_code)
    if linted.note:
        echo(f"note: {linted.note}")
    echo(str(linted))
    sys.exit(1 if linted.errors else 0)


if __name__ == "__main__":
    main()
