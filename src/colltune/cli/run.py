"""`colltune run`: an application, with the tuned file in force."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from colltune.cli.options import Tuned
from colltune.core.errors import InputError

_LAUNCHERS = frozenset({"mpiexec", "mpiexec.hydra", "mpirun"})
_PROVE = "--prove"


def run(
    tuned: Tuned,
    context: typer.Context,
    prove: Annotated[
        bool,
        typer.Option(_PROVE, help="Say at the end whether the tuning was in force; exit code 3 if nothing proves it."),
    ] = False,
) -> None:
    """Run a command with a tuning in force: colltune run tuned/ -- mpiexec -n 4 ./app.

    --prove stands before the directory, or between it and --. The exit code is the command's. MPICH from 5.0 on says
    itself which files it loaded; of older ones it is seen whether the files are opened on this node.
    """
    from colltune.store.tuning import load_tuning

    prove_after, command = _split(context.args)
    prove = prove or prove_after
    if not command:
        raise InputError("there is no command to run", "Write: colltune run tuned/ -- mpiexec -n 4 ./app")
    tuning = load_tuning(tuned)
    variables = tuning.variables_at(tuned)
    environment = {**os.environ, **variables}
    program = _program(command, tuning.environment.facts, environment)
    _require_same_mpi(program, tuning.environment.mpi, tuning.environment.mpi_version, tuned)
    arguments = [program, *command[1:]]
    if prove:
        from colltune.cli.prove import report, run_and_prove

        mpi = tuning.environment.mpi, tuning.environment.mpi_version
        code, proof = run_and_prove(arguments, environment, variables, mpi)
        raise typer.Exit(report(code, proof, environment, tuning.rule_sets))
    try:
        os.execvpe(program, arguments, environment)
    except OSError as error:
        raise InputError(f"cannot run {program}: {error.strerror}", "Check the command after --") from error


def _split(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """What follows the directory: whether --prove is there, and the command after it and after the first --."""
    prove = bool(arguments) and arguments[0] == _PROVE
    rest = list(arguments[1:] if prove else arguments)
    return prove, rest[1:] if rest[:1] == ["--"] else rest


def _program(command: Sequence[str], facts: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The launcher of the MPI that was tuned stands in for a bare ``mpiexec`` that PATH does not have."""
    name = command[0]
    if name in _LAUNCHERS and shutil.which(name, path=environment.get("PATH", "")) is None:
        beside = Path(facts.get("mpiexec", "")).parent / name
        if beside.is_file():
            return str(beside)
    return name


def _require_same_mpi(program: str, library: str, version: str, tuned: Path) -> None:
    """A selection file of another version can abort the job, so it is never handed to one."""
    if Path(program).name not in _LAUNCHERS:
        return  # srun and scripts do not tell which MPI they start
    from colltune.mpi.detect import identify_launcher

    found, found_version = identify_launcher(program, os.environ)
    if (found, found_version) != (library, version):
        raise InputError(
            f"{tuned} was tuned for {library} {version}, and {shutil.which(program) or program} starts "
            f"{found} {found_version}",
            "Use the mpiexec of the MPI that was tuned, or tune this one",
        )
