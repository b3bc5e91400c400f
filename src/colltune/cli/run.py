"""`colltune run`: an application, with the tuned file in force."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from colltune.cli.options import Tuned
from colltune.core.errors import InputError

_LAUNCHERS = frozenset({"mpiexec", "mpiexec.hydra", "mpirun"})


def run(tuned: Tuned, context: typer.Context) -> None:
    """Run a command with a tuning in force: colltune run tuned/ -- mpiexec -n 4 ./app."""
    from colltune.store.tuning import load_tuning

    command = context.args[1:] if context.args[:1] == ["--"] else context.args
    if not command:
        raise InputError("there is no command to run", "Write: colltune run tuned/ -- mpiexec -n 4 ./app")
    tuning = load_tuning(tuned)
    environment = {**os.environ, **tuning.variables_at(tuned)}
    program = _program(command, tuning.environment.facts, environment)
    _require_same_mpi(program, tuning.environment.mpi, tuning.environment.mpi_version, tuned)
    try:
        os.execvpe(program, [program, *command[1:]], environment)
    except OSError as error:
        raise InputError(f"cannot run {program}: {error.strerror}", "Check the command after --") from error


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
