"""The end of `colltune tune --profile --check`: the application itself, with the rules and without."""

from __future__ import annotations

import time
from pathlib import Path

from colltune.bench.workbench import Workbench
from colltune.core.errors import LaunchError
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.profile.application import Profile
from colltune.prove.proof import workplace
from colltune.prove.replay import departing
from colltune.prove.trial import LOG, Trial, without
from colltune.session.options import Listener, TuneOptions, TuneResult
from colltune.session.payoff import after_check
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
    """``result`` without the rules with which the application is slower; ``out`` holds the remaining ones."""
    if not departing(result.tuning.rule_sets):
        return result  # the application would run as it does without a tuning
    listener.stage("running the application with the rules and without")
    started_s = time.monotonic()
    with workplace(out) as place:
        trial = Trial(
            bench, result.tuning, application.command, place, out / LOG, options.budget_s, options.seed, listener.note
        )
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
