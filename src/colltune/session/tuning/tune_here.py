"""Tunes where the options say: opens this job's MPI, and holds the directory meanwhile.

What `colltune tune` and the Python API do; at the end of --check the application itself, with the rules and without.
"""

import os
import time
from dataclasses import replace
from pathlib import Path

from colltune.alltoallv.matrices import alltoallv_share
from colltune.bench.backends import obstacles_of
from colltune.bench.contract import Bench
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.errors import LaunchError
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.mpi.application import application_of
from colltune.mpi.detect import ask_flux
from colltune.mpi.job import find_job
from colltune.profile.advice import by_name_text, tunable_by_name
from colltune.profile.application_profile import Profile, side_by_side
from colltune.profile.extrapolate import extrapolate
from colltune.prove.in_run.application_trial import LOG, Trial, require_command, runs_text, without
from colltune.prove.proof import workplace
from colltune.prove.replay.on_workbench import non_default
from colltune.session.own_settings import settings_line
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult, require_writable
from colltune.session.tuning.payoff import after_check, for_application, machine_like, payoff_of, require_profiled_mpi
from colltune.session.tuning.tune import tune
from colltune.store.applications import RunRecord, begin_run
from colltune.store.lock import locked
from colltune.store.tuning import save_tuning


def check_with_application(
    bench: Workbench,
    result: TuneResult,
    application: Profile,
    options: TuneOptions,
    out: Path,
    listener: Listener,
    stop: StopRequest,
) -> TuneResult:
    """``result`` without the rules with which the application is slower; ``out`` holds the remaining ones.

    A file cannot tell programs apart, so no program gets these rules by one. The live selector keeps them, unless the
    application failed with them, for other programs: the history says of which program they are withdrawn.
    """
    if not non_default(result.tuning.rule_sets):  # the application would run as it does without a tuning
        return result
    listener.stage("running the application with the rules and without")
    started_s, note, command = time.monotonic(), listener.note, application.command
    try:
        with workplace(out) as place, stop.cuts():
            trial = Trial(bench, result.tuning, command, place, out / LOG, options.budget_s, options.seed, note)
            checked = trial.check()
    except LaunchError as error:
        note(f"the application was not compared: without the rules it {error}")
        return result
    except INTERRUPTIONS:
        note("stopped before the application was compared; the rules stand as proven")
        return result
    ran = application_of(command, bench.process_environment)
    lost = {name: runs_text(runs) for name, runs in checked.withdrawn.items()}
    failed = [name for name, runs in checked.withdrawn.items() if runs.failure]
    withdrawn = {**dict.fromkeys(checked.rounds[0].rules, ""), **lost}
    left = without(bench, result.tuning, lost, failed)
    result = after_check(result, checked, left, time.monotonic() - started_s)
    save_tuning(out, result.tuning)
    begin_run(out, RunRecord(result.tuning.environment, (), {}, 0, ran, 0, withdrawn), time.time())
    note(checked.text(str(ran)))
    return result


_WORTH_A_NOTE = 0.01  # of the time of a run


def tune_here(
    options: TuneOptions,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
    began_s: float | None = None,
    bench: Bench | None = None,
) -> TuneResult:
    """Tunes, and leaves the tuning in ``out``. Raises ColltuneError, before MPI starts where that can be.

    ``began_s``: when the command began (of time.monotonic), whose budget this is. ``bench``: where to tune in place of
    this job; its budget is of its own clock.
    """
    began_s = time.monotonic() if began_s is None else began_s
    listener, stop = listener or Listener(), stop or StopRequest()
    require_writable(out)
    with locked(out):
        if bench is None:
            return _tune_job(options, out, listener, stop, began_s)
        listener.opened(bench)
        tuned: TuneResult = tune(bench, options, out, listener, stop)
        return tuned


def _tune_job(options: TuneOptions, out: Path, listener: Listener, stop: StopRequest, began_s: float) -> TuneResult:
    machine, application = options.machine or MachineOptions(), None
    if options.application:
        job = find_job(os.environ, host_file=machine.host_file, flux_resources=ask_flux(os.environ))
        shape = machine.nodes or len(job.nodes), machine.ppn or job.ppn
        application, extrapolated = extrapolate(options.application, *shape)
        if extrapolated:
            listener.note(extrapolated)
        machine = machine_like(application, machine, options.thread_level, job)
    bench = open_workbench(machine, os.environ)
    if application is not None:
        if machine.mpiexec is None:
            require_profiled_mpi(application, bench.installation)
        shape = (bench.nodes, bench.ppn)
        bench = replace(bench, beside=side_by_side(application, bench.ppn))
        if (share := alltoallv_share(application)) >= _WORTH_A_NOTE:
            listener.note(
                f"MPI_Alltoallv takes {share:.1%} of the profiled run and is tuned by itself:"
                " colltune tune alltoallv --profile"
            )
        if called := tunable_by_name(application, bench.catalogue.entries):
            listener.note(f"{by_name_text(called)}: colltune tune {' '.join(called)}")
        options = for_application(options, application, options.runtime_s, bench.catalogue, shape, listener.note)
        if options.check:
            require_command(application.command, bench.installation.mpiexec.parent, bench.process_environment)
    listener.opened(bench)
    if bench.line is not None:
        listener.note(f"every launch is made by: {bench.line}")
    if obstacles := obstacles_of(bench.environment.mpi, os.environ):
        listener.note(f"warning: its files would not decide all calls: {'; '.join(obstacles)}")
    left_out = {name: None for name in os.environ if name not in bench.process_environment}
    of_mpich = options.collectives if bench.environment.mpi == "mpich" else ()
    if met := settings_line(os.environ, of_mpich, left_out):
        listener.note(f"warning: {met}")
    result: TuneResult = tune(bench, options, out, listener, stop, began_s)
    if options.check and application is not None and not result.outcome.interrupted:
        result = check_with_application(bench, result, application, options, out, listener, stop)
    if options.expected_gain is None or result.outcome.interrupted:
        return result
    return replace(result, payoff=payoff_of(result, options.expected_gain, bench.nodes * bench.ppn))
