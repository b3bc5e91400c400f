"""What the next run of a program does, by what earlier runs measured: what it tries, uses, and leaves out."""

import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from application_history import APP, leave_run
from memory_bench import ENVIRONMENT
from test_payoff import calls, profile
from test_tune_in_memory import RING as SCATTERED

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.interval import Interval
from colltune.core.proven import Summary
from colltune.core.rules import RuleSet, Span
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis
from colltune.core.switchback import Standing
from colltune.deploy.applied import AppliedTuning
from colltune.deploy.explored import CallKind, Candidates, default_at, load_candidates, save_candidates, tables
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, LiveEmitter, live_choices, parse_live
from colltune.mpi.application import Application, application_of
from colltune.profile.application_profile import Calls, Communicator
from colltune.prove.in_run.in_application import KindOfCalls, next_run
from colltune.session.application.auto_run import FirstRun, ready_auto, why_none_is_tried
from colltune.session.application.run_application import RunOptions, unheard
from colltune.session.application.withdrawn import withdrawn_from, without_slower_rules
from colltune.store.applications import RUN, RunRecord, begin_run, read_run
from colltune.store.tuning import Tuning, save_tuning

RING, TREE, CHAIN = Choice("ring"), Choice("tree"), Choice("chain")
CHOICES = (RING, TREE, CHAIN)
KIND = CallKind("bcast", SizeBasis.MESSAGE, 4, 2, Span(64, 127), 0.3, 4000.0, 0.4, 1, CHOICES)


def said(choice: Choice, estimate: float, low: float, high: float, runs: int = 3, off: int = 0) -> Standing:
    faster = Interval(estimate, low, high)
    launches = tuple((f"2026-11-0{number + 1}", math.log(estimate)) for number in range(runs))
    return Standing("bcast", choice, 4, 2, 64, 100, SizeBasis.MESSAGE, 9000, 30, off, faster, faster, launches, "")


FASTER = said(RING, 1.2, 1.1, 1.3)
PERHAPS = said(RING, 1.3, 0.9, 1.5), said(CHAIN, 0.6, 0.4, 1.5)


def looked(*standings: Standing) -> dict[KindOfCalls, tuple[float, float]]:
    """What is expected after ``standings``."""
    kinds = {s: (s.collective, s.size_most.bit_length(), s.nodes, s.ppn) for s in standings}
    return {(kind, s.choice): (math.log(s.faster.estimate), 0.1) for s, kind in kinds.items()}


@pytest.mark.parametrize(
    ("standings", "proven", "in_force", "tried"),
    [
        ((), DEFAULT, None, RING),
        ((said(RING, 0.9, 0.7, 1.02),), DEFAULT, None, TREE),  # at most 2% faster
        ((said(RING, 2.5, 0.9, 5.0),), DEFAULT, None, RING),  # looks so fast: until that is sure
        ((said(RING, 1.2, 0.9, 1.5),), DEFAULT, None, TREE),  # which nobody looked at, so it may be faster
        (PERHAPS, DEFAULT, None, TREE),
        ((*PERHAPS, said(TREE, 1.2, 0.9, 1.5)), DEFAULT, None, RING),
        ((FASTER,), DEFAULT, RING, None),
        (tuple(said(choice, 0.8, 0.7, 0.9) for choice in KIND.choices), DEFAULT, None, None),
        ((FASTER, said(TREE, 1.4, 1.2, 1.6)), DEFAULT, TREE, None),  # the fastest of those that are surely faster
        ((said(RING, 2.5, 2.1, 3.3, runs=1),), DEFAULT, None, RING),  # one run says nothing surely
        ((said(RING, 1.2, 1.1, 1.3, off=1),), DEFAULT, None, TREE),  # what a run switched off does not come back
        ((), RING, RING, None),
        ((said(RING, 1.2, 1.1, 1.3, off=1),), RING, DEFAULT, TREE),
        ((replace(FASTER, faster=Interval(0.8, 0.7, 0.9)),), DEFAULT, None, TREE),  # whole blocks are slower
        ((replace(FASTER, size_most=128),), DEFAULT, None, RING),  # of calls of another size
        ((replace(FASTER, nodes=2),), DEFAULT, None, RING),
    ],
)
def test_what_earlier_runs_say_decides_what_is_in_force_and_what_is_tried(
    standings: tuple[Standing, ...], proven: Choice, in_force: Choice | None, tried: Choice | None
) -> None:
    found = next_run([KIND], lambda _kind: proven, standings, looked(*standings))
    assert (found.in_force.get(KIND), found.tried.get(KIND)) == (in_force, tried)


