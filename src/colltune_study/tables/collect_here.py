"""Collects where the options say: opens this job's MPI or a simulated cluster. What `colltune study collect` does."""

import os
from dataclasses import replace
from pathlib import Path

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.catalog.read import check_collectives
from colltune.core.errors import InputError
from colltune.core.sample import parse_collectives
from colltune.core.stop import StopRequest
from colltune.measure.contract import Effort
from colltune.session.tuning.options import Listener, require_writable
from colltune_study.simulated.simulated_cluster import Simulation, open_simulation
from colltune_study.tables.collect import Collected, CollectOptions, collect, live_subject, simulated_subject
from colltune_study.tables.table import require_format


def collect_here(
    options: CollectOptions,
    out: Path,
    machine: MachineOptions,
    *,
    cluster: str = "",
    simulate: str = "",
    listener: Listener | None = None,
    stop: StopRequest | None = None,
) -> Collected:
    """Measures ``options.collectives``, or all where none is named, and writes the table ``out``.

    ``cluster``: its name in the table; "" is the scheduler's. Raises ColltuneError.
    """
    listener = listener or Listener()
    parse_collectives(options.collectives)
    require_format(out)
    require_writable(out.parent)
    bench: Workbench | Simulation
    if simulate:
        _refuse_with_simulate(machine)
        # Its times have no noise.
        bench, options = open_simulation(simulate, os.environ), replace(options, effort=Effort(fewest=1))
        subject = simulated_subject(bench, cluster)
    else:
        bench = open_workbench(machine, os.environ)
        subject = live_subject(bench, cluster or os.environ.get("SLURM_CLUSTER_NAME") or bench.environment.machine)
    wanted, nothing = check_collectives(options.collectives or bench.catalogue.entries, bench.catalogue)
    listener.opened(bench)
    for name, reason in nothing.items():
        listener.note(f"{name}: {reason}")
    return collect(subject, replace(options, collectives=wanted), out, listener.progress, stop=stop)


def _refuse_with_simulate(machine: MachineOptions) -> None:
    """Raises InputError for options that say where to run: a simulated cluster runs nowhere."""
    given = {
        "--mpiexec": machine.mpiexec,
        "--hostfile": machine.host_file,
        "--nodes": machine.nodes,
        "--ppn": machine.ppn,
        "--thread-level": machine.thread_level != "single",
    }
    named = [name for name, value in given.items() if value]
    if named:
        raise InputError(f"{', '.join(named)} cannot be used with --simulate", "Write the shape as in dragonfly:64x4")
