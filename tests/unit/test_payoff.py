"""Tuning for an application: the job it is tuned on, and what is said of it where little or nothing was measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from colltune.bench.workbench import MachineOptions
from colltune.catalog import load
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.learn.expected_gain import ExpectedGain
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.mpi.job import Job, Node, Scheduler
from colltune.profile.application_profile import Calls, Communicator, Profile
from colltune.prove.time_plan import TimePlan
from colltune.search.campaign import Outcome
from colltune.session.tuning.options import TuneOptions, TuneResult, budget_of
from colltune.session.tuning.payoff import for_application, machine_like, payoff_of, require_profiled_mpi
from colltune.store.tuning import Tuning

_BUSY = Disturbance(True, 10, 9, "others", 0.5, "n17", disturbed_share=0.9)
_LAPTOP = Job(Scheduler.NONE, (Node("localhost", 2),))


def calls(collective: str, nodes: int, ppn: int, size: int = 1024) -> Calls:
    where = Communicator(nodes * ppn, nodes, ppn)
    return Calls(where, collective, "blocking", "none", 4000, 4000, 3.0, size, size, size)


def profile(*some: Calls, nodes: int = 1, ppn: int = 4, multiple: bool = True) -> Profile:
    seen = tuple((one.communicator, 1.0) for one in some)
    ranks = nodes * ppn
    return Profile(some, seen, ranks, nodes, 10.0, ranks, threads_multiple=multiple)


def test_ranks_per_node_and_thread_level_are_those_of_the_profile_unless_the_user_gives_others() -> None:
    for multiple, ppn, level, expected in (
        (True, None, "", (1, 4, "multiple")),
        (False, None, "", (1, 4, "single")),
        (True, 3, "multiple", (1, 3, "multiple")),
        (False, None, "funneled", (1, 4, "funneled")),
    ):
        app = profile(calls("bcast", 1, 4), multiple=multiple)
        found = machine_like(app, MachineOptions(ppn=ppn), level, _LAPTOP)
        assert (found.nodes, found.ppn, found.thread_level) == expected


def test_the_nearest_mpi_is_not_tuned_for_the_profile_of_another() -> None:
    path = Path("/opt/mpiexec")
    here = Installation(Library.MPICH, "5.0.2", Launcher.HYDRA, path, path, path, "0")
    for name in ("", "mpich 4.2.0"):
        require_profiled_mpi(replace(profile(), mpi=name), here)
    with pytest.raises(InputError, match=r"with openmpi 4\.1\.4, and the nearest MPI is mpich 5\.0\.2 \(/opt"):
        require_profiled_mpi(replace(profile(), mpi="openmpi 4.1.4"), here)


@pytest.mark.parametrize(("multiple", "given"), [(True, "single"), (True, "serialized"), (False, "multiple")])
def test_another_thread_level_than_the_application_has_is_refused(multiple: bool, given: str) -> None:
    with pytest.raises(InputError, match=f"MPI_THREAD_MULTIPLE, and --thread-level is {given}") as caught:
        machine_like(profile(calls("bcast", 1, 4), multiple=multiple), MachineOptions(), given, _LAPTOP)
    assert "--thread-level" in caught.value.next_step


def test_a_job_that_grants_fewer_ranks_per_node_says_what_to_ask_for() -> None:
    job = Job(Scheduler.SLURM, (Node("a", 2), Node("b", 2)))
    app = profile(calls("bcast", 2, 4), nodes=2)
    with pytest.raises(InputError, match="ran 4 ranks per node, and this slurm job grants 2") as caught:
        machine_like(app, MachineOptions(), "", job)
    assert "--ppn 4" in caught.value.next_step
    assert machine_like(app, MachineOptions(ppn=4), "", job).nodes == 2


def test_calls_that_the_job_cannot_form_are_told_and_those_that_the_library_does_not_choose_left_out() -> None:
    catalogue, said = load("mpich", "5.0.2"), list[str]()
    app = profile(calls("bcast", 1, 4), calls("bcast", 1, 2), calls("allreduce", 1, 4))
    options = for_application(TuneOptions([], budget_s=60.0), app, 7200.0, catalogue, (1, 4), said.append)
    assert sorted(options.collectives) == ["allreduce", "bcast"]
    assert not said
    options = for_application(TuneOptions([], budget_s=60.0), app, 7200.0, catalogue, (1, 2), said.append)
    assert set(options.expected_gain.share) == {Scenario("bcast", 1, 2, 1024)}
    (text,) = said
    assert "1 x 2 ranks cannot form" in text
    assert "67%" in text
    with pytest.raises(InputError, match="1 x 1 ranks cannot form") as caught:
        for_application(TuneOptions([]), app, 7200.0, catalogue, (1, 1))
    assert caught.value.next_step == "Give --ppn 4"
    # Intel MPI has no numbers for scans.
    app = profile(calls("bcast", 1, 4), calls("exscan", 1, 4), calls("scan", 1, 4))
    assert for_application(TuneOptions([]), app, 72000.0, load("intelmpi", "2021.17"), (1, 4)).collectives == ["bcast"]


def test_a_budget_that_the_run_time_limits_says_so_and_how_to_change_it() -> None:
    """All of an application is 10 s of broadcasts: of 100 s to come 15 s might be saved, of 1 h more than 4 min."""
    catalogue, said = load("mpich", "5.0.2"), list[str]()
    app = profile(replace(calls("bcast", 1, 4), time_s=40.0))
    given = TuneOptions([], budget_s=240.0)
    options = for_application(given, app, 100.0, catalogue, (1, 4), said.append)
    assert (options.budget_s, options.allowed_s, options.runtime_s) == (pytest.approx(15.0), 240.0, 100.0)
    (text,) = said
    assert "the budget is 15 s, less than the 4 min 0 s of --budget" in text
    assert "in 1 min 40 s of this application" in text
    assert "--runtime" in text
    plan = TimePlan(options.budget_s, 0.0, 2.0, 3.0, 5.0, runtime_s=options.runtime_s)
    assert plan.extension.endswith("the 15 s that tuning is expected to save are extended to that")
    undecided = Decision(Scenario("bcast", 1, 4, 1024), Choice("binomial"), Verdict.NOT_TRIED, (), "")
    # What is enough takes a longer run time, and a larger budget where this is beyond what was allowed.
    for rest_s, more in ((1.0, "--runtime 5m"), (1000.0, "--runtime 4h2m --budget 37m")):
        budget = budget_of(options, plan, [undecided], rest_s)
        assert budget.for_all_s is not None
        assert Summary(budget=budget).more_time == more
    none = Summary(budget=budget_of(options, plan, [], 0.0))
    assert none.more_time == "a longer --runtime, if the application will run for longer"
    said.clear()
    options = for_application(given, app, 3600.0, catalogue, (1, 4), said.append)
    assert (options.budget_s, options.allowed_s, said) == (240.0, None, [])
    budget = budget_of(options, replace(plan, runtime_s=None), [undecided], 1.0)
    assert Summary(budget=budget).more_time == "--budget 50s"


def test_nothing_measured_is_not_nothing_to_save() -> None:
    made, scenario = Environment("mpich", "5.0.2", "b", "m", 1, 4, "single"), Scenario("bcast", 1, 4, 1024)
    sample = Sample(scenario, Choice("binomial"), Status.OK, (1e-6,), 0.1, 1, 0.0)
    kept = Decision(scenario, Choice("binomial"), Verdict.KEPT, (2.0,) * 8, "")
    expected = ExpectedGain({scenario: 0.5, replace(scenario, size_bytes=8): 0.1}, 7200.0)

    def text(*samples: Sample, gate: Sequence[Decision] = (), **more: Any) -> str:
        tuning = Tuning(made, {}, {}, {}, Summary(total_s=36.0, **more))
        return payoff_of(TuneResult(tuning, Outcome(samples, {}, 1.0, False), gate, {}), expected, 4).text()

    assert "nothing" not in text().lower()
    assert "not known" in text()
    assert text().endswith("Tune again with a larger --budget.")
    assert text(sample).startswith("Nothing was proven faster")
    assert "1 of its 2 kinds of calls" in text(sample)
    busy = text(sample, disturbance=_BUSY)
    assert busy.startswith("On the busy machine nothing was judged, so it is not known what tuning saves;")
    assert busy.endswith("Tune again on idle processors.")
    ungated = text(sample, disturbance=_BUSY, gated=False)
    assert ungated.startswith("Nothing was proven, as --gate off asks, so it is not known what tuning saves;")
    saving = text(sample, gate=[kept])
    assert saving.startswith("Saves about 2 core-hours (at least 2) over 2 h")
    assert "cost 0.04 core-hours" in saving
