"""`colltune compare` and `colltune guidelines`: are two settings, or two calls that do the same, equally fast?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NoReturn, Unpack

import typer

from colltune.cli.options import AsJson, MaxSize, MinSize, ThreadLevel, offers
from colltune.core.units import format_count
from colltune.session.arguments import MAX_SIZE, MachineArguments

if TYPE_CHECKING:
    from colltune.core.interval import Interval
    from colltune.judge.finding import ExitCode
    from colltune.session.compare import Verification

_Budget = Annotated[str, typer.Option(help="Time to spend, such as 90s or 5m.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
_SIDE = (
    "nothing, NAME=VALUE (several joined by commas), a selection file, or a tuning directory."
    " Or for both: output of OSU's, Intel's or ReproMPI's benchmarks."
)


@offers(MachineArguments)
def compare(
    a: Annotated[str, typer.Argument(help=_SIDE, show_default=False)],
    b: Annotated[str, typer.Argument(help="What is compared with it: the same.", show_default=False)],
    collectives: Annotated[
        list[str] | None, typer.Argument(help="Default: all that block, at a few sizes.", show_default=False)
    ] = None,
    mpiexec_a: Annotated[str | None, typer.Option(help="mpiexec of the MPI of A, to compare two builds.")] = None,
    mpiexec_b: Annotated[str | None, typer.Option(help="mpiexec of the MPI of B.")] = None,
    min_size: MinSize = "1",
    max_size: MaxSize = MAX_SIZE,
    budget: _Budget = "5m",
    seed: _Seed = 1,
    as_json: AsJson = False,
    thread_level: ThreadLevel = "single",
    **where: Unpack[MachineArguments],
) -> None:
    """Are two settings, files, tunings or builds of an MPI equally fast? Exit code 1 if B is slower anywhere.

    Every call is looked at in a few launches of each side, by turns. What seems to differ is measured anew in new
    launches, and judged as `colltune verify` judges. The exit code is 4 if nothing can be said: other programs used the
    processors, or --budget was too short for what may differ.
    """
    from colltune.api import compare as run_compare
    from colltune.cli.terminal import make_console

    compared = run_compare(
        a,
        b,
        collectives or (),
        mpiexec_a=mpiexec_a,
        mpiexec_b=mpiexec_b,
        min_size=min_size,
        max_size=max_size,
        budget=budget,
        seed=seed,
        thread_level=thread_level,
        note=make_console(err=as_json).print,
        **where,
    )
    finish("compare", compared, as_json)


@offers(MachineArguments)
def guidelines(
    min_size: MinSize = "4",
    max_size: MaxSize = "256KiB",
    budget: _Budget = "5m",
    seed: _Seed = 1,
    as_json: AsJson = False,
    thread_level: ThreadLevel = "single",
    **where: Unpack[MachineArguments],
) -> None:
    """Which collectives take longer than others that do the same? Exit code 1 if there is any.

    An allreduce should not be slower than a reduce and a bcast, nor a message than a longer one. These are performance
    guidelines, which any MPI can keep. What seems violated is measured anew in new launches, and only these decide.
    A line that says slower is a guideline that is violated: its call takes longer than what stands as its choice.
    """
    from colltune.api import guidelines
    from colltune.cli.terminal import make_console

    compared = guidelines(
        min_size=min_size,
        max_size=max_size,
        budget=budget,
        seed=seed,
        thread_level=thread_level,
        note=make_console(err=as_json).print,
        **where,
    )
    finish("guidelines", compared, as_json)


def finish(command: str, compared: Verification, as_json: bool) -> NoReturn:
    """Prints ``compared``, and ends with its exit code."""
    from colltune.cli.console import print_json

    if as_json:
        print_json(command, {**as_record(compared), "looked_at": len(compared.screened), "open": compared.open})
    else:
        show(compared, "give {launches} runs a side" if compared.recorded else "use a larger --budget")
    raise typer.Exit(exit_code_of(command, compared))


def exit_code_of(command: str, compared: Verification) -> ExitCode:
    """Of ``command``: whether the second side is slower anywhere, or nothing can be said of that."""
    from colltune.judge.finding import exit_code

    return exit_code(command, (row.verdict for row in compared.comparisons), undecided=compared.nowhere_slower is None)


def as_record(compared: Verification) -> dict[str, object]:
    """What docs/reference/json.md describes, for ``print_json``: the two times have the names of the sides."""
    from colltune.judge.wording import record

    a, b = (f"{name.lower().replace('-', '_')}_s" for name in compared.names)
    rows = [
        {
            **{"scenario": row.scenario, "choice": row.choice, a: row.a_s, b: row.b_s},
            **record(row.speedup),
            "verdict": row.verdict,
        }
        for row in compared.comparisons
    ]
    undecided, disturbance = compared.undecided, compared.disturbance
    return {"launches": compared.launches, "undecided": undecided, "disturbance": disturbance, "comparisons": rows}


def show(compared: Verification, more: str) -> None:
    """Prints what was found.

    ``more``: what to do for more launches, with their number as {launches}.
    """
    from colltune.cli.terminal import make_console
    from colltune.report.tables import comparisons_table

    console = make_console()
    if compared.disturbance.sentence and not compared.recorded:
        console.print(compared.disturbance.sentence)
    if compared.disturbance.is_busy:
        return
    if compared.comparisons:
        console.print(comparisons_table(compared.comparisons, compared.names))
    for line in _summary(compared, more):
        console.print(line)


def _summary(compared: Verification, more: str) -> Iterator[str]:
    """How much faster it is, and what so few launches could not tell."""
    from colltune.core.sample import DEFAULT
    from colltune.judge.verdict import fewest_launches, mean_speedup

    comparisons, (a, b) = compared.comparisons, compared.names
    if comparisons:
        yield (
            f"speed-up: the median of {a} over {b} of all pairs of launches. It may differ from that of the two"
            " columns, which are medians each."
        )
        ruled = [c for c in comparisons if c.choice != DEFAULT]
        for points, where in ((comparisons, ""), (ruled, " where a rule holds")):
            # Of calls that were chosen because they differ, a mean says nothing.
            mean = None if compared.screened else mean_speedup(points)
            if mean is not None:
                yield format_mean(*mean, where)
    listed = {(row.scenario, row.choice) for row in comparisons}
    if alike := sum(
        (row.scenario, row.choice) not in listed and row.scenario not in compared.open for row in compared.screened
    ):
        launches = max(len(row.a_launches_s) for row in compared.screened)
        yield f"Alike in {launches} launches of each side, and not listed: {format_count(alike, 'call')}."
    if compared.open:
        few = "there are too few runs" if compared.recorded else "the time was too short"
        more = more.format(launches=fewest_launches(max(len(comparisons), 1)))
        yield f"May differ, and {few}: {format_count(len(compared.open), 'call')}; {more}."
    undecided, needed, budget_s = compared.undecided.values()
    if undecided:
        how = f"use --budget {math.ceil(budget_s / 60)}m" if budget_s else more.format(launches=needed)
        yield (
            f"{undecided} of {len(comparisons)} stay open, for their intervals reach beyond 0.97 to 1.03:"
            f" {needed} launches of each side would decide about half of them; {how}."
        )
    yield ", ".join(f"{count} {verdict}" for verdict, count in compared.counts.items()) + "."


def format_mean(mean: Interval, points: int, where: str) -> str:
    """``"Speed-up, geometric mean over 40 points: 1.052 (0.990 to 1.113, so not significant)."``"""
    remark = "" if mean.excludes(1.0) else ", so it is not significant"
    interval = f"99% interval {mean.bounds_text('{:.3f}'.format)}{remark}"
    interval = interval if mean.is_telling else "launches too few for an interval"
    return f"Speed-up, geometric mean over {format_count(points, 'point')}{where}: {mean.estimate:.3f} ({interval})."
