"""`colltune tune alltoallv`: the non-uniform all-to-all has algorithms of our own, and a table in place of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from colltune.cli.console import echo
from colltune.cli.options import given_options
from colltune.cli.stopping import go_on_command, heed_scheduler
from colltune.core.sample import ALLTOALLV
from colltune.core.units import format_count, format_duration, format_size
from colltune.machine.command_lines import run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from colltune.alltoallv.lookup_table import AlltoallvRule
    from colltune.alltoallv.tune_table import AlltoallvResult
    from colltune.bench.contract import Bench
    from colltune.session.arguments import TuneArguments


def refuse_other_options(context: typer.Context) -> None:
    """Raises InputError for options of `tune` that would be without effect here."""
    from colltune.session.arguments import TuneArguments, offered, refuse_with_alltoallv

    refuse_with_alltoallv(given_options(context, offered(TuneArguments)))


def tune_alltoallv(arguments: TuneArguments, out: Path, counts: Sequence[Path]) -> None:
    """Measures, proves, writes out/alltoallv.rules, and prints what was found."""
    from colltune.core.stop import StopRequest
    from colltune.session.tuning.options import Listener
    from colltune.session.tuning.tune_alltoallv import tune_alltoallv_here

    stop = StopRequest()

    def opened(bench: Bench) -> None:
        heed_scheduler(stop)
        echo(bench.headline)
        for text in bench.warnings:
            note(text)

    def note(text: str) -> None:
        echo(f"note: {text}")

    listener = Listener(stage=lambda text: echo(f"{text} ..."), note=note, opened=opened)
    _show(tune_alltoallv_here(arguments, out, listener, stop, counts))


_MOST_LINES = 8  # parts of the job that are shown, the largest


def _show(result: AlltoallvResult) -> None:
    from colltune.core.proven import Verdict
    from colltune.judge.wording import at_least

    shapes = {(shape.nodes, shape.ppn) for shape in result.rules}
    for shape in sorted(result.rules, key=lambda shape: -shape.ranks)[:_MOST_LINES]:
        echo(f"  {shape.nodes} x {shape.ppn}: {_described(result.rules[shape])}")
    left = len(result.rules) - _MOST_LINES
    if left > 0:
        echo(f"  and {format_count(left, 'smaller part')} of the job")
    kept = [decision for decision in result.decisions if decision.verdict is Verdict.KEPT]
    gained = [decision for decision in kept if decision.scenario.collective == ALLTOALLV]
    if gained := [decision for decision in gained if (decision.scenario.nodes, decision.scenario.ppn) in shapes]:
        best = max(gained, key=lambda decision: decision.speedup.estimate)
        at = best.scenario
        echo(
            f"  most gained: {at.nodes} x {at.ppn}, {format_size(at.size_bytes)}:"
            f" {best.choice} {at_least(best.speedup)}"
        )
    rules = format_count(sum(map(len, result.rules.values())), "rule")
    where = f"{rules} for {format_count(len(shapes), 'part')} of the job; everywhere else" if shapes else "Everywhere"
    echo(
        f"{where} the library's own stands."
        f" {format_count(sum(len(decision.ratios) for decision in result.decisions), 'comparison')} with it, "
        f"{format_count(len(result.outcome.samples), 'measurement')} in {format_duration(result.outcome.elapsed_s)}"
    )
    if result.outcome.interrupted:
        go_on = go_on_command(sys.argv[1:])
        typer.echo(f"The job was ended before the proof was over, so no table was written; go on with: {go_on}")
    elif result.rules:
        mpiexec = result.environment.mpiexec
        line = run_command("--alltoallv", result.table, mpiexec=mpiexec)
        typer.echo(f"Run your application with: {line}")


def _described(rules: Sequence[AlltoallvRule]) -> str:
    """Rules of one part: the sizes, the share of blocks that are not empty, and the settings."""
    from colltune.alltoallv.lookup_table import FILLS

    settings = list(dict.fromkeys(str(rule.setting) for rule in rules))
    sparsest = min(min(rule.fill) for rule in rules)
    low, high = min(rule.low for rule in rules), max(rule.high for rule in rules)
    share = FILLS[sparsest - 1] if sparsest else 0.0
    return f"blocks of {low} to {high} B, over {share:.0%} of them not empty: {', '.join(settings)}"