def test_what_was_predicted_is_used_after_a_run_that_finds_it_faster_and_then_confirmed_or_withdrawn() -> None:
    kind = replace(KIND, choices=(TREE, RING, CHAIN), predicted=TREE)

    def after(*standings: Standing) -> tuple[Choice | None, Choice | None, bool | None]:
        found = next_run([kind], lambda _kind: DEFAULT, standings, looked(*standings))
        return found.in_force.get(kind), found.tried.get(kind), found.confirmed.get(kind)

    slow = {(KIND.where, choice): (-0.7, 0.3) for choice in CHOICES} | {(KIND.where, TREE): (-0.6, 0.3)}
    assert next_run([KIND], lambda _kind: DEFAULT, (), slow).tried[KIND] == TREE  # a pair of each gives none up
    assert after() == (None, TREE, None)
    assert after(said(TREE, 1.2, 0.9, 1.5, runs=1)) == (TREE, None, None)  # another choice would not be used yet
    assert after(said(RING, 1.2, 0.9, 1.5, runs=1))[0] is None
    assert after(said(TREE, 1.2, 1.1, 1.3)) == (TREE, None, True)
    assert after(said(TREE, 1.01, 0.9, 1.5)) == (None, RING, False)
    assert after(said(TREE, 0.9, 0.7, 1.02)) == (None, RING, False)
    assert after(said(TREE, 1.2, 1.1, 1.3, off=1)) == (None, RING, False)
    assert after(said(TREE, 1.2, 0.9, 1.5), said(RING, 1.4, 1.2, 1.6)) == (RING, None, None)


def test_rules_reach_the_calls_of_a_kind_and_no_others() -> None:
    base = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, TREE)}
    rules = tables(base, {KIND: RING})["bcast"]
    for nodes, ppn, size, choice in [
        (4, 2, 64, RING), (4, 2, 127, RING), (4, 2, 63, TREE), (4, 2, 128, TREE), (2, 2, 64, TREE), (8, 1, 64, TREE)
    ]:  # fmt: skip
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == choice
    assert default_at({"bcast": rules}, KIND) == RING
    assert tables(base, {KIND: DEFAULT})["bcast"].evaluate(Scenario("bcast", 4, 2, 100)) == DEFAULT
    assert tables({}, {KIND: RING})["bcast"].departs


TEXT = """colltune-rules 2
choice 0 - X=1 # bcast ring
choice 1 - X=2 # bcast tree
choice 2 - X=3 # bcast chain
"""


def test_candidates_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert load_candidates(tmp_path) is None
    found = Candidates(Application(("mpiexec", "./app"), "app", "1234"), "build", (KIND,), TEXT)
    save_candidates(tmp_path, found)
    assert load_candidates(tmp_path) == found
    save_candidates(tmp_path, predicted := replace(found, kinds=(replace(KIND, predicted=RING),)))
    assert load_candidates(tmp_path) == predicted


@pytest.mark.parametrize(
    ("old", "new"),
    [('"schema":3', '"schema":9'), ('"ring"', '"other"'), ('"nodes":4', '"nodes":0'), ("[64,127]", "[128,127]")],
)
def test_damaged_candidates_are_one_line_with_what_to_do(tmp_path: Path, old: str, new: str) -> None:
    save_candidates(tmp_path, Candidates(Application(("./app",)), "build", (KIND,), TEXT))
    record = tmp_path / "candidates" / "candidates.json"
    assert old in record.read_text()
    record.write_text(record.read_text().replace(old, new))
    with pytest.raises(InputError, match="cannot be read") as caught:
        load_candidates(tmp_path)
    assert "the next run makes it anew" in caught.value.next_step


