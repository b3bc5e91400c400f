"""The end of `colltune tune --profile --check`: the application itself, with the rules and without."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from colltune.bench.workbench import Workbench
from colltune.core.errors import LaunchError
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.profile.application_profile import Profile
from colltune.profile.page_faults import faulting
from colltune.prove.in_run.trial import LOG, Trial, without
from colltune.prove.proof import workplace
from colltune.prove.replay.on_workbench import departing
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult
from colltune.session.tuning.payoff import after_check
from colltune.store.tuning import save_tuning


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

    Where calls of the application meet page faults, it also runs with a heap that keeps memory.
    """
    if departing(result.tuning.rule_sets):  # else the application would run as it does without a tuning
        result = _check_rules(bench, result, application, options, out, listener, stop)
    if not faulting(application) or stop.made:
        return result
    listener.stage("running the application with a heap that keeps memory and without")
    started_s = time.monotonic()
    with workplace(out) as place:
        trial = _trial(bench, result, application, options, out, place, listener)
        try:
            with stop.cuts():
                found = trial.check_heap()
        except LaunchError as error:
            listener.note(f"the state of the heap was not compared: the application {error}")
            return result
        except INTERRUPTIONS:
            listener.note("stopped before the state of the heap was compared")
            return result
    listener.note(found.finding)
    before = result.tuning.summary
    summary = replace(before, heap=found, total_s=before.total_s + time.monotonic() - started_s)
    result = replace(result, tuning=replace(result.tuning, summary=summary))
    save_tuning(out, result.tuning)
    return result


def _trial(
    bench: Workbench,
    result: TuneResult,
    application: Profile,
    options: TuneOptions,
    out: Path,
    place: Path,
    listener: Listener,
) -> Trial:
    return Trial(
        bench, result.tuning, application.command, place, out / LOG, options.budget_s, options.seed, listener.note
    )


def _check_rules(
    bench: Workbench,
    result: TuneResult,
    application: Profile,
    options: TuneOptions,
    out: Path,
    listener: Listener,
    stop: StopRequest,
) -> TuneResult:
    listener.stage("running the application with the rules and without")
    started_s = time.monotonic()
    with workplace(out) as place:
        trial = _trial(bench, result, application, options, out, place, listener)
        try:
            with stop.cuts():
                checked = trial.check()
        except LaunchError as error:
            listener.note(f"the application was not compared: without the rules it {error}")
            return result
        except INTERRUPTIONS:
            listener.note("stopped before the application was compared; the rules stand as proven")
            return result
    for name, reason in checked.withdrawn.items():
        listener.note(f"the rules of {name} are withdrawn: {reason}")
    left = without(bench, result.tuning, checked.withdrawn.keys())
    result = after_check(result, checked, left, time.monotonic() - started_s)
    save_tuning(out, result.tuning)
    return result
