"""Collects where the options say: opens this job's MPI or a simulated cluster. What `colltune study collect` does."""

import os
from dataclasses import replace
from pathlib import Path

from colltune.bench.simulated_cluster import Simulation, open_simulation
from colltune.bench.workbench import MachineOptions, Workbench, check_collectives, open_workbench
from colltune.core.collective_names import parse_collectives
from colltune.core.stop import StopRequest
from colltune.measure.contract import Effort
from colltune.session.arguments import refuse_with_simulate
from colltune.session.collect import Collected, CollectOptions, collect, live_subject, simulated_subject
from colltune.session.tuning.options import Listener, require_writable
from colltune.store.table import require_format


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
        refuse_with_simulate(machine)
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