def test_what_gave_right_results_in_another_build_of_the_mpi_is_recorded_anew(tmp_path: Path) -> None:
    environment = Environment("mpich", "5.0.2", "new", "a machine", 4, 2, "single")
    save_tuning(tmp_path, Tuning(environment, {}, {}, {}, Summary(seed=1)))
    command, options = ["/bin/true"], RunOptions(auto=True)
    save_candidates(tmp_path, Candidates(application_of(command, {}), "old", (KIND,), TEXT))
    assert isinstance(ready_auto(tmp_path, command, options, {}, unheard), FirstRun)
    save_candidates(tmp_path, Candidates(application_of(command, {}), "new", (KIND,), TEXT))
    with pytest.raises(InputError, match="no rules for the live selector"):  # it would be used, if there were any
        ready_auto(tmp_path, command, options, {}, unheard)


_BUSY = replace(calls("bcast", 1, 4), rank_calls=4 * 15, time_s=28.0)
_SELDOM = replace(calls("allreduce", 1, 4), rank_calls=4 * 6, time_s=5.6)
_UNEVEN = replace(_BUSY, communicator=Communicator(3, 2, 2, even=False))


@pytest.mark.parametrize(
    ("made", "share", "reason"),
    [
        ((_BUSY, _SELDOM), "84.0%", "most of it in kinds of calls that a run makes fewer than 16 times"),
        ((_UNEVEN, _SELDOM), "84.0%", "on communicators with different numbers of ranks on their nodes"),
        ((replace(_SELDOM, time_s=0.02),), "0.1%", "no kind of call 0.2% of it"),
    ],
)  # fmt: skip
def test_the_reason_is_the_one_that_decides(made: tuple[Calls, ...], share: str, reason: str) -> None:
    """A program whose collectives take 84% of its time, and in which no kind of call is frequent."""
    text = why_none_is_tried(profile(*made), load("mpich", "5.0.2"), [])
    assert text.startswith(f"calls that can be tuned take {share} of its time")
    assert reason in text


BUILT = Application(("mpiexec", "./app", "10"), "app", "3f")
MORE_STEPS = replace(BUILT, command=("mpiexec", "-n", "2", "./app", "20"))
REBUILT = replace(BUILT, digest="4a")


@pytest.fixture
def force(tmp_path: Path) -> AppliedTuning:
    """A ring for every broadcast, by way of the live selector."""
    rules = RuleSet.always("bcast", SizeBasis.MESSAGE, SCATTERED)
    emitter = LiveEmitter(load(ENVIRONMENT.mpi, ENVIRONMENT.mpi_version), lambda _collective, _choice: [("CVAR", 5)])
    files = {f"live/{LIVE_FILE}": emitter.emit([rules])[LIVE_FILE]}
    tuning = Tuning(ENVIRONMENT, {"bcast": rules}, files, {})
    variables = {LIVE_VARIABLE: str(tmp_path / "live" / LIVE_FILE)}
    return AppliedTuning(tmp_path, tuning, {"COLLTUNE_CACHE": str(tmp_path / "cache")}, variables, variables)


def left_in(force: AppliedTuning, application: Application = APP) -> tuple[AppliedTuning, list[str]]:
    """``force`` as ``application`` gets it, and what is said."""
    said: list[str] = []
    withdrawn = withdrawn_from(force.directory, force.tuning.environment, application)
    return without_slower_rules(force, withdrawn, said.append), said


def check(force: AppliedTuning, reason: str, when_s: float = 1e9, application: Application = BUILT) -> Path:
    """What `tune --check` leaves of broadcasts."""
    return begin_run(force.directory, RunRecord(ENVIRONMENT, (), {}, 0, application, 0, {"bcast": reason}), when_s)


