"""Tunes where the options say: opens this job's MPI, and holds the directory meanwhile.

What `colltune tune` and the Python API do.
"""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.alltoallv.matrices import alltoallv_share
from colltune.bench.contract import Bench
from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.stop import StopRequest
from colltune.mpi.detect import ask_flux
from colltune.mpi.job import find_job
from colltune.profile.advice import by_name_text, tunable_by_name
from colltune.profile.application_profile import side_by_side
from colltune.profile.extrapolate import extrapolate
from colltune.prove.in_run.application_trial import require_command
from colltune.session.own_settings import settings_line
from colltune.session.tuning.check_application import check_with_application
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult, require_writable
from colltune.session.tuning.payoff import Payoff, for_application, machine_like, payoff_of, require_profiled_mpi
from colltune.session.tuning.tune import tune
from colltune.store.lock import locked

_WORTH_A_NOTE = 0.01  # of the time of a run


@dataclass(frozen=True)
class Finished:
    """``payoff``: what the tuning saves the application, where it was for one and was not cut off."""

    result: TuneResult
    payoff: Payoff | None = None


def tune_here(
    options: TuneOptions,
    out: Path,
    listener: Listener | None = None,
    stop: StopRequest | None = None,
    began_s: float | None = None,
    bench: Bench | None = None,
) -> Finished:
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
        return Finished(tune(bench, options, out, listener, stop))


def _tune_job(options: TuneOptions, out: Path, listener: Listener, stop: StopRequest, began_s: float) -> Finished:
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
    if obstacles := bench.backend.obstacles(os.environ):
        listener.note(f"warning: its files would not decide all calls: {'; '.join(obstacles)}")
    left_out = {name: None for name in os.environ if name not in bench.process_environment}
    of_mpich = options.collectives if bench.environment.mpi == "mpich" else ()
    if met := settings_line(os.environ, of_mpich, left_out):
        listener.note(f"warning: {met}")
    result = tune(bench, options, out, listener, stop, began_s)
    if options.check and application is not None and not result.outcome.interrupted:
        result = check_with_application(bench, result, application, options, out, listener, stop)
    if options.stakes is None or result.outcome.interrupted:
        return Finished(result)
    return Finished(result, payoff_of(result, options.stakes, bench.nodes * bench.ppn))
