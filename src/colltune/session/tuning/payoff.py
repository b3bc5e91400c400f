"""Tuning for one application: the time that can be saved, the time saved, and the cost."""

from collections.abc import Callable
from dataclasses import replace

from colltune.bench.workbench import MachineOptions
from colltune.catalog import Catalogue
from colltune.core.errors import InputError
from colltune.core.proven import Verdict, refused
from colltune.core.sample import COLLECTIVES, DEFAULT, Scenario, parse_collectives
from colltune.core.units import format_duration
from colltune.learn.expected_gain import ExpectedGain
from colltune.mpi.installation import Installation, Library
from colltune.mpi.job import Job, Scheduler
from colltune.profile.application_profile import Profile, time_shares
from colltune.prove.in_run.application_trial import Checked, runs_text
from colltune.session.tuning.options import Payoff, TuneOptions, TuneResult
from colltune.store.tuning import Tuning

# Seconds of a launch, a few points and their proof: with less, tuning is not started.
_LEAST_S = 10.0


def machine_like(profile: Profile, given: MachineOptions, thread_level: str, job: Job) -> MachineOptions:
    """``given``, completed by the shape and thread level of ``profile``. ``thread_level``: that of the user, or "".

    Raises InputError where the user asks for another thread level than the application's, under which the library
    chooses other algorithms, or the job has not as many ranks per node.
    """
    theirs = "multiple" if profile.threads_multiple else "single"
    if thread_level and (thread_level == "multiple") != profile.threads_multiple:
        asked = "with MPI_THREAD_MULTIPLE" if profile.threads_multiple else "without MPI_THREAD_MULTIPLE"
        raise InputError(
            f"the profiled application ran {asked}, and --thread-level is {thread_level}",
            f"Leave --thread-level out, or give --thread-level {theirs}",
        )
    nodes, ppn = profile.shape
    granted = job.scheduler not in (Scheduler.NONE, Scheduler.HOST_FILE)
    if given.ppn is None and granted and ppn > job.ppn:
        raise InputError(
            f"the profiled application ran {ppn} ranks per node, and this {job.scheduler} job grants {job.ppn}",
            f"Ask for a job with {ppn} ranks per node; --ppn {ppn} puts several on a core",
        )
    return replace(
        given,
        nodes=given.nodes or min(nodes, len(job.nodes)),
        ppn=given.ppn or ppn,
        thread_level=thread_level or theirs,
    )


def require_profiled_mpi(profile: Profile, here: Installation) -> None:
    """Raises InputError where ``profile`` is of another MPI than this one, which is merely the nearest."""
    name = profile.mpi.partition(" ")[0]
    if name in set(Library) and name != here.library:
        raise InputError(
            f"the application was profiled with {profile.mpi}, and the nearest MPI is {here.library} {here.version}"
            f" ({here.mpiexec})",
            f"Give --mpiexec of the {name} that runs the application, or {here.mpiexec} to tune that",
        )


def expected_gain_of(
    profile: Profile,
    runtime_s: float,
    catalogue: Catalogue,
    shape: tuple[int, int],
    note: Callable[[str], None] = lambda _text: None,
) -> ExpectedGain:
    """The scenarios of ``profile`` that can be tuned on a job of ``shape`` (nodes, ppn), with their shares of the time.

    ``note`` hears of calls that need a larger job. Raises InputError where the job can form none of them, and where
    measuring could not save what it takes: there is nothing to do then, and that is fine.
    """
    tunable = {
        name for name in COLLECTIVES if name in catalogue.entries and catalogue.entries[name].nothing_to_tune is None
    }
    called = {scenario: part for scenario, part in time_shares(profile).items() if scenario.collective in tunable}
    share = {call: part for call, part in called.items() if call.nodes <= shape[0] and call.ppn <= shape[1]}
    if len(share) < len(called):
        nodes, ppn = max(call.nodes for call in called), max(call.ppn for call in called)
        lost = 1.0 - sum(share.values()) / max(sum(called.values()), 1e-12)
        what = (
            f"this job of {shape[0]} x {shape[1]} ranks cannot form calls of the application that need {nodes} x {ppn}"
        )
        if not share:
            raise InputError(
                what, f"Tune in a job of {nodes} nodes by --ppn {ppn}" if nodes > 1 else f"Give --ppn {ppn}"
            )
        note(f"{what}: {lost:.0%} of its time in collectives that can be tuned is left as it is")
    expected = ExpectedGain(share, runtime_s, _call_s(profile))
    if expected.budget_s() < _LEAST_S:
        raise InputError(
            f"tuning cannot pay: of {format_duration(runtime_s)} the collectives that can be tuned take "
            f"{format_duration(sum(share.values()) * runtime_s)}, of which about "
            f"{format_duration(expected.budget_s())} might be saved",
            "Give the time of all runs to come by --runtime, if there are more; else leave the MPI as it is",
        )
    return expected


