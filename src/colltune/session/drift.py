"""Measures the rules of a tuning again, after an upgrade for example. What `colltune drift` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.errors import InputError
from colltune.core.sample import Environment
from colltune.search.reuse import Drift
from colltune.search.reuse import drift as look_again
from colltune.store.tuning import load_deployable


@dataclass(frozen=True)
class DriftReport:
    """The environment of the tuning (``there``), the present one, and the speed-ups of the rules measured again."""

    there: Environment
    here: Environment
    found: Drift

    @property
    def lost(self) -> list[str]:
        """The collectives with a rule that certainly does not pay any more."""
        return [name for name, why in self.found.verdicts.items() if why]

    @property
    def same_place(self) -> bool:
        """Whether MPI and machine are those of the tuning."""
        here, there = self.here, self.there
        return (here.mpi_build, here.machine) == (there.mpi_build, there.machine)


def differences(there: Environment, here: Environment) -> list[str]:
    """The differences of the environment since the tuning, a sentence each."""
    pairs = [
        (one.name, getattr(there, one.name), getattr(here, one.name)) for one in fields(Environment) if one.compare
    ]
    return [f"{name} was {str(then)[:40]} and is {str(now)[:40]}" for name, then, now in pairs if then != now]


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
    like = MachineOptions(
        machine.mpiexec or there.facts.get("mpiexec"),
        machine.host_file,
        machine.nodes or there.nodes,
        machine.ppn or there.ppn,
        there.thread_level,
    )
    bench = open_workbench(like, os.environ)
    here = bench.environment
    if here.mpi != there.mpi:
        raise InputError(f"{directory} was tuned for {there.mpi}, and here is {here.mpi}", "Give the other's --mpiexec")
    begun(differences(there, here))
    return DriftReport(there, here, look_again(bench, tuning, directory, budget_s, seed))