def test_what_was_slower_is_left_out_where_it_was_and_said(force: AppliedTuning) -> None:
    for number in range(2):
        leave_run(force.directory, ENVIRONMENT, SCATTERED, 0.8, size=4096, when_s=1e9 + number)
    left, (text,) = left_in(force)
    assert "at bcast 2 x 4, 4 KiB is left out: earlier runs of this program were slower with it" in text
    assert left.exported[LIVE_VARIABLE] == left.variables[LIVE_VARIABLE] != force.exported[LIVE_VARIABLE]
    written = Path(left.exported[LIVE_VARIABLE]).read_text()
    assert live_choices(written) == [SCATTERED]
    rules = parse_live(written)["bcast"]
    for nodes, ppn, size in [(2, 4, 4096), (2, 4, 8191)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == DEFAULT
    for nodes, ppn, size in [(2, 4, 4095), (2, 4, 8192), (1, 4, 4096), (4, 2, 4096), (2, 3, 4096)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == SCATTERED


@pytest.mark.parametrize(("ratio", "command"), [(1.3, APP.command), (1.0, APP.command), (0.8, ("another",))])
def test_nothing_else_is_left_out(force: AppliedTuning, ratio: float, command: tuple[str, ...]) -> None:
    """What was faster, what is not sure, and what was slower in another command."""
    leave_run(force.directory, ENVIRONMENT, SCATTERED, ratio, size=4096)
    assert left_in(force, Application(command)) == (force, [])


def test_a_program_keeps_what_was_learnt_with_other_arguments_and_not_when_it_is_rebuilt(force: AppliedTuning) -> None:
    leave_run(force.directory, ENVIRONMENT, SCATTERED, 0.8, size=4096, application=BUILT)
    assert left_in(force, MORE_STEPS)[1]
    assert left_in(force, REBUILT) == (force, [])
    assert left_in(force, replace(BUILT, name="another")) == (force, [])
    # Where its file cannot be told, the words of the command decide.
    assert left_in(force, Application(BUILT.command))[1]
    assert left_in(force, Application(MORE_STEPS.command)) == (force, [])


def test_a_record_of_before_is_read_and_known_by_its_command(force: AppliedTuning) -> None:
    path = leave_run(force.directory, ENVIRONMENT, SCATTERED, 0.8, size=4096, application=BUILT) / RUN
    written = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in written.items() if name not in ("program", "checked")}))
    assert read_run(path.parent).record.application == Application(BUILT.command)
    assert left_in(force, BUILT)[1]
    assert left_in(force, MORE_STEPS) == (force, [])


def test_what_whole_runs_withdrew_is_left_out_of_that_program_until_they_say_otherwise(force: AppliedTuning) -> None:
    check(force, "the application is 0.80 times as fast")
    left, said = left_in(force, MORE_STEPS)
    assert said == ["every rule of bcast is left out: earlier runs of this program were slower with it"]
    assert parse_live(Path(left.exported[LIVE_VARIABLE]).read_text()) == {}
    assert left_in(force, REBUILT) == left_in(force) == (force, [])
    wider = replace(force, tuning=replace(force.tuning, environment=replace(ENVIRONMENT, nodes=ENVIRONMENT.nodes + 1)))
    assert left_in(wider, BUILT)[1]  # a larger job was tuned into the directory since
    check(force, "", 1e9 + 1)
    assert left_in(force, MORE_STEPS) == (force, [])


def test_a_program_is_known_by_the_file_that_says_what_it_does(tmp_path: Path) -> None:
    script, other = tmp_path / "solve.py", tmp_path / "other.py"
    script.write_text("print(1)")
    other.write_text("print(2)")

    python = sys.executable

    def known(line: str) -> Application:
        return application_of(line.split(), os.environ)

    first = known(f"mpiexec -n 4 {python} {script} 10")
    assert first.name == str(first) == "solve.py"
    for same in (
        f"{python} {script}",
        f"mpiexec -n 8 numactl -N 0 {python} -u {script} 20 node",
        f"mpiexec -n 8 {python} -m mpi4py {script}",
        f"env A=1 mpiexec -n 4 {python} {script}",
    ):
        assert known(same).is_same(first), same
    assert not known(f"mpiexec {python} {other} {script}").is_same(first)
    modules = (f"{python} -c print(1)", f"{python} -m package x", f"mpiexec {python} {script} : {python} {other}")
    for line in (*modules, "sh job.sh", "sh -c true", "ls", "no-such-program"):
        unknown = known(line)
        assert (unknown.name, unknown.digest, str(unknown)) == ("", "", "the application"), line
        assert unknown.is_same(Application(tuple(line.split())))
        assert not unknown.is_same(first)
    script.write_text("print(3)")
    assert not known(f"{python} {script}").is_same(first)