def for_application(
    options: TuneOptions,
    profile: Profile,
    runtime_s: float,
    catalogue: Catalogue,
    shape: tuple[int, int],
    note: Callable[[str], None] = lambda _text: None,
) -> TuneOptions:
    """``options`` for what ``profile`` calls: its collectives (of those named, if any), within what can be saved.

    ``shape`` and ``note`` as of ``expected_gain_of``.
    """
    expected = expected_gain_of(profile, runtime_s, catalogue, shape, note)
    called = {scenario.collective for scenario in expected.share}
    names = sorted(called & set(parse_collectives(options.collectives) or called))
    if not names:
        raise InputError(
            f"the application does not spend time in {', '.join(options.collectives)}",
            f"It does in {', '.join(called)}",
        )
    share = {call: part for call, part in expected.share.items() if call.collective in names}
    expected = replace(expected, share=share)
    worth_s = expected.budget_s()
    made = replace(options, collectives=names, runtime_s=runtime_s, expected_gain=expected)
    if worth_s >= options.budget_s:
        return made
    note(
        f"the budget is {format_duration(worth_s)}, less than the {format_duration(options.budget_s)} of --budget: so"
        f" much is tuning expected to save in {format_duration(runtime_s)} of this application. If it will run for"
        " longer, say so by --runtime"
    )
    return replace(made, budget_s=worth_s, allowed_s=options.budget_s)


def after_check(result: TuneResult, checked: Checked, tuning: Tuning, took_s: float) -> TuneResult:
    """``result`` with what the application was better without refused. ``tuning``: what is left of it in force."""
    before, reasons = result.tuning.summary, {name: runs_text(runs) for name, runs in checked.withdrawn.items()}
    summary = replace(
        before,
        decisions=tuple(refused(before.decisions, reasons)),
        total_s=before.total_s + took_s,
        application=checked.rounds,
    )
    return replace(result, tuning=replace(tuning, summary=summary), decisions=refused(result.decisions, reasons))


def payoff_of(result: TuneResult, expected: ExpectedGain, ranks: int) -> Payoff:
    """What ``result`` is worth to the application."""
    kept = [decision for decision in result.decisions if decision.verdict is Verdict.KEPT]
    summary = result.tuning.summary
    saved = sum(expected.saving_s(decision.scenario, 1.0 - 1.0 / decision.speedup.estimate) for decision in kept)
    low = sum(expected.saving_s(decision.scenario, 1.0 - 1.0 / decision.speedup.low) for decision in kept)
    measured = {sample.scenario for sample in result.outcome.samples if sample.times_s and sample.choice != DEFAULT}
    unknown = again = ""
    if not summary.gated:
        unknown, again = "Nothing was proven, as --gate off asks", "with the proof"
    elif summary.disturbance is not None and summary.disturbance.is_busy and not kept:
        unknown, again = "On the busy machine nothing was judged", "on idle processors"
    elif not measured & expected.share.keys():
        unknown, again = "None of its calls was measured", f"with {summary.more_time}"
    return Payoff(
        saved * ranks,
        low * ranks,
        summary.total_s * ranks,
        expected.runtime_s,
        len(kept),
        len(measured & expected.share.keys()),
        len(expected.share),
        unknown,
        again,
    )


def _call_s(profile: Profile) -> dict[Scenario, float]:
    call_s: dict[Scenario, float] = {}
    for calls, scenarios in profile.tunable():
        for scenario in scenarios:
            call_s[scenario] = max(call_s.get(scenario, 0.0), calls.time_s / max(calls.rank_calls, 1))
    return call_s
