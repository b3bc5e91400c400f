"""`colltune verify`: does a tuning hold? Right results, faster, and nowhere slower."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import NO_VERDICT, AsJson, HostFile, Mpiexec, Nodes, Ppn, Tuned, Via
from colltune.core.units import format_count

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions
    from colltune.prove.compare.verdict import Comparison, MeanSpeedup
    from colltune.session.verify import Verification

RATIO_TEXT = (
    "ratio: the median of default over tuned of all pairs of launches. It may differ from that of the two"
    " columns, which are medians each."
)


def verify(
    tuned: Tuned,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do the rules still pay? Each is looked at again, in under two minutes.")
    ] = False,
    results: Annotated[
        bool, typer.Option("--results", help="Are all results right? Every form of every call, byte for byte.")
    ] = False,
    launches: Annotated[int, typer.Option(min=2, help="Launches with the file, and as many without it.")] = 8,
    osu: Annotated[
        Path | None, typer.Option("--with", help="Directory of an OSU Micro-Benchmarks build to measure with.")
    ] = None,
    convention: Annotated[
        str, typer.Option(help="What a time is: slowest-rank, or osu (mean over ranks, MPI_Barrier between calls).")
    ] = "slowest-rank",
    short: Annotated[bool, typer.Option("--short", help="With --results: one case of each kind.")] = False,
    candidates: Annotated[
        bool,
        typer.Option("--candidates", help="With --results: what the proof left open, for `run --explore`."),
    ] = False,
    budget: Annotated[str, typer.Option(help="With --quick: time to spend at most.")] = "100s",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    as_json: AsJson = False,
    via: Via = "file",
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
) -> None:
    """Does a tuning hold? Are results right, and is it faster, and nowhere slower? Exit code 1 if not.

    All results are checked, then the default is compared with the tuned file in new launches, also at sizes that were
    not tuned. --results does the first alone; --quick only asks whether the rules still pay.
    While other programs use the processors nothing is said of speed, and the exit code is 4.
    """
    from colltune.cli.as_json import print_json
    from colltune.cli.verify_quick import check_quickly
    from colltune.cli.verify_results import check_candidates, check_results
    from colltune.core.errors import InputError
    from colltune.core.units import parse_duration
    from colltune.session.arguments import machine_options

    machine = machine_options({"mpiexec": mpiexec, "hostfile": hostfile, "nodes": nodes, "ppn": ppn})
    if as_json and (quick or results or candidates):
        raise InputError("--json tells of the whole question", "Leave out --quick, --results and --candidates")
    if quick and results:
        raise InputError("--quick and --results ask two questions", "Give one of them; neither asks all")
    if candidates:
        check_candidates(tuned, machine)
    elif results:
        raise typer.Exit(0 if check_results(tuned, machine, short=short, via=via) else 1)
    elif quick:
        raise typer.Exit(0 if check_quickly(tuned, machine, parse_duration(budget), seed) else 1)
    else:
        # The outside judge and its convention measure; they say nothing of results.
        right = osu is not None or check_results(tuned, machine, short=True, via=via, err=as_json)
        found = _compared(tuned, machine, launches, osu, convention, seed, via, err=as_json)
        faster = None if found.disturbance.is_busy else not found.slower
        if as_json:
            print_json("verify", _record(found, right))
        else:
            _show(found)
        raise typer.Exit(NO_VERDICT if right and faster is None else 0 if right and faster else 1)


def _compared(
    tuned: Path,
    machine: MachineOptions,
    launches: int,
    osu: Path | None,
    convention: str,
    seed: int,
    via: str,
    *,
    err: bool,
) -> Verification:
    """Compares default and tuned in new launches; notes go to standard error with ``err``."""
    from colltune.cli.terminal import make_console
    from colltune.session.verify import verify as run_verify

    return run_verify(
        tuned,
        machine,
        launches=launches,
        osu=osu,
        convention=convention,
        seed=seed,
        via=via,
        note=lambda note: make_console(err=err).print(note),
    )


def _record(found: Verification, right: bool) -> Mapping[str, object]:
    """What docs/reference/json.md describes under `verify`."""
    rows = [
        {
            "scenario": one.scenario,
            "choice": one.choice,
            "default_s": one.a_s,
            "tuned_s": one.b_s,
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "verdict": one.verdict,
        }
        for one in found.comparisons
    ]
    said = {"results_right": right, "launches": found.launches, "disturbance": found.disturbance}
    return {**said, "comparisons": rows}


def _show(found: Verification) -> None:
    from colltune.cli.terminal import make_console
    from colltune.report.tables import comparisons_table

    console = make_console()
    if found.disturbance.sentence:
        console.print(found.disturbance.sentence, markup=False)
    if found.disturbance.is_busy:
        return
    console.print(comparisons_table(found.comparisons))
    for line in _summary(found.comparisons, found.launches):
        console.print(line)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in found.counts.items()) + ".")


def _summary(comparisons: Sequence[Comparison], launches: int) -> Iterator[str]:
    """How much faster it is, and what so few launches could not tell."""
    from colltune.core.choice import DEFAULT
    from colltune.prove.compare.verdict import fewest_launches, mean_speedup, typical_reach

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
