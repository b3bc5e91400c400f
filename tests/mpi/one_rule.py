"""A tuning that is not measured but written: allreduce of up to 4 KiB on 1 x 2 ranks has a rule, and nothing else."""

import os
from collections.abc import Sequence
from pathlib import Path

from jobs import ON_EITHER

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.mpi.installation import Installation
from colltune.store.tuning import save_tuning

RULES = RuleSet(
    "allreduce",
    SizeBasis.MESSAGE,
    (
        Rule(2, 2, 4096, Choice("recursive_doubling")),
        Rule(2, 2, None, DEFAULT),
        Rule(2, None, None, DEFAULT),
        Rule(None, None, None, DEFAULT),
    ),
)


def bench_of(mpi: Installation) -> Workbench:
    """Of 1 x 2 ranks."""
    machine = MachineOptions(mpiexec=str(mpi.mpiexec), nodes=1, ppn=2)
    return open_workbench(machine, {**os.environ, **ON_EITHER})


def write_tuning(directory: Path, mpi: Installation, rule_sets: Sequence[RuleSet] = (RULES,)) -> Path:
    """``directory``, which is the tuning of ``mpi`` then."""
    bench = bench_of(mpi)
    save_tuning(directory, bench.tuning({rules.collective: bench.expressible(rules) for rules in rule_sets}))
    return directory
