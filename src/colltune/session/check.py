"""The conformance check of a tuning on the real MPI. What `colltune verify --results` does."""

import os
from pathlib import Path

from colltune.bench.workbench import MachineOptions, open_tuned_workbench
from colltune.deploy.faults import require_sound
from colltune.deploy.live_selector import in_force_via, require_way
from colltune.prove.replay.conformance import ConformanceResult
from colltune.prove.replay.on_workbench import replay
from colltune.store.tuning import load_deployable


def check(directory: Path, machine: MachineOptions, *, short: bool = False, via: str = "file") -> ConformanceResult:
    """Runs every collective in every form under the tuning, and compares each result byte for byte.

    ``short``: one case of each kind. Raises ColltuneError.
    """
    require_way(via)
    tuning = load_deployable(directory)
    require_sound(tuning, str(directory))
    bench = open_tuned_workbench(machine, tuning.environment, os.environ)
    tuning = in_force_via(tuning, via, os.environ, lambda: bench.installation.mpicc)
    return replay(bench, tuning.rule_sets, tuning.variables_at(directory), short=short)
