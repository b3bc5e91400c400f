"""Plans a tuning where the options say: by an earlier tuning, or by a launch on this job. What `colltune plan` does."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from colltune.bench.backends import recall_backend
from colltune.bench.workbench import MachineOptions, check_collectives, open_workbench
from colltune.core.collective_names import parse_collectives
from colltune.core.errors import InputError
from colltune.core.units import require_sizes
from colltune.session.arguments import LARGEST_BYTES
from colltune.session.plan import BUDGETS_S, Costs, calibrate, calibration_of, costs_of
from colltune.store.tuning import load_tuning


def plan_here(
    collectives: Sequence[str],
    machine: MachineOptions,
    *,
    tuned: Path | None = None,
    smallest_bytes: int = 1,
    largest_bytes: int = LARGEST_BYTES,
    budgets_s: Sequence[float] = BUDGETS_S,
    launch_s: float | None = None,
) -> Costs:
    """What a tuning takes on the nodes and ranks per node of ``machine``, which may be more than this job has.

    Calibrated by the measurements of the tuning in ``tuned``, else by one launch on the nodes of this job. No name is
    all collectives. Raises ColltuneError.
    """
    if collectives:
        parse_collectives(collectives)
    require_sizes(smallest_bytes, largest_bytes)
    if any(budget_s <= 0.0 for budget_s in budgets_s):
        raise InputError("the budget must not be empty", "Give for example --budget 5m")
    if tuned is not None:
        calibration, environment = calibration_of(tuned), load_tuning(tuned).environment
        catalogue, thread_level = recall_backend(environment).catalogue, environment.thread_level
    else:
        bench = open_workbench(replace(machine, nodes=None, ppn=None), os.environ)
        names, _ = check_collectives(collectives or bench.catalogue.entries, bench.catalogue)
        calibration = calibrate(bench, names)
        catalogue, thread_level = bench.catalogue, bench.thread_level
    shape = (machine.nodes or calibration.nodes, machine.ppn or calibration.ppn)
    if shape[0] * shape[1] < 2:
        raise InputError("a job of one rank has nothing to tune", "Give --ppn 2 or more")
    return costs_of(
        catalogue,
        calibration,
        collectives,
        shape,
        thread_level=thread_level,
        smallest_bytes=smallest_bytes,
        largest_bytes=largest_bytes,
        budgets_s=budgets_s,
        launch_s=launch_s,
    )
