"""`colltune lint`: what is wrong with a selection file, before a job finds out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import Mpiexec

if TYPE_CHECKING:
    from colltune.mpi.installation import Installation


def lint(
    files: Annotated[list[Path], typer.Argument(help="Selection files of MPICH, of any origin.", show_default=False)],
    mpi_version: Annotated[
        str | None, typer.Option(help="MPICH version that is to read them, such as 5.0.2. Default: the one found here.")
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Write a guarded copy beside each file with findings, as NAME.fixed.json.")
    ] = False,
    mpiexec: Mpiexec = None,
) -> None:
    """Find what would abort, hang or be ignored in MPICH selection files. Exit code 1 where there are errors."""
    from colltune.catalog import load
    from colltune.emit.lint import lint_files
    from colltune.emit.lint_check import Severity, format_check

    installation = _find_mpich(mpiexec) if fix or mpi_version is None else None
    version = mpi_version or (installation.version if installation else "")
    catalogue = load("mpich", version)
    if catalogue.warning:
        typer.echo(f"note: {catalogue.warning}")
    contents = {str(path): _read(path) for path in files}
    findings = lint_files(contents, version, catalogue)
    for check in findings:
        typer.echo(format_check(check))
    errors = sum(check.severity is Severity.ERROR for check in findings)
    names = "1 file" if len(contents) == 1 else f"{len(contents)} files"
    typer.echo(f"{names} for MPICH {version}: {errors} errors, {len(findings) - errors} warnings")
    if fix and installation is not None:
        _fix({name: contents[name] for name in dict.fromkeys(check.file for check in findings)}, version, installation)
    if errors:
        raise typer.Exit(1)


def _fix(contents: dict[str, bytes], version: str, installation: Installation) -> None:
    from colltune.catalog import load
    from colltune.core.errors import InputError
    from colltune.emit.lint_fix import fix_file
    from colltune.emit.mpich_defaults import cut_default_trees

    catalogue = load("mpich", version)
    if catalogue.version != load("mpich", installation.version).version:
        raise InputError(
            f"--fix puts in rules of the library itself, and {installation.libmpi} is MPICH {installation.version}",
            f"Give the mpiexec of an MPICH {catalogue.version} by --mpiexec",
        )
    defaults = cut_default_trees(installation.libmpi)
    for name, data in contents.items():
        path = Path(name).with_suffix(".fixed.json")
        fixed = fix_file(data, version, catalogue, defaults)
        try:
            path.write_bytes(fixed)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}", "Make room there") from error
        typer.echo(f"{name}: a guarded copy is {path}")


def _find_mpich(mpiexec: str | None) -> Installation:
    from colltune.core.errors import InputError
    from colltune.mpi.detect import find_mpi
    from colltune.mpi.installation import Library

    python_bin = Path(sys.executable).parent if sys.prefix != sys.base_prefix else None
    found = find_mpi(mpiexec, os.environ, python_bin=python_bin)
    if found.library is not Library.MPICH:
        raise InputError(
            f"{found.mpiexec} is {found.library} {found.version}", "Give --mpi-version, or an MPICH's --mpiexec"
        )
    return found


def _read(path: Path) -> bytes:
    from colltune.core.errors import InputError

    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "Name a selection file") from error
