"""`colltune lint`: what is wrong with a selection file, before a job finds out."""

import os
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.console import echo
from colltune.cli.options import Mpiexec


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Selection files of MPICH (JSON) or of rules for Open MPI's coll/tuned and coll/han, of any origin; or"
            " directories that `colltune tune` wrote; or descriptions of an MPI (.toml), as COLLTUNE_MPI names.",
            show_default=False,
        ),
    ],
    mpi_version: Annotated[
        str | None,
        typer.Option(help="Version of the MPI that is to read them, such as 5.0.2. Default: the one found here."),
    ] = None,
    mpiexec: Mpiexec = None,
) -> None:
    """Find what would abort, hang or be ignored in files of MPICH or Open MPI. Exit code 1 if there are errors."""
    from colltune.session.lint import lint_selection

    checks = lint_selection(files, os.environ, mpi_version=mpi_version, mpiexec=mpiexec)
    if checks.note:
        echo(f"note: {checks.note}")
    echo(str(checks))
    if checks.errors:
        raise typer.Exit(1)
