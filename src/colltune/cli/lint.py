"""`colltune lint`: what is wrong with a selection file, before a job finds out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.console import echo
from colltune.cli.options import Mpiexec

if TYPE_CHECKING:
    from colltune.emit.lint_check import Check
    from colltune.mpi.installation import Installation

_NAMES = {"mpich": "MPICH", "openmpi": "Open MPI", "ucc": "UCC"}


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Selection files of MPICH (JSON), files of rules for Open MPI's coll/tuned, or a ucc.conf, of any"
            " origin; or directories that `colltune tune` wrote.",
            show_default=False,
        ),
    ],
    mpi_version: Annotated[
        str | None,
        typer.Option(help="Version of the MPI that is to read them, such as 5.0.2. Default: the one found here."),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Write a guarded copy beside each file with findings, as NAME.fixed.json.")
    ] = False,
    mpiexec: Mpiexec = None,
) -> None:
    """Find what would abort, hang or be ignored in files of MPICH, Open MPI or UCC. Exit code 1 if there are errors."""
    from colltune.catalog import load

    contents = {str(path): _read(path) for given in files for path in _files_of(given)}
    library = _library_of(contents)
    installation = None
    if library == "ucc":
        _lint_ucc(contents, fix=fix)
        return
    if mpi_version is None or (fix and library == "mpich"):
        installation = _find(library, mpiexec)
    version = mpi_version or (installation.version if installation else "")
    catalogue = load(library, version)
    if catalogue.warning:
        echo(f"note: {catalogue.warning}")
    findings = _findings(library, contents, version, installation)
    errors = _show(findings, contents, f"{_NAMES[library]} {version}")
    if fix:
        at_fault = {name: contents[name] for name in dict.fromkeys(check.file for check in findings)}
        if library == "openmpi":
            _fix_rules(at_fault, version)
        elif installation is not None:
            _fix(at_fault, version, installation)
    if errors:
        raise typer.Exit(1)


def _show(findings: list[Check], contents: dict[str, bytes], reader: str) -> int:
    """Prints ``findings`` and how many there are, and returns the number of errors."""
    from colltune.core.units import format_count
    from colltune.emit.lint_check import Severity, format_check

    for check in findings:
        echo(format_check(check))
    errors = sum(check.severity is Severity.ERROR for check in findings)
    counted = f"{format_count(errors, 'error')}, {format_count(len(findings) - errors, 'warning')}"
    echo(f"{format_count(len(contents), 'file')} for {reader}: {counted}")
    return errors


def _lint_ucc(contents: dict[str, bytes], *, fix: bool) -> None:
    from colltune.core.errors import InputError
    from colltune.emit.lint_ucc import lint_ucc_files

    if fix:
        raise InputError(f"{next(iter(contents))} is for UCC, of whose files --fix makes no copy", "Correct it by hand")
    if _show(lint_ucc_files(contents), contents, "UCC"):
        raise typer.Exit(1)


def _files_of(given: Path) -> list[Path]:
    """``given``; of a tuning directory, the selection files in it. Raises InputError for any other directory."""
    from colltune.core.errors import InputError

    if not given.is_dir():
        return [given]
    from colltune.store.tuning import MANIFEST, load_tuning

    if not (given / MANIFEST).is_file():
        raise InputError(f"{given} is a directory and holds no tuning", "Name its selection files, or a tuning")
    tuning = load_tuning(given)
    found = [given / name for name in tuning.files if Path(name).parts[0] == tuning.environment.mpi]
    if not found:
        raise InputError(
            f"{given} holds no selection file: the library's own choice stands everywhere", "There is nothing to lint"
        )
    return found


def _library_of(contents: dict[str, bytes]) -> str:
    """The library that reads the files, by how they begin: "mpich" where that says nothing."""
    from colltune.core.errors import InputError
    from colltune.emit.lint_openmpi import is_rules_file
    from colltune.emit.lint_openmpi_json import is_rules_json
    from colltune.emit.lint_ucc import is_ucc_conf

    def library(data: bytes) -> str:
        if is_ucc_conf(data):
            return "ucc"
        return "openmpi" if is_rules_file(data) or is_rules_json(data) else "mpich"

    found = {name: library(data) for name, data in contents.items()}
    if len(set(found.values())) > 1:
        lists = "; ".join(f"{name} is for {_NAMES[library]}" for name, library in found.items())
        raise InputError(f"the files are for two libraries: {lists}", "Lint them one library at a time")
    return next(iter(found.values()))


def _findings(library: str, contents: dict[str, bytes], version: str, installation: Installation | None) -> list[Check]:
    from colltune.catalog import load
    from colltune.emit.lint import lint_files
    from colltune.emit.lint_named import is_named_file, lint_named_files
    from colltune.emit.lint_openmpi import lint_rules_files
    from colltune.emit.lint_openmpi_json import is_rules_json, lint_rules_json
    from colltune.emit.mpich_named import holds_named_trees

    catalogue = load(library, version)
    if library == "mpich" and installation is not None and holds_named_trees(installation.libmpi):
        # Its version does not tell: builds of the redesign call themselves as the release before it.
        return lint_named_files(contents, None)
    if library == "mpich":
        named = {name: data for name, data in contents.items() if is_named_file(data)}
        others = {name: data for name, data in contents.items() if name not in named}
        return [*lint_files(others, version, catalogue), *lint_named_files(named, version)]
    of_json = {name: data for name, data in contents.items() if is_rules_json(data)}
    classic = {name: data for name, data in contents.items() if name not in of_json}
    return [*lint_rules_files(classic, version, catalogue), *lint_rules_json(of_json, version, catalogue)]


def _fix(contents: dict[str, bytes], version: str, installation: Installation) -> None:
    from colltune.catalog import load
    from colltune.core.errors import InputError
    from colltune.emit.lint_fix import fix_file
    from colltune.emit.lint_named import is_named_file
    from colltune.emit.mpich_defaults import cut_default_trees

    catalogue = load("mpich", version)
    if named := next((name for name, data in contents.items() if is_named_file(data)), None):
        raise InputError(f"{named} has named trees, of which --fix makes no copy", "Correct it as the findings say")
    if catalogue.version != load("mpich", installation.version).version:
        raise InputError(
            f"--fix puts in rules of the library itself, and {installation.libmpi} is MPICH {installation.version}",
            f"Give the mpiexec of an MPICH {catalogue.version} by --mpiexec",
        )
    defaults = cut_default_trees(installation.libmpi)
    for name, data in contents.items():
        _write_fixed(name, ".fixed.json", fix_file(data, version, catalogue, defaults))


def _fix_rules(contents: dict[str, bytes], version: str) -> None:
    from colltune.catalog import load
    from colltune.core.errors import InputError
    from colltune.emit.lint_openmpi import fix_rules
    from colltune.emit.lint_openmpi_json import is_rules_json
    from colltune.emit.openmpi_reader import ReadError

    for name, data in contents.items():
        if is_rules_json(data):
            raise InputError(f"{name} is JSON, of which --fix makes no copy", "Correct it by hand, as the findings say")
        try:
            fixed = fix_rules(data, name, version, load("openmpi", version))
        except ReadError as error:
            raise InputError(
                f"{name}:{error.check.line}: {error.check.what}, so what was meant cannot be known",
                f"Mend that by hand: {error.check.fix}",
            ) from None
        _write_fixed(name, ".fixed.conf", fixed)


def _write_fixed(name: str, ending: str, data: bytes) -> None:
    from colltune.core.errors import InputError

    path = Path(name).with_suffix(ending)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Make room there") from error
    typer.echo(f"{name}: a guarded copy is {path}")


def _find(library: str, mpiexec: str | None) -> Installation:
    from colltune.core.errors import InputError
    from colltune.mpi.detect import find_mpi

    python_bin = Path(sys.executable).parent if sys.prefix != sys.base_prefix else None
    found = find_mpi(mpiexec, os.environ, python_bin=python_bin)
    if found.library.value != library:
        raise InputError(
            f"{found.mpiexec} is {found.library} {found.version}, and the files are for {_NAMES[library]}",
            f"Give --mpi-version, or an {_NAMES[library]}'s --mpiexec",
        )
    return found


def _read(path: Path) -> bytes:
    from colltune.core.errors import InputError

    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "Name a selection file") from error
