"""What `colltune tune` shows: a live line on a terminal, plain lines elsewhere, and one table at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from colltune.bench.contract import Bench
from colltune.cli.console import make_console
from colltune.cli.hints import run_command
from colltune.core.choice import DEFAULT
from colltune.core.judged_together import judged_regions
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.summary import SpeedUp
from colltune.core.units import format_count, format_duration, format_size
from colltune.report.story import format_extent, provisional_text, untried_text
from colltune.report.tables import regions_table
from colltune.search.campaign import Progress as Step
from colltune.session.options import Listener, TuneResult

_PLAIN_EVERY_S = 5.0


class Display:
    """Use as a context manager around the tuning."""

    def __init__(self) -> None:
        self.console = make_console()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._said_s = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TextColumn("{task.fields[state]}"))
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._task = self._bar.add_task("", state="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def listener(self, opened: Callable[[], object] = lambda: None) -> Listener:
        """``opened`` is called once it is known where to measure."""

        def show(bench: Bench) -> None:
            opened()
            self.bench(bench)

        return Listener(self._progress, self._proof, self._stage, self._note, show)

    def bench(self, bench: Bench) -> None:
        """What is measured."""
        self.console.print(bench.headline, markup=False)
        for text in bench.warnings:
            self._note(text)

    def _note(self, text: str) -> None:
        self.console.print(f"note: {text}", markup=False)

    def _stage(self, text: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, completed=0, total=None, state="")
        else:
            self.console.print(f"{text} ...", markup=False)

    def _progress(self, step: Step) -> None:
        left_s = max(0.0, min(step.budget_s - step.elapsed_s, self._time_left(step)))
        state = f"{step.pairs_done} of {step.pairs_total} measured, {format_duration(left_s)} left"
        where = step.collective
        if step.scenario is not None:
            where += f" {step.scenario.nodes} x {step.scenario.ppn} {format_size(step.scenario.size_bytes)}"
        if step.best is not None and step.speedup is not None:
            faster = "" if step.best == DEFAULT else f", {step.speedup:.2f}x faster"
            where += f": best so far {step.best}{faster}"
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, description=where, completed=step.pairs_done, total=step.pairs_total, state=state
            )
        elif time.monotonic() - self._said_s > _PLAIN_EVERY_S:
            self._said_s = time.monotonic()
            self.console.print(f"  {where}; {state}", markup=False)

    def _proof(self, results: Sequence[ProvenDecision]) -> None:
        kept = sum(1 for result in results if result.verdict is Verdict.KEPT)
        groups = sum(len(result.ratios) for result in results)
        state = f"{format_count(groups, 'comparison')}, {kept} of {format_count(len(results), 'region')} proven"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=kept, total=len(results), state=state)
        elif time.monotonic() - self._said_s > _PLAIN_EVERY_S:
            self._said_s = time.monotonic()
            self.console.print(f"  {state}", markup=False)

    @staticmethod
    def _time_left(step: Step) -> float:
        return step.elapsed_s / max(step.pairs_done, 1) * (step.pairs_total - step.pairs_done)

    def result(self, result: TuneResult, out: Path, go_on: str = "") -> None:
        """The end of `tune`: what was decided, what was refused and why, what it may bring, what it cost.

        ``go_on``: the command that goes on with a campaign that was cut off.
        """
        say = self.console.print
        kept, uncertain, refused, untried = (
            judged_regions(r for r in result.gate if r.verdict is verdict)
            for verdict in (Verdict.KEPT, Verdict.PROVISIONAL, Verdict.REFUSED, Verdict.NOT_TRIED)
        )
        if kept:
            say(regions_table(kept))
            say("Everywhere else the library's own choice stands.")
        elif result.tuning.summary.gated and not result.tuning.summary.reproducible:
            held = any(rules.departs for rules in result.tuning.rule_sets.values())
            where = "stands wherever nothing was proven before" if held else "stands everywhere"
            say(f"The library's own choice {where}: nothing was proven to be faster.")
        summary = result.tuning.summary
        if summary.reproducible:
            say(f"{', '.join(summary.reproducible)}: one algorithm for all sizes of a shape, for equal bits.")
        if (gain := SpeedUp.of(d for region in kept for d in region.decisions)) is not None:
            say(
                f"{format_extent(kept)} proven: {gain.mean:.2f} times as fast on average there"
                f" (geometric mean, at least {gain.low:.2f}), the worst at least {gain.worst:.2f}."
            )
        if uncertain:
            first = uncertain[0]
            say(provisional_text(uncertain), markup=False)
            say(f"For example {first.place}, {first.choice}: {first.reason}.", markup=False)
        if refused:
            first = refused[0]
            say(f"{format_extent(refused)} refused, for example {first.place}, {first.choice}: {first.reason}.")
        if untried:
            ended = result.outcome.interrupted
            say(untried_text(untried, summary.budget_for_all_s, interrupted=ended), markup=False)
        for collective, reason in result.outcome.reasons.items():
            say(f"{collective}: {reason}.", markup=False)
        share = summary.share
        if share.inside_collectives_s > 0:
            outside = 1.0 - share.inside_collectives_s / max(share.wall_s, share.inside_collectives_s)
            launches = format_count(share.launches, "launch", "launches")
            taken = format_count(summary.samples, "measurement")
            say(
                f"{taken} in {format_duration(share.wall_s)} and {launches},"
                f" {outside:.0%} of it outside the measured collectives;"
                f" {format_duration(summary.total_s)} with the proof."
            )
        if result.outcome.interrupted:
            say(f"The job was ended before the proof was over; go on with: {go_on}", markup=False, soft_wrap=True)
        if result.tuning.environment.mpi == "simulated":
            say(
                f"The rules are in {out}/simulated/rules.json, in a format of our own: no MPI reads them.", markup=False
            )
            return
        if kept or not result.outcome.interrupted:
            mpiexec = result.tuning.environment.facts.get("mpiexec", "")
            say(f"Run your application with: {run_command(out, mpiexec, _ranks(result))}", markup=False)


def _ranks(result: TuneResult) -> int:
    environment = result.tuning.environment
    return environment.nodes * environment.ppn
