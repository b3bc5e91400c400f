"""`colltune verify`: is it faster, and is it slower anywhere?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, Tuned, Via

if TYPE_CHECKING:
    from colltune.verify.verdict import Comparison


def verify(
    tuned: Tuned,
    launches: Annotated[int, typer.Option(min=2, help="Launches with the file, and as many without it.")] = 8,
    osu: Annotated[
        Path | None, typer.Option("--with", help="Directory of an OSU Micro-Benchmarks build to measure with.")
    ] = None,
    convention: Annotated[
        str, typer.Option(help="What a time is: slowest-rank, or osu (mean over ranks, MPI_Barrier between calls).")
    ] = "slowest-rank",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    via: Via = "file",
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
) -> None:
    """Compare the default with the tuned file, also at sizes that were not tuned. Exit code 1 if any is slower."""
    from colltune.cli.console import make_console
    from colltune.core.errors import InputError
    from colltune.liveselect import in_force_via
    from colltune.measure.contract import Convention
    from colltune.report.tables import comparisons_table
    from colltune.store.tuning import load_deployable, tuned_sizes
    from colltune.verification import EFFORT, scenarios_to_verify
    from colltune.verification import verify as run_verify
    from colltune.verify.osu import OsuBenchmarks
    from colltune.verify.verdict import Verdict
    from colltune.workbench import MachineOptions, open_tuned_workbench

    if convention not in list(Convention):
        raise InputError(f"there is no convention {convention!r}", f"Use {' or '.join(Convention)}")
    tuning = in_force_via(load_deployable(tuned), via, os.environ)
    bench = open_tuned_workbench(MachineOptions(mpiexec, hostfile, nodes, ppn), tuning.environment, os.environ)
    programs = None if osu is None else OsuBenchmarks.find(osu, list(tuning.rule_sets))
    scenarios = scenarios_to_verify(tuning, tuned_sizes(tuned), bench)
    console = make_console()
    comparisons = run_verify(
        bench,
        tuning,
        tuned,
        scenarios,
        launches,
        seed,
        osu=programs,
        effort=replace(EFFORT, convention=Convention(convention)),
        note=lambda note: console.print(note),
    )
    console.print(comparisons_table(comparisons))
    for line in _summary(comparisons, launches):
        console.print(line)
    counts = {verdict: sum(1 for c in comparisons if c.verdict is verdict) for verdict in Verdict}
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + ".")
    raise typer.Exit(1 if counts[Verdict.SLOWER] else 0)


def _summary(comparisons: Sequence[Comparison], launches: int) -> Iterator[str]:
    """How much faster it is, and what so few launches could not tell."""
    from statistics import geometric_mean

    from colltune.core.choice import DEFAULT
    from colltune.verify.verdict import fewest_launches, typical_reach

    if not comparisons:
        return
    ruled = [c.ratio for c in comparisons if c.choice != DEFAULT]
    with_rules = f", {geometric_mean(ruled):.3f} where a rule holds" if ruled else ""
    mean = geometric_mean([c.ratio for c in comparisons])
    yield f"Speed-up, geometric mean: {mean:.3f} over {len(comparisons)} points{with_rules}."
    if launches < fewest_launches(len(comparisons)):
        reach = typical_reach(comparisons)
        sees = "no difference" if reach > 10.0 else f"at a typical point only a difference of a factor of {reach:.2f}"
        yield (
            f"{launches} launches of each kind are too few for exact intervals of {len(comparisons)} points"
            f" ({fewest_launches(len(comparisons))} would do): they are Student's, and tell {sees} from noise."
        )
