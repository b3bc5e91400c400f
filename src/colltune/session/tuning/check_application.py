"""The end of `colltune tune --profile --check`: the application itself, with the rules and without."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from colltune.bench.workbench import Workbench
from colltune.core.errors import LaunchError
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.mpi.application import application_of
from colltune.profile.advice import faulting
from colltune.profile.application_profile import Profile
from colltune.prove.in_run.application_trial import LOG, Trial, without
from colltune.prove.in_run.whole_runs import runs_text
from colltune.prove.proof import workplace
from colltune.prove.replay.on_workbench import departing
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult
from colltune.session.tuning.payoff import after_check
from colltune.store.applications import RunRecord, begin_run
from colltune.store.tuning import Tuning, save_tuning

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Tries:
    """Runs of the application, beside the tuning in ``out``."""

    bench: Workbench
    application: Profile
    options: TuneOptions
    out: Path
    listener: Listener
    stop: StopRequest

    def ask(
        self, tuning: Tuning, stage: str, question: Callable[[Trial], _T], failed: str, stopped: str
    ) -> tuple[_T, float] | None:
        """The answer to ``question``, and the seconds it took; None, and a note, where the application fails or is
        stopped."""
        self.listener.stage(stage)
        started_s, say = time.monotonic(), self.listener.note
        with workplace(self.out) as place:
            log, command = self.out / LOG, self.application.command
            trial = Trial(self.bench, tuning, command, place, log, self.options.budget_s, self.options.seed, say)
            try:
                with self.stop.cuts():
                    return question(trial), time.monotonic() - started_s
            except LaunchError as error:
                say(f"{failed} {error}")
            except INTERRUPTIONS:
                say(stopped)
        return None


def check_with_application(
    bench: Workbench,
    result: TuneResult,
    application: Profile,
    options: TuneOptions,
    out: Path,
    listener: Listener,
    stop: StopRequest,
) -> TuneResult:
    """``result`` without the rules with which the application is slower; ``out`` holds the remaining ones.

    A file cannot tell programs apart, so no program gets these rules by one. The live selector keeps them, unless the
    application failed with them, for other programs: the history says of which program they are withdrawn.
    Where calls of the application meet page faults, it also runs with a heap that keeps memory.
    """

    tries = _Tries(bench, application, options, out, listener, stop)
    if departing(result.tuning.rule_sets):  # else the application would run as it does without a tuning
        compared = tries.ask(
            result.tuning,
            "running the application with the rules and without",
            Trial.check,
            "the application was not compared: without the rules it",
            "stopped before the application was compared; the rules stand as proven",
        )
        if compared is not None:
            checked, took_s = compared
            ran = application_of(application.command, bench.process_environment)
            lost = {name: runs_text(runs) for name, runs in checked.withdrawn.items()}
            failed = [name for name, runs in checked.withdrawn.items() if runs.failure]
            withdrawn = {**dict.fromkeys(checked.rounds[0].rules, ""), **lost}
            left = without(bench, result.tuning, lost, failed)
            result = after_check(result, checked, left, took_s)
            save_tuning(out, result.tuning)
            made = result.tuning.environment
            begin_run(out, RunRecord(made, (), {}, 0, ran, 0, withdrawn), time.time())
            listener.note(checked.text(str(ran)))
    if not faulting(application) or stop.made:
        return result
    heaps = tries.ask(
        result.tuning,
        "running the application with a heap that keeps memory and without",
        Trial.check_heap,
        "the state of the heap was not compared: the application",
        "stopped before the state of the heap was compared",
    )
    if heaps is not None:
        heap, took_s = heaps
        listener.note(heap.finding)
        before = result.tuning.summary
        summary = replace(before, heap=heap, total_s=before.total_s + took_s)
        result = replace(result, tuning=replace(result.tuning, summary=summary))
        save_tuning(out, result.tuning)
    return result
