"""Rules that earlier runs of the same program found slower are left out of the next ones, and nothing else is."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from application_history import APP, leave_run
from memory_bench import ENVIRONMENT
from test_tune_in_memory import RING

from colltune.catalog import load
from colltune.core.choice import DEFAULT
from colltune.core.rules import RuleSet
from colltune.core.scenario import Scenario, SizeBasis
from colltune.deploy.applied import AppliedTuning
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, LiveEmitter, live_choices, parse_live
from colltune.mpi.application import Application, application_of
from colltune.session.application.measure_run import latest_gains
from colltune.session.application.withdrawn import withdrawn_from, without_slower_rules
from colltune.store.applications import RUN, RunRecord, begin_run, read_run
from colltune.store.tuning import Tuning

BUILT = Application(("mpiexec", "./app", "10"), "app", "3f")
MORE_STEPS = replace(BUILT, command=("mpiexec", "-n", "2", "./app", "20"))
REBUILT = replace(BUILT, digest="4a")


@pytest.fixture
def force(tmp_path: Path) -> AppliedTuning:
    """A ring for every broadcast, by way of the live selector."""
    rules = RuleSet.always("bcast", SizeBasis.MESSAGE, RING)
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
        leave_run(force.directory, ENVIRONMENT, RING, 0.8, size=4096, when_s=1e9 + number)
    left, (text,) = left_in(force)
    assert "at bcast 2 x 4, 4 KiB is left out: earlier runs of this program were slower with it" in text
    assert left.told[LIVE_VARIABLE] == left.variables[LIVE_VARIABLE] != force.told[LIVE_VARIABLE]
    written = Path(left.told[LIVE_VARIABLE]).read_text()
    assert live_choices(written) == [RING]
    rules = parse_live(written)["bcast"]
    for nodes, ppn, size in [(2, 4, 4096), (2, 4, 8191)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == DEFAULT
    for nodes, ppn, size in [(2, 4, 4095), (2, 4, 8192), (1, 4, 4096), (4, 2, 4096), (2, 3, 4096)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == RING


@pytest.mark.parametrize(("ratio", "command"), [(1.3, APP.command), (1.0, APP.command), (0.8, ("another",))])
def test_nothing_else_is_left_out(force: AppliedTuning, ratio: float, command: tuple[str, ...]) -> None:
    """What was faster, what is not sure, and what was slower in another command."""
    leave_run(force.directory, ENVIRONMENT, RING, ratio, size=4096)
    assert left_in(force, Application(command)) == (force, [])


def test_a_program_keeps_what_was_learnt_with_other_arguments_and_not_when_it_is_rebuilt(force: AppliedTuning) -> None:
    leave_run(force.directory, ENVIRONMENT, RING, 0.8, size=4096, application=BUILT)
    assert left_in(force, MORE_STEPS)[1]
    assert left_in(force, REBUILT) == (force, [])
    assert left_in(force, replace(BUILT, name="another")) == (force, [])
    # Where its file cannot be told, the words of the command decide.
    assert left_in(force, Application(BUILT.command))[1]
    assert left_in(force, Application(MORE_STEPS.command)) == (force, [])


def test_a_record_of_before_is_read_and_known_by_its_command(force: AppliedTuning) -> None:
    path = leave_run(force.directory, ENVIRONMENT, RING, 0.8, size=4096, application=BUILT) / RUN
    written = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in written.items() if name not in ("program", "checked")}))
    assert read_run(path.parent).record.application == Application(BUILT.command)
    assert left_in(force, BUILT)[1]
    assert left_in(force, MORE_STEPS) == (force, [])


def test_what_whole_runs_withdrew_is_left_out_of_that_program_until_they_say_otherwise(force: AppliedTuning) -> None:
    check(force, "the application is 0.80 times as fast")
    left, said = left_in(force, MORE_STEPS)
    assert said == ["every rule of bcast is left out: earlier runs of this program were slower with it"]
    assert parse_live(Path(left.told[LIVE_VARIABLE]).read_text()) == {}
    assert left_in(force, REBUILT) == left_in(force) == (force, [])
    wider = replace(force, tuning=replace(force.tuning, environment=replace(ENVIRONMENT, nodes=ENVIRONMENT.nodes + 1)))
    assert left_in(wider, BUILT)[1]  # a larger job was tuned into the directory since
    check(force, "", 1e9 + 1)
    assert left_in(force, MORE_STEPS) == (force, [])


def test_whole_runs_are_no_run_that_measured(force: AppliedTuning) -> None:
    leave_run(force.directory, ENVIRONMENT, RING, 1.2, size=4096)
    check(force, "", 1e9 + 1)
    assert len(latest_gains(force.directory)[0]) == 1


def test_a_program_is_known_by_the_file_that_says_what_it_does(tmp_path: Path) -> None:
    script, other = tmp_path / "solve.py", tmp_path / "other.py"
    script.write_text("print(1)")
    other.write_text("print(2)")

    def known(*words: str) -> Application:
        return application_of(words, os.environ)

    python = sys.executable
    first = known("mpiexec", "-n", "4", python, str(script), "10")
    assert first.name == str(first) == "solve.py"
    same: list[Sequence[str]] = [
        (python, str(script)),
        ("mpiexec", "-n", "8", "numactl", "-N", "0", python, "-u", str(script), "20", "node"),
        ("mpiexec", "-n", "8", python, "-m", "mpi4py", str(script)),
        ("env", "A=1", "mpiexec", "-n", "4", python, str(script)),
    ]
    assert all(known(*words).is_same(first) for words in same)
    assert not known("mpiexec", python, str(other), str(script)).is_same(first)
    for words in [
        (python, "-c", "print(1)"),
        (python, "-m", "package", "x"),
        ("sh", "job.sh"),
        ("sh", "-c", "true"),
        ("mpiexec", python, str(script), ":", python, str(other)),
        ("ls",),
        ("no-such-program",),
    ]:
        unknown = known(*words)
        assert (unknown.name, unknown.digest, str(unknown)) == ("", "", "the application"), words
        assert unknown.is_same(Application(tuple(words)))
        assert not unknown.is_same(first)
    script.write_text("print(3)")
    assert not known(python, str(script)).is_same(first)
