"""What `colltune tune` shows: a live line on a terminal, plain lines elsewhere, and a dozen lines at the end."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TaskID
from rich.table import Table
from rich.text import Text

from colltune.bench.contract import Bench
from colltune.cli.terminal import make_console
from colltune.core.proven import Decision, StopReason, Verdict
from colltune.core.sample import DEFAULT, grouped
from colltune.core.units import format_count, format_duration, format_size
from colltune.machine.command_lines import colltune_command
from colltune.report.ending import WIDTH, ending, folded, steps_text
from colltune.search.campaign import Progress as Step
from colltune.session.explain import load_findings
from colltune.session.tuning.options import Listener, TuneResult

_PLAIN_EVERY_S = 5.0
_BAR = 20  # columns


class _Lines(Progress):
    """What is done now, and below it how far it is: what is too long goes on in the next line, and is never cut."""

    def get_renderables(self) -> Iterable[RenderableType]:
        bar = BarColumn(bar_width=_BAR)
        for task in self.tasks:
            yield Text(task.description, no_wrap=False, overflow="fold")  # whatever the console does
            state = Table.grid(padding=(0, 1))
            state.add_column(width=_BAR)
            state.add_column()
            state.add_row(bar(task), Text(task.fields["state"]))
            yield state


class Display:
    """Use as a context manager around the tuning.

    ``ends_s``: when the budget is spent, on ``time.monotonic``; None where that is not our clock. On a terminal that
    cannot move its cursor, as a screen reader's may be (TERM=dumb), lines are printed one after another. ``err``: to
    standard error.
    """

    def __init__(self, ends_s: float | None = None, *, err: bool = False) -> None:
        self.console = make_console(err=err)
        self._ends_s = ends_s
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._said_s = 0.0
        self._launches = 0

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._bar = _Lines(console=self.console, transient=True)
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

        return Listener(self._progress, self._proof, self._stage, self._note, show, self._planned)

    def bench(self, bench: Bench) -> None:
        """What is measured."""
        self.console.print(bench.headline)
        for text in bench.warnings:
            self._note(text)

    def _note(self, text: str) -> None:
        self.console.print(f"note: {text}")

    def _stage(self, text: str) -> None:
        self._launches = 0
        left = self._budget_left()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, completed=0, total=None, state=left)
        else:
            self.console.print(f"{text} ..." + (f" ({left})" if left else ""))

    def _planned(self, ends_s: float) -> None:
        if self._ends_s is not None:
            self._ends_s = ends_s

    def _budget_left(self) -> str:
        if self._ends_s is None:
            return ""
        left_s = self._ends_s - time.monotonic()
        return f"{format_duration(left_s)} of the budget left" if left_s > 0.0 else "the budget is spent"

    def _progress(self, step: Step) -> None:
        for_all_s = step.elapsed_s / max(step.pairs_done, 1) * (step.pairs_total - step.pairs_done)
        left_s = max(0.0, min(step.budget_s - step.elapsed_s, for_all_s))
        left = f"{format_duration(left_s)} left" if left_s > 0.0 else StopReason.BUDGET_SPENT
        state = f"{step.pairs_done} of {step.pairs_total} measured, {left}"
        where = step.collective
        if step.scenario is not None:
            size = "" if step.collective == "barrier" else f" {format_size(step.scenario.size_bytes)}"
            where += f" {step.scenario.nodes} x {step.scenario.ppn}{size}"
        if step.best is not None and step.speedup is not None:
            faster = "" if step.best == DEFAULT else f", {step.speedup:.2f}x faster"
            where += f": best so far {step.best}{faster}"
        self._show(
            f"{where}; {state}", description=where, completed=step.pairs_done, total=step.pairs_total, state=state
        )

    def _proof(self, results: Sequence[Decision]) -> None:
        """Hears of the audit after each of its launches."""
        self._launches += 1
        kept = sum(1 for result in results if result.verdict is Verdict.KEPT)
        groups = sum(len(result.ratios) for result in results)
        regions = format_count(len(results), "region")
        left = self._budget_left()
        state = f"launch {self._launches}: {format_count(groups, 'comparison')}, {kept} of {regions} proven"
        state += f", {left}" if left else ""
        self._show(state, completed=kept, total=len(results), state=state)

    def _show(self, text: str, **bar: Any) -> None:
        """On the live line by ``bar``; elsewhere ``text``, now and then."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **bar)
        elif time.monotonic() - self._said_s > _PLAIN_EVERY_S:
            self._said_s = time.monotonic()
            self.console.print(f"  {text}")

    def result(self, result: TuneResult, out: Path, go_on: str = "") -> None:
        """The end of `tune`: what came of it, and what to do next.

        ``go_on``: the command that goes on with a campaign that was cut off.
        """
        findings = load_findings(out)
        for line in ending(findings):
            self._whole(line)
        reasons = result.outcome.reasons
        stopped = (name for name, reason in reasons.items() if reason != StopReason.WHOLE)
        for reason, collectives in grouped(stopped, reasons.__getitem__).items():
            self._whole("\n".join(folded(f"{', '.join(collectives)}: {reason}.", WIDTH)))
        if result.decisions:
            self._whole(f"{'all of it':<10} {colltune_command('report', out, '--text', '--all')}")
        for line in steps_text(findings, out):
            self._whole(line)
        if result.outcome.interrupted:
            self._whole(f"{'command':<10} {go_on}")

    def _whole(self, text: str) -> None:
        """In lines as they are: commands can be copied."""
        self.console.print(text, soft_wrap=True)
