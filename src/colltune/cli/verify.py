"""`colltune verify`: is it faster, and is it slower anywhere?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, Tuned, Via
from colltune.core.units import format_count

if TYPE_CHECKING:
    from colltune.prove.verdict import Comparison, MeanSpeedup

RATIO_TEXT = (
    "ratio of pairs: the median of default over tuned of all pairs of launches. It may differ from that of the two"
    " columns, which are medians each."
)


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
    from colltune.cli.terminal import make_console
    from colltune.report.tables import comparisons_table
    from colltune.session.arguments import machine_options
    from colltune.session.verify import verify as run_verify

    console = make_console()
    found = run_verify(
        tuned,
        machine_options({"mpiexec": mpiexec, "hostfile": hostfile, "nodes": nodes, "ppn": ppn}),
        launches=launches,
        osu=osu,
        convention=convention,
        seed=seed,
        via=via,
        note=lambda note: console.print(note),
    )
    console.print(comparisons_table(found.comparisons))
    for line in _summary(found.comparisons, launches):
        console.print(line)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in found.counts.items()) + ".")
    raise typer.Exit(1 if found.slower else 0)


def _summary(comparisons: Sequence[Comparison], launches: int) -> Iterator[str]:
    """How much faster it is, and what so few launches could not tell."""
    from colltune.core.choice import DEFAULT
    from colltune.prove.verdict import fewest_launches, mean_speedup, typical_reach

    if not comparisons:
        return
    yield RATIO_TEXT
    ruled = [c for c in comparisons if c.choice != DEFAULT]
    for points, where in ((comparisons, ""), (ruled, " where a rule holds")):
        mean = mean_speedup(points)
        if mean is not None:
            yield format_mean(mean, where)
    if launches < fewest_launches(len(comparisons)):
        reach = typical_reach(comparisons)
        sees = "no difference" if reach > 10.0 else f"only a difference of a factor of {reach:.2f} at a typical point"
        yield (
            f"With {launches} launches of each kind {sees} can be told from noise;"
            f" use --launches {fewest_launches(len(comparisons))} for exact intervals of {len(comparisons)} points."
        )


def format_mean(mean: MeanSpeedup, where: str) -> str:
    """``"Speed-up, geometric mean over 40 points: 1.052 (0.990 to 1.113, so not significant)."``"""
    doubt = "" if mean.significant else ", so it is not significant"
    over = format_count(mean.points, "point")
    if math.isinf(mean.high):
        return f"Speed-up, geometric mean over {over}{where}: {mean.ratio:.3f} (launches too few for an interval)."
    return (
        f"Speed-up, geometric mean over {over}{where}: {mean.ratio:.3f}"
        f" (99% interval {mean.low:.3f} to {mean.high:.3f}{doubt})."
    )
