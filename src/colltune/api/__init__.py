"""The Python interface: what the command line does, from a script or a notebook.

    import colltune

    tuned = colltune.tune(["bcast", "allreduce"], out="tuned", budget="2m")
    print(tuned.explain("allreduce", "64KiB"))
    tuned.samples()           # a pandas frame of every measurement
    tuned.run(["mpiexec", "-n", "4", "./app"])

Everything raises ColltuneError with what is wrong and what to do next. pandas is needed for the frames alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from colltune.api.tuned import Tuned as Tuned
from colltune.api.tuned import load as load
from colltune.core.units import parse_duration, parse_size
from colltune.session.application.auto_run import ready_auto
from colltune.session.application.run_application import RunOptions, RunOutcome, ready_run
from colltune.session.arguments import (
    MAX_SIZE,
    MachineArguments,
    PathLike,
    RunArguments,
    TuneArguments,
    machine_options,
    names_of,
    paths_of,
    refuse_with_alltoallv,
    signature_of,
)
from colltune.session.tuning.options import Listener, TuneOptions

if TYPE_CHECKING:
    from colltune.alltoallv.tune_table import AlltoallvResult
    from colltune.session.application.measure_run import ProfiledRun
    from colltune.session.compare import Verification
    from colltune.session.doctor import Diagnosis
    from colltune.session.lint import Linted
    from colltune.session.plan import Costs


def tune(
    collectives: str | Sequence[str] = (),
    out: PathLike = "tuned",
    *,
    listener: Listener | None = None,
    **arguments: Unpack[TuneArguments],
) -> Tuned:
    """Measures, decides, proves and writes, as `colltune tune` does; the options mean the same.

    ``budget`` and ``runtime`` may be numbers of seconds, sizes numbers of bytes. ``collectives`` may be left out where
    a ``profile`` says what to tune. ``listener`` hears of the progress. Raises ColltuneError; what was measured by then
    is kept, and ``resume`` goes on.
    """
    options = TuneOptions.of(names_of(collectives), arguments)
    from colltune.session.tuning.tune_here import tune_here

    tune_here(options, Path(out), listener)
    return load(out)


setattr(tune, "__signature__", signature_of(tune, TuneArguments))  # noqa: B010 - what help() and notebooks show


def tune_alltoallv(
    out: PathLike = "tuned",
    *,
    counts: PathLike | Sequence[PathLike] = (),
    listener: Listener | None = None,
    **arguments: Unpack[TuneArguments],
) -> AlltoallvResult:
    """Chooses among our own algorithms for MPI_Alltoallv, as `colltune tune alltoallv` does; the table is in ``out``.

    ``counts``: matrices of the bytes that each rank sends to each, as files. `run` takes ``out`` as ``alltoallv``, and
    `tuned_alltoallv` uses it by name. Raises ColltuneError, also for arguments that say nothing for MPI_Alltoallv.
    """
    from colltune.session.tuning.tune_alltoallv import tune_alltoallv_here

    refuse_with_alltoallv(arguments.keys())
    return tune_alltoallv_here(arguments, Path(out), listener, counts=paths_of(counts))


def predict(
    collectives: str | Sequence[str] = (),
    out: PathLike = "tuned",
    *,
    model: PathLike | None = None,
    hardware: PathLike | None = None,
    max_size: str | int = MAX_SIZE,
    risk: float = 0.15,
    thread_level: str = "single",
    **where: Unpack[MachineArguments],
) -> Tuned:
    """A tuning without measuring, from other clusters, as `colltune predict` does. Nothing of it is proven.

    What was measured in ``out`` stays. ``hardware``: the record of a compute node (`colltune doctor --record`). No rule
    loses more than 3% against the default with a predicted probability above ``risk``.
    """
    from colltune.session.predict import predict_here

    predict_here(
        names_of(collectives),
        Path(out),
        machine_options(where, thread_level),
        hardware=None if hardware is None else Path(hardware),
        model=None if model is None else Path(model),
        largest_bytes=parse_size(max_size),
        risk=risk,
    )
    return load(out)


def plan(
    collectives: str | Sequence[str] = (),
    *,
    calibrated_by: Tuned | PathLike | None = None,
    launch: str | float | None = None,
    budgets: Sequence[str | float] = (),
    min_size: str | int = "1",
    max_size: str | int = MAX_SIZE,
    thread_level: str = "single",
    **machine: Unpack[MachineArguments],
) -> Costs:
    """How long tuning ``nodes`` x ``ppn`` ranks takes and what budgets buy there, as `colltune plan` says.

    ``calibrated_by``: a tuning whose measurements tell what takes how long; None measures on this job. ``launch``: what
    a launch takes there. Nothing is written.
    """
    from colltune.session.plan import BUDGETS_S, plan_here

    tuned = calibrated_by.directory if isinstance(calibrated_by, Tuned) else calibrated_by
    return plan_here(
        names_of(collectives),
        machine_options(machine, thread_level),
        tuned=None if tuned is None else Path(tuned),
        smallest_bytes=parse_size(min_size),
        largest_bytes=parse_size(max_size),
        budgets_s=[parse_duration(budget) for budget in budgets] or BUDGETS_S,
        launch_s=None if launch is None else parse_duration(launch),
    )


def profile(command: Sequence[str], out: PathLike = "app.json", *, mpiexec: str | None = None) -> ProfiledRun:
    """Runs an MPI program and notes its collective calls, as `colltune profile` does; the profile is also in ``out``.

    ``tune(profile=out)`` tunes what it calls. ``mpiexec``: of the program's MPI, where the command does not start with
    it.
    """
    from colltune.session.application.measure_run import profile_run

    return profile_run(command, Path(out), os.environ, mpiexec)


def run(
    tuned: Tuned | PathLike,
    command: Sequence[str],
    *,
    listener: Callable[[str], None] = lambda _text: None,
    **arguments: Unpack[RunArguments],
) -> RunOutcome:
    """Runs an MPI program with a tuning in force, as `colltune run` does, and waits for its end.

    ``share``: with ``measure``, the share of its calls that run by default, in percent, 1 to 50. ``risk``: with
    ``auto``, what trying choices that are not proven may cost of the run's time, in percent. ``via``: file or live.
    ``listener`` hears, a sentence each, what is unsure before the start, and what was found at the end. Raises
    InputError where the command would use another build of the MPI than the one that was tuned.
    """
    directory = tuned.directory if isinstance(tuned, Tuned) else Path(tuned)
    options = RunOptions.of(arguments)
    ready = ready_auto if options.auto else ready_run
    return ready(directory, command, options, os.environ, listener).run(listener)


setattr(run, "__signature__", signature_of(run, RunArguments))  # noqa: B010 - as of `tune`


def lint(files: PathLike | Sequence[PathLike], *, mpi_version: str | None = None, mpiexec: str | None = None) -> Linted:
    """Finds what would abort, hang or be ignored in selection files or in tuning directories, as `colltune lint` does.

    ``mpi_version``: of the MPI that is to read them; None is the one found here. Raises InputError for files that
    cannot be read.
    """
    from colltune.session.lint import lint_selection

    return lint_selection(paths_of(files), os.environ, mpi_version=mpi_version, mpiexec=mpiexec)


def doctor(*, thread_level: str = "single", **machine: Unpack[MachineArguments]) -> Diagnosis:
    """Which MPI, launcher and job are here, and what can be tuned, as `colltune doctor` says; starts one launch.

    Raises InputError where something is missing, and LaunchError where the job cannot be started.
    """
    from colltune.session.doctor import diagnose

    return diagnose(machine_options(machine, thread_level), os.environ)


def compare(
    a: PathLike,
    b: PathLike,
    collectives: str | Sequence[str] = (),
    *,
    mpiexec_a: str | None = None,
    mpiexec_b: str | None = None,
    min_size: str | int = "1",
    max_size: str | int = MAX_SIZE,
    budget: str | float = "5m",
    seed: int = 1,
    thread_level: str = "single",
    note: Callable[[str], None] = lambda _text: None,
    **machine: Unpack[MachineArguments],
) -> Verification:
    """Compares settings, files, tunings or builds of an MPI, as `colltune compare` does; ``slower``: where B loses."""
    from colltune.session import compare as comparing

    return comparing.compare(
        os.fspath(a),
        os.fspath(b),
        machine_options(machine, thread_level),
        builds=(mpiexec_a, mpiexec_b),
        collectives=names_of(collectives),
        sizes=(parse_size(min_size), parse_size(max_size)),
        budget_s=parse_duration(budget),
        seed=seed,
        note=note,
    )


def guidelines(
    *,
    min_size: str | int = "4",
    max_size: str | int = "256KiB",
    budget: str | float = "5m",
    seed: int = 1,
    thread_level: str = "single",
    note: Callable[[str], None] = lambda _text: None,
    **machine: Unpack[MachineArguments],
) -> Verification:
    """Which calls take longer than others that do the same (``slower``), as `colltune guidelines` finds them."""
    from colltune.session.compare import violations_of
    from colltune.session.sides import NOTHING, NamedSide, open_sides

    nothing, where = NamedSide(NOTHING), machine_options(machine, thread_level)
    side, _ = open_sides(nothing, nothing, where, os.environ, note=note)
    return violations_of(side, (parse_size(min_size), parse_size(max_size)), parse_duration(budget), seed, note)
