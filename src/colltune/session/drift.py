"""Measures the rules of a tuning again, or checks its results on the real MPI: `verify --quick` and `--results`."""

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.bench.workbench import MachineOptions, open_tuned_workbench, open_workbench
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import Environment
from colltune.core.switchback import Standing
from colltune.deploy.applied import put_in_force
from colltune.deploy.faults import require_sound
from colltune.deploy.live_selector import in_force_via, require_way
from colltune.prove.drift import TuningDrift
from colltune.prove.drift import drift as look_again
from colltune.prove.in_run.in_application import standings
from colltune.prove.replay.conformance import ConformanceResult
from colltune.prove.replay.on_workbench import replay
from colltune.store.applications import ApplicationRun, application_runs
from colltune.store.tuning import MANIFEST, load_deployable

# Of the calls of a collective, the part that may be of kinds of which the application is not sure.
_UNSURE_SHARE = 0.1


def ask_applications(directory: Path, machine: MachineOptions) -> list[Standing] | None:
    """What runs of the application with `--measure` since the tuning say of its rules; None where they do not answer.

    They do where they say of every collective with a rule that it is faster, or slower, in nine of ten of its calls;
    where they ran after this node was started, since a new kernel or driver is what one asks about; and where the MPI
    is the one that was tuned, which nobody asks about by giving another ``machine``.
    """
    if machine != MachineOptions():
        return None
    tuning = load_deployable(directory)
    try:
        put_in_force(directory, tuning, os.environ).mpi.check_here()
    except InputError:
        return None  # another MPI, or another build: all that was measured is of the old one
    in_force = {name for name, rules in tuning.rule_sets.items() if rules.departs}
    non_default = in_force | {name for name, rules in (tuning.live or {}).items() if rules.departs}
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return answer_of(runs_since(directory, booted_s), non_default)


def runs_since(directory: Path, booted_s: float) -> list[ApplicationRun]:
    """The runs since the tuning was made and since ``booted_s`` (seconds since the epoch)."""
    since_s = max((directory / MANIFEST).stat().st_mtime, booted_s)
    runs = application_runs(directory, since=time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(since_s)))
    return [run.proven_alone for run in runs]


def answer_of(runs: Sequence[ApplicationRun], non_default: Collection[str]) -> list[Standing] | None:
    """What ``runs`` say of the collectives ``non_default``; all their calls count, compared or not."""
    judged = standings(runs)
    cells = [cell for run in runs for job in run.jobs for cell in job.cells]
    for name in non_default:
        calls = sum(cell.tuned_calls + cell.default_calls for cell in cells if cell.collective == name)
        sure = sum(s.calls for s in judged if s.collective == name and s.verdict is not SpeedVerdict.OPEN)
        if not sure or sure < (1.0 - _UNSURE_SHARE) * calls:
            return None
    return judged if non_default else None


@dataclass(frozen=True)
class DriftReport:
    """The environment of the tuning (``there``), the present one, and the speed-ups of the rules measured again."""

    there: Environment
    here: Environment
    found: TuningDrift
    disturbance: Disturbance = field(default_factory=Disturbance)

    @property
    def lost(self) -> list[str]:
        """The collectives with a rule that certainly does not pay any more; none while other programs disturb."""
        if self.disturbance.is_busy:
            return []
        return [name for name, state in self.found.verdicts.items() if not state.holds]

    @property
    def same_place(self) -> bool:
        """Whether MPI and machine are those of the tuning."""
        here, there = self.here, self.there
        return (here.mpi_build, here.machine) == (there.mpi_build, there.machine)


def drift(
    directory: Path,
    machine: MachineOptions,
    *,
    budget_s: float = 100.0,
    seed: int = 1,
    begun: Callable[[Sequence[str]], None] = lambda _differences: None,
) -> DriftReport:
    """Compares rules with the library's default in fresh launches, within ``budget_s``.

    The MPI may be another version than the one that was tuned, so MPI, nodes and ranks per node are those of
    ``machine``, else of the tuning. ``begun`` hears what differs before anything is measured. Raises ColltuneError.
    """
    tuning = load_deployable(directory)
    there = tuning.environment
    nodes, ppn = machine.nodes or there.nodes, machine.ppn or there.ppn
    bench = open_workbench(replace(machine, nodes=nodes, ppn=ppn, thread_level=there.thread_level), os.environ)
    here = bench.environment
    if here.mpi != there.mpi:
        raise InputError(
            f"{directory} was tuned for {there.mpi} {there.mpi_version}, and here is {here.mpi} {here.mpi_version}",
            f"Give the tuned one by --mpiexec{f' ({there.mpiexec})' if there.mpiexec else ''}",
        )
    begun([f"{name} was {then} and is {now}" for name, then, now in there.differences(here)])
    measured = look_again(bench, tuning, directory, budget_s, seed)
    return DriftReport(there, here, measured, bench.watch.tally.total(names=bench.watch.nodes))


def check(directory: Path, machine: MachineOptions, *, short: bool = False, via: str = "file") -> ConformanceResult:
    """Runs every collective in every form under the tuning, and compares each result byte for byte.

    ``short``: one case of each kind. Raises ColltuneError.
    """
    require_way(via)
    tuning = load_deployable(directory)
    require_sound(tuning, str(directory))
    bench = open_tuned_workbench(machine, tuning.environment, os.environ)
    tuning = in_force_via(tuning, via, os.environ, lambda: bench.installation)
    return replay(bench, tuning.rule_sets, tuning.variables_at(directory), short=short)
